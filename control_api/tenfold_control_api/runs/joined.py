"""Runs that nobody started here: their programs join them one by one, and say themselves how they end. Pure, no I/O.

A joined run is a RunRecord of the external launcher without a supervisor. What makes programs belong together is its
`key`: the cluster that they are tasks of, or the cluster and the program that they are clients with. Several runs have
one key, one after the other; at most the newest has not ended. joining.py persists what the verbs here decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.record import EXTERNAL, RunRecord
from tenfold_core.run_states import SERVERS, RunState, RunTaskState, error_line, standing

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters of a reason.
_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A program that wants to be part of the run of `key`."""

    key: str
    job: str
    #: None takes the next free one.
    index: int | None
    host: str
    pid: int


def prefix(key: str) -> str:
    """How the submission ids of the runs of a key begin. No submission id that a client may choose has a colon."""
    return f"joined:{key}:"


def following(key: str, last: RunRecord | None) -> str:
    """The submission id of the next run of the key. Two services that begin it at once collide on it."""
    return f"{prefix(key)}{1 if last is None else int(last.submission_id.rpartition(':')[2]) + 1}"


def begun(run_id: str, submission_id: str, submission: Mapping[str, Any], now: float) -> RunRecord:
    """A run that its first program is about to join."""
    tasks = tuple(_waiting(job, index) for job, size in submission["jobs"].items() for index in range(size))
    return RunRecord(
        run_id,
        submission_id,
        "",
        EXTERNAL,
        submission,
        now,
        state=RunState.RUNNING,
        reason=standing(tasks),
        started=now,
        attempt=1,
        tasks=tasks,
    )


def join(run: RunRecord, newcomer: Newcomer, now: float) -> tuple[RunRecord, int]:
    """The run with the newcomer in it, and its index. The same process again changes nothing; another one at a task's
    place has started it again, for only one of them can have its address.

    Raises NOT_FOUND for a task that the run's cluster does not have.
    """
    run.require_active()
    mine = [task for task in run.tasks if task["job"] == newcomer.job]
    here = {"host": newcomer.host, "pid": newcomer.pid}
    index = newcomer.index
    if index is None:
        index = next((task["index"] for task in mine if _is_at(task, here)), None)
    if index is None:
        free = (task["index"] for task in mine if task["state"] != RunTaskState.RUNNING)
        index = next(free, len(mine))
        if index == len(mine):
            jobs = {**run.submission["jobs"], newcomer.job: index + 1}
            run = replace(
                run,
                submission={**run.submission, "jobs": jobs},
                tasks=(*run.tasks, _waiting(newcomer.job, index)),
            )
    task = _find(run, newcomer.job, index)
    if task is None:
        text = f"run {run.id} has no task {newcomer.job}/{index}: its jobs are {run.submission['jobs']}."
        raise ApiError("no-such-task", text)
    if task["state"] == RunTaskState.RUNNING and _is_at(task, here):
        return run, index
    started = {
        **_waiting(newcomer.job, index),
        **here,
        "state": str(RunTaskState.RUNNING),
        "starts": task["starts"] + 1,
        "started": now,
    }
    return _with(run, started), index


def require_here(run: RunRecord, job: str, index: int, process: Mapping[str, Any]) -> None:
    """Raises FAILED_PRECONDITION, 410, unless the run goes on and the process is that task of it now."""
    run.require_active()
    task = _find(run, job, index)
    if task is None or task["state"] != RunTaskState.RUNNING or not _is_at(task, process):
        raise ApiError(
            "run-left",
            f"process {process['pid']} on {process['host']} is not {job}/{index} of run {run.id} now: it did not "
            "report for too long, or another process took its place. It can join again.",
        )


def ended(run: RunRecord, job: str, index: int, ending: Mapping[str, Any], now: float) -> RunRecord:
    """A program has ended: `ending` has its state, and exit code and error where they are known."""
    task = _find(run, job, index)
    if run.state.final or task is None or task["state"] != RunTaskState.RUNNING:
        return run
    told = {key: ending.get(key) for key in ("exit_code", "error")}
    return _judged(_with(run, {**task, **told, "state": ending["state"], "ended": now}), now)


