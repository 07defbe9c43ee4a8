"""The control service's answer about a run, for tests of what is made of it."""

from __future__ import annotations

from typing import Any

from tenfold.control import Run, RunProgress

PROGRESS: dict[str, Any] = {
    **{"global_step": 1234, "steps_per_second": 85.31, "checkpoint": None, "updated": "2026-11-24T11:59:30Z"},
    "values": {"accuracy": 0.97, "loss": 0.12345, "rate": 0.1, "zeta": "NaN"},
}


def a_run(state: str = "RUNNING", *, progress: dict[str, Any] | None = None, **members: Any) -> Run:
    """One without tasks, where no others are given."""
    return Run.from_json(
        {
            **{"name": "run-1", "uid": "u", "version": 3, "state": state, "conditions": [], "submission_id": "s"},
            **{"launcher": "local", "entrypoint": ["python", "t.py"], "working_dir": None, "package": None},
            **{"environment": [], "jobs": {"worker": 1}, "success": "all", "restarts": {"limit": 2}, "deadline": None},
            **{"reason": "attempt 1 of 3", "stop": None, "attempt": 1, "restarts_used": 0, "created": "t"},
            **{"started": None, "ended": None, "progress": progress, "tasks": []},
            **members,
        }
    )


def a_task(state: str = "running", **members: Any) -> dict[str, Any]:
    return {
        **{"name": "/job:worker/replica:0/task:0", "job": "worker", "index": 0, "state": state, "starts": 1},
        **{"host": None, "pid": None, "exit_code": None, "signal": None, "started": None, "ended": None},
        **{"error": None, "last_lines": []},
        **members,
    }


def a_progress(*, values: tuple[float | str, ...] = (0.5, 0.25, "NaN"), name: str = "loss") -> RunProgress:
    """A curve of worker 0, a step and a second apart, and another one of worker 1."""

    def task(index: int, curve: tuple[float | str, ...]) -> dict[str, Any]:
        steps, times = list(range(1, len(curve) + 1)), [1000.0 + at for at in range(len(curve))]
        shown = {"times": times, "steps": steps, "values": list(curve)}
        nothing: dict[str, Any] = {"times": [], "steps": [], "values": []}
        return {
            **{"job": "worker", "index": index, "updated": "2026-11-24T11:59:30Z", "steps": 3, "global_step": 3},
            **{"steps_per_second": None, "examples_per_second": None, "curves": {name: shown}, "checkpoints": []},
            **{"global_steps": nothing, "speed": nothing, "logdirs": [], "figures": {}},
        }

    return RunProgress.from_json({"run": "run-1", "progress": None, "tasks": [task(1, (9.0,)), task(0, values)]})
