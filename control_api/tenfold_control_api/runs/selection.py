"""Which runs a filter wants, and in which order: what a run has under a name, and where a page begins. Pure.

Called by service.py, on a thread: it looks at every run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_control_api.runs.details import parameters_of, source_of
from tenfold_control_api.views import timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tenfold_control_api.runs.filter import Filter
    from tenfold_control_api.runs.progress import Summary
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_core.parameter_values import Value

#: Before the name of a parameter or a scalar, for one that is called like something else.
PARAMETER, METRIC = "param.", "metric."


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run, and the newest of what its programs reported."""

    run: RunRecord
    newest: Summary | None

    def values(self, name: str) -> Sequence[Value]:
        """What the run has under a name: a member of FIELDS, else a parameter, else a scalar."""
        if name.startswith(METRIC):
            return self._metric(name.removeprefix(METRIC))
        if name.startswith(PARAMETER):
            return _one(parameters_of(self.run.details).get(name.removeprefix(PARAMETER)))
        if (read := FIELDS.get(name)) is not None:
            return read(self)
        return _one(parameters_of(self.run.details).get(name)) or self._metric(name)

    def _metric(self, name: str) -> Sequence[Value]:
        return () if self.newest is None else _one(self.newest.values.get(name))


def _one(value: Value | None) -> tuple[Value, ...]:
    return () if value is None else (value,)


def _moment(seconds: float | None) -> tuple[Value, ...]:
    return () if seconds is None else (timestamp(seconds),)


def _seconds(run: RunRecord) -> tuple[Value, ...]:
    return () if run.started is None or run.ended is None else (run.ended - run.started,)


def _source(member: str) -> Callable[[Candidate], Sequence[Value]]:
    return lambda each: _one((source_of(each.run.details) or {}).get(member))


def _newest(member: str) -> Callable[[Candidate], Sequence[Value]]:
    return lambda each: () if each.newest is None else _one(getattr(each.newest, member))


#: Name → what a run has under it.
FIELDS: Mapping[str, Callable[[Candidate], Sequence[Value]]] = {
    "name": lambda each: (*_one(each.run.details.get("display_name")), each.run.id),
    "tag": lambda each: tuple(each.run.details.get("tags", ())),
    "notes": lambda each: _one(each.run.details.get("notes")),
    "state": lambda each: (str(each.run.state),),
    "launcher": lambda each: (each.run.launcher,),
    "submission_id": lambda each: (each.run.submission_id,),
    "program": lambda each: (" ".join(each.run.submission["entrypoint"]),),
    "reason": lambda each: (each.run.reason,),
    "created": lambda each: _moment(each.run.created),
    "started": lambda each: _moment(each.run.started),
    "ended": lambda each: _moment(each.run.ended),
    "seconds": lambda each: _seconds(each.run),
    "seed": lambda each: _one(each.run.details.get("recorded", {}).get("seed")),
    "commit": _source("commit"),
    "branch": _source("branch"),
    "step": _newest("global_step"),
    "steps_per_second": _newest("steps_per_second"),
    "examples_per_second": _newest("examples_per_second"),
}


class Key(NamedTuple):
    """Where a run stands: numbers before texts, and what has no value last."""

    kind: float
    number: float
    text: str
    run: str


def key_of(candidate: Candidate, sort: str) -> Key:
    """Where a run stands in the order of what it has under `sort`."""
    found: Any = next(iter(candidate.values(sort)), None)
    if sort == "created":
        found = candidate.run.created
    if isinstance(found, (bool, int, float)):
        return Key(0.0, float(found), "", candidate.run.id)
    return Key(2.0, 0.0, "", candidate.run.id) if found is None else Key(1.0, 0.0, found, candidate.run.id)


def select(
    candidates: Iterable[Candidate], wanted: Filter | None, sort: str, limit: int, after: tuple[str | float, ...] | None
) -> list[Key]:
    """The first `limit` of the wanted runs, in the order of `sort`, behind the place `after`. A "-" before the name
    turns the order round, but runs without a value stay last."""
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    keys = [key_of(each, name) for each in candidates if wanted is None or wanted.holds(each.values)]
    ordered: list[Key] = []
    for kind in (0.0, 1.0, 2.0):
        ordered += sorted((key for key in keys if key.kind == kind), reverse=descending)
    if after is not None:
        place = Key(*after)  # type: ignore[arg-type]
        ordered = [key for key in ordered if _behind(key, place, descending)]
    return ordered[:limit]


def _behind(key: Key, place: Key, descending: bool) -> bool:
    if key.kind != place.kind:
        return key.kind > place.kind
    return key < place if descending else key > place
