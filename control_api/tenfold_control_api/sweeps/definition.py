"""A definition → the record of a sweep: its settings, what a run of it takes, what there is. Pure, but for the size of
this machine."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from typing import TYPE_CHECKING

from tenfold.sweeps.space import Choice, SpaceError, draw, grid, interval_or_steps
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.models import dumped, given_details
from tenfold_control_api.runs.record import EXTERNAL, LOCAL
from tenfold_control_api.sweeps.machine import Room
from tenfold_control_api.sweeps.record import SweepRecord, room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.sweeps.space import Dimension, Point
    from tenfold_control_api.sweeps.models import SweepDefinition, SweepParameter


def sweep_of(definition: SweepDefinition, owner: str, submitter: str | None, now: float) -> SweepRecord:
    """A new sweep. Raises INVALID_ARGUMENT for parameters that cannot be tried, for a program that nobody would start,
    and where not one run finds room."""
    program = definition.program
    if program.launcher == EXTERNAL:
        text = "the service starts the runs of a sweep, and none with the launcher external."
        raise ApiError("invalid-launcher", text, at=("program", "launcher"))
    if program.submission_id is not None:
        text = "the runs of a sweep have submission ids of their own; leave submission_id out."
        raise ApiError("invalid-request", text, at=("program", "submission_id"))
    if definition.stop_early is not None and definition.metric is None:
        text = "stop_early compares the runs by a scalar: name it as metric, such as loss."
        raise ApiError("invalid-request", text, at=("metric",))
    points = settings_of(definition)
    content = {
        "program": dumped(program),
        "launcher": program.launcher,
        **definition.model_dump(mode="json", exclude={"name", "program"}),
    }
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    there = room_of(program.launcher, definition.total_cores, definition.total_memory)
    resources = {job: (each.cores, each.memory) for job, each in program.resources.items()}
    content |= {"each": room(taken(program.jobs, resources, there)), "there": room(there)}
    name = definition.name or f"sweep-{secrets.token_hex(4)}"
    sweep = SweepRecord(
        name, fingerprint, content, points, now, owner=owner, submitter=submitter, details=given_details(program)
    )
    try:
        sweep.machine()
    except ValueError as error:
        raise ApiError("sweep-without-room", f"{error}.", at=("program", "resources")) from None
    return sweep


def settings_of(definition: SweepDefinition) -> list[Point]:
    """Raises INVALID_ARGUMENT that names the parameter."""
    dimensions: list[Dimension] = []
    for name, given in definition.parameters.items():
        try:
            dimensions.append(_dimension(name, given))
        except SpaceError as error:
            raise ApiError("invalid-space", f"{error}.", at=("parameters", name)) from None
    try:
        if definition.random is None:
            return grid(dimensions)
        return draw(dimensions, definition.random.count, definition.random.seed)
    except SpaceError as error:
        raise ApiError("invalid-space", f"{error}.", at=("parameters",)) from None


def _dimension(name: str, given: SweepParameter) -> Dimension:
    if given.values is not None:
        if (given.low, given.high, given.step, given.log) != (None, None, None, False):
            raise SpaceError(f"{name} has values, and a range besides: give one of them")
        # 1, 1.0 and true are equal, and three values
        return Choice(name, tuple({repr(value): value for value in given.values}.values()))
    if given.low is None or given.high is None:
        raise SpaceError(f"{name} has neither values nor low and high")
    if given.log and given.step is not None:
        raise SpaceError(f"{name} has a step, and log: only an interval without steps has that")
    return interval_or_steps(name, given.low, given.high, given.step, log=given.log)


def room_of(launcher: str, cores: int | None, memory: int | None) -> Room:
    """What the runs share: what was given, else all of this machine where they run here."""
    if launcher != LOCAL:
        return Room(cores, memory)
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Room(cores or here, memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def taken(jobs: Mapping[str, int], resources: Mapping[str, tuple[int | None, int | None]], there: Room) -> Room:
    """What a run takes: what its tasks ask for (cores and bytes, by job), else a core for each worker and the chief, as
    far as there are any."""
    asked = {job: cores for job, (cores, _) in resources.items() if cores is not None}
    cores = sum(size * (asked.get(job, 0) if asked else int(job in ("worker", "chief"))) for job, size in jobs.items())
    if not asked and there.cores is not None:
        cores = min(cores, there.cores)
    return Room(cores, sum(size * (resources[job][1] or 0) for job, size in jobs.items() if job in resources))
