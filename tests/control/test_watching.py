"""Looking on at a run by the SDK, against a real uvicorn, with both clients. The run is one that others start."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

import pytest

from tenfold_core import errors

from .conftest import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenfold.control import ControlClient, Run

    from .conftest import Service

SUPERVISOR = {"host": "here", "pid": 4711}


@pytest.fixture
def run(control: ControlClient) -> Run:
    """Submitted with the blocking client."""
    return control.submit_run(["python", "t.py"], jobs={"worker": 1}, launcher="external")


def report(control: ControlClient, run: Run, state: str, reason: str) -> None:
    control.report_run(run.name, {"state": state, "reason": reason, "attempt": 1, "supervisor": SUPERVISOR})


class Shown:
    """A display that the test looks at; `came` is released for each run that it is given."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.came = threading.Semaphore(0)
        self.open = False

    def __enter__(self) -> Self:
        self.open = True
        return self

    def __exit__(self, *raised: object) -> None:
        self.open = False

    def show(self, run: Run) -> None:
        assert self.open
        self.runs.append(run)
        self.came.release()


def test_updates_of_a_run_until_its_end(client: ControlClient, control: ControlClient, run: Run) -> None:
    seen: list[tuple[str, str]] = []
    for update in client.run_updates(run, every=PATIENCE):
        seen.append((update.state, update.reason))
        if update.state == "PENDING":
            report(control, run, "RUNNING", "it runs")
        elif not update.final:
            report(control, run, "SUCCEEDED", "all workers ended")

    assert [state for state, _ in seen] == ["PENDING", "RUNNING", "SUCCEEDED"]
    assert seen[-1][1] == "all workers ended"


def test_watching_shows_progress_and_gives_the_end(client: ControlClient, control: ControlClient, run: Run) -> None:
    shown, ended = Shown(), []
    report(control, run, "RUNNING", "it runs")
    watcher = threading.Thread(target=lambda: ended.append(client.watch(run, display=shown, timeout=PATIENCE)))
    watcher.start()
    assert shown.came.acquire(timeout=PATIENCE)
    point: dict[str, Any] = {"time": 1.0, "step": 7, "values": {"loss": 0.5}}
    control.report_task(run.name, "worker", 0, {"steps": 7, "global_step": 7, "points": [point]})
    while shown.runs[-1].progress is None:
        assert shown.came.acquire(timeout=PATIENCE)
    report(control, run, "FAILED", "worker/0: exit code 1")
    watcher.join(PATIENCE)

    told = [shown_run.progress for shown_run in shown.runs if shown_run.progress is not None]
    assert (told[0].global_step, told[0].values) == (7, {"loss": 0.5})
    assert [run.state for run in ended] == ["FAILED"]
    assert shown.runs[-1] == ended[0]
    assert not shown.open


def test_waiting_has_a_deadline(client: ControlClient, run: Run) -> None:
    shown = Shown()

    with pytest.raises(errors.DeadlineExceededError, match=rf"run {run.name} is PENDING after 0\.05 s"):
        client.watch(run.name, display=shown, timeout=0.05)
    assert not shown.open
    with pytest.raises(errors.DeadlineExceededError, match="is PENDING after 0 s"):
        client.wait_for_run(run.name, timeout=0)
    with pytest.raises(errors.NotFoundError):
        client.watch("run-none", display=Shown())


def test_runs_in_lists(client: ControlClient, run: Run) -> None:
    assert client.runs() == [run]
    assert client.runs(states=["FAILED"]) == []
    assert client.run(run.name) == client.wait_for_run(run.name, after=0) == run
    assert client.progress(run.name).tasks == ()
    assert client.stop_run(run.name, reason="enough").stop == "enough"
    assert client.delete_run(run.name).name == run.name


def test_a_folder_is_uploaded_once(
    start_service: Callable[..., Service], connect: Callable[..., ControlClient], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "trainer.py").write_text("print('trained')")
    with connect(start_service(allow_runs=True).url) as client:
        assert len(name := client.upload_folder(str(folder))) == 64
        assert client.upload_folder(str(folder)) == name
        with pytest.raises(NotADirectoryError):
            client.upload_folder(str(tmp_path / "nowhere"))


def test_a_folder_is_not_taken_where_runs_are_not_allowed(client: ControlClient, tmp_path: Path) -> None:
    with pytest.raises(errors.PermissionDeniedError, match="without --allow-runs"):
        client.upload_folder(str(tmp_path))