def silent(run: RunRecord, job: str, index: int, seconds: float, now: float) -> RunRecord:
    """Nothing was heard of a program for so long: it ended without a word, or where it was told to stop by that."""
    state = RunTaskState.FAILED if run.stop is None else RunTaskState.STOPPED
    message = f"nothing was heard of it for {seconds:.0f} s: it ended without a word"
    error = {"type": None, "message": message, "node": None, "task": None} if run.stop is None else None
    return ended(run, job, index, {"state": str(state), "exit_code": None, "error": error}, now)


def settled(run: RunRecord, patience: float, now: float) -> RunRecord:
    """A run whose programs have ended, and whose missing ones have not come for so many seconds since, has ended."""
    ends = [task["ended"] for task in run.tasks if task["ended"] is not None]
    if run.state.final or running(run) or not ends or now - max(ends) < patience:
        return run
    return replace(_decided(run, now), version=run.version + 1)


def running(run: RunRecord) -> list[tuple[str, int]]:
    """The tasks whose programs run."""
    return [(task["job"], task["index"]) for task in run.tasks if task["state"] == RunTaskState.RUNNING]


# -- inside


def _judged(run: RunRecord, now: float) -> RunRecord:
    """Whether the run has ended by now. Parameter servers go on serving: the others decide, where there are others.
    While nothing has failed, a task that has not come yet is waited for."""
    workers = _workers(run)
    there = [task for task in workers if task["starts"]]
    if any(task["state"] == RunTaskState.RUNNING for task in there):
        return run
    failed = any(task["state"] == RunTaskState.FAILED for task in there)
    if run.stop is None and not failed and len(there) < len(workers):
        return run
    return _decided(run, now)


def _workers(run: RunRecord) -> list[Mapping[str, Any]]:
    return [task for task in run.tasks if task["job"] != SERVERS] or list(run.tasks)


def _decided(run: RunRecord, now: float) -> RunRecord:
    """How the run has ended, by the tasks that were there."""
    there = [task for task in _workers(run) if task["starts"]]
    failed = [task for task in there if task["state"] == RunTaskState.FAILED]
    stopped = run.stop is not None or any(task["state"] == RunTaskState.STOPPED for task in there)
    if stopped and (run.stop is not None or not failed):
        state, reason = RunState.STOPPED, run.stop or _stopped(there)
    elif failed:
        first = min(failed, key=lambda task: task["ended"])
        state, reason = RunState.FAILED, f"{first['job']}/{first['index']} failed{error_line(first['error'])}"
    else:
        state, reason = RunState.SUCCEEDED, "its programs have ended"
    tasks = tuple(
        {**task, "state": str(RunTaskState.STOPPED)} if task["state"] == RunTaskState.RUNNING else task
        for task in run.tasks
    )
    return replace(run, state=state, reason=reason[:_CHARACTERS], ended=now, tasks=tasks)


def _stopped(tasks: list[Mapping[str, Any]]) -> str:
    task = next(task for task in tasks if task["state"] == RunTaskState.STOPPED)
    return f"{task['job']}/{task['index']} was stopped"


def _waiting(job: str, index: int) -> dict[str, Any]:
    nothing = dict.fromkeys(("host", "pid", "exit_code", "started", "ended", "error"))
    return {"job": job, "index": index, "state": str(RunTaskState.WAITING), "starts": 0, **nothing, "last_lines": []}


def _find(run: RunRecord, job: str, index: int) -> Mapping[str, Any] | None:
    return next((task for task in run.tasks if (task["job"], task["index"]) == (job, index)), None)


def _is_at(task: Mapping[str, Any], process: Mapping[str, Any]) -> bool:
    return (task["host"], task["pid"]) == (process["host"], process["pid"])


def _with(run: RunRecord, task: Mapping[str, Any]) -> RunRecord:
    """The next version, with the task's new value and what it means for a run that goes on."""
    key = task["job"], task["index"]
    tasks = tuple(task if (old["job"], old["index"]) == key else old for old in run.tasks)
    return replace(run, tasks=tasks, reason=standing(tasks)[:_CHARACTERS], version=run.version + 1)
