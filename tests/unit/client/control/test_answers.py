"""Answers from JSON: members that are too many, too few, nested."""

from __future__ import annotations

import pytest

from tenfold.control.answers import Answer, answer
from tenfold.control.run_answers import Progress, Run
from tenfold_core import errors

PROGRESS = {"global_step": 7, "steps_per_second": None, "values": {"loss": 0.5}, "checkpoint": None, "updated": "t"}
RUN = {
    **{"name": "r-1", "uid": "u", "version": 3, "state": "RUNNING", "conditions": [], "submission_id": "s"},
    **{"launcher": "local", "entrypoint": ["python", "t.py"], "working_dir": None, "package": None},
    **{"environment": [], "jobs": {"worker": 1}, "success": "all", "restarts": {"limit": 2}, "deadline": None},
    **{"reason": "it runs", "stop": None, "attempt": 1, "restarts_used": 0, "created": "t", "started": None},
    **{"ended": None, "progress": PROGRESS, "tasks": []},
}


def test_members_are_typed_and_nested() -> None:
    run = Run.from_json(RUN)

    assert isinstance(run.progress, Progress)
    assert (run.progress.global_step, run.progress.values) == (7, {"loss": 0.5})
    assert (run.entrypoint, run.restarts.limit, run.restarts.gang) == (("python", "t.py"), 2, True)
    assert not run.final
    assert Run.from_json({**RUN, "state": "FAILED", "progress": None}).final


def test_members_as_they_came() -> None:
    run = Run.from_json(RUN)

    assert run["progress"]["values"] == {"loss": 0.5}
    assert "tasks" in run
    assert "task" not in run
    assert run.get("task", 1) == 1
    assert dict(run) == RUN == run
    assert run == Run.from_json(RUN) != Run.from_json({**RUN, "version": 4})


def test_what_a_newer_service_adds_is_kept() -> None:
    run = Run.from_json({**RUN, "state": "SLEEPING", "mood": "fine"})

    assert (run.state, run["mood"], run.final) == ("SLEEPING", "fine", False)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(errors.InternalError, match="no member 'name', which a Run has"):
        Run.from_json({"state": "RUNNING"})


@answer
class Folder(Answer):
    name: str
    owner: str | None = None


def test_what_may_be_missing_has_a_default() -> None:
    assert Folder.from_json({"name": "a"}).owner is None


def test_it_is_read_only() -> None:
    with pytest.raises(AttributeError):
        Folder.from_json({"name": "a"}).name = "b"  # type: ignore[misc]
