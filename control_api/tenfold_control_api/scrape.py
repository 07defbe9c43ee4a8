"""What `/metrics` answers: the service's own series, the figures of every task that tells them, and the active runs.

Called by routes/probes.py. The service's series are metrics.py's, the tasks' lines tenfold_core.task_metrics's. A
thousand tasks have some 50,000 samples, so between the families others have their turn on the event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from tenfold_control_api.runs.views import progress_view
from tenfold_core.run_states import RunState
from tenfold_core.task_metrics import Metric, families, family, labels

if TYPE_CHECKING:
    from tenfold_control_api.control import Control

RUN_METRICS = (
    Metric("tenfold_run_global_step", "gauge", "The newest global step of an active run.", "global_step"),
    Metric("tenfold_run_steps_per_second", "gauge", "Global steps a second of an active run.", "steps_per_second"),
)
RUN_INFO = Metric("tenfold_run_info", "gauge", "1 for each active run, with its state.", "")
#: Runs in a scrape, the newest first; the service has no more active ones unless its limit was raised.
_MOST_RUNS = 100
#: Tasks that are made ready in one turn of the event loop.
_TURN = 200


async def scrape(control: Control) -> bytes:
    """The text of one scrape."""
    parts = [control.metrics.render().decode()]
    tasks = await _tasks(control)
    for text in families(tasks):
        parts.append(text)
        await asyncio.sleep(0)
    parts.extend(await _runs(control))
    return "".join(parts).encode()


async def _tasks(control: Control) -> list[tuple[str, dict[str, Any]]]:
    """(labels, figures) of the tasks with a live lease here."""
    leases = control.registry.leases
    found: list[tuple[str, dict[str, Any]]] = []
    for cluster in sorted(control.registry.clusters(), key=lambda cluster: cluster.name):
        for number, task in enumerate(cluster.tasks.values(), 1):
            if number % _TURN == 0:
                await asyncio.sleep(0)
            age = None if task.lease_id is None else leases.age(task.lease_id)
            if age is None:
                continue
            newest = leases.figures(task.lease_id)
            told = {} if newest is None else newest.report.model_dump()
            told["heartbeat_age_seconds"] = round(age, 3)
            found.append((labels(cluster=cluster.name, job=task.job, task=str(task.index)), told))
    return found


async def _runs(control: Control) -> list[str]:
    if not control.runs.active():
        return []
    try:
        runs = await control.runs.page([RunState.PENDING, RunState.RUNNING], _MOST_RUNS, None)
        progress = await control.runs.progress.of_all([run.id for run in runs])
    except SQLAlchemyError:
        return []  # the rest is what shows that the database is away
    info = [(labels(run=run.id, submission=run.submission_id, state=str(run.state)), 1.0) for run in runs]
    told = [(labels(run=run.id), progress_view(run, progress[run.id])) for run in runs]
    return [
        family(RUN_INFO, info),
        *(
            family(
                metric,
                [(who, value) for who, view in told if (value := getattr(view, metric.member, None)) is not None],
            )
            for metric in RUN_METRICS
        ),
    ]
