"""The tables of a cluster or a run: parts on several tasks as one table, and how evenly they lie there. Pure.

Each task tells of its own tables (figures.py), with its heartbeats or its program's reports. A variable in parts has
one on each parameter server, `user/part_0` and so on. Used by routes/clusters.py and runs/views.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_control_api.models import TablesView, TableView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_control_api.figures import TableFigures

#: Tables in an answer, the largest.
MOST_TABLES = 256
#: The job over whose tasks tables are spread.
_SERVERS = "ps"
_PART = re.compile(r"/part_\d+$")


@dataclass(slots=True)
class TableParts:
    """What the tasks of a cluster or a run tell of their tables, task by task."""

    #: By name and kind: the task of each part, and the part.
    _tables: dict[tuple[str, str], list[tuple[str, TableFigures]]] = field(default_factory=dict)
    #: Bytes of all tables of each parameter server.
    _servers: dict[str, int] = field(default_factory=dict)
    _rows: int = 0
    _bytes: int = 0
    _left_out: int = 0

    def __bool__(self) -> bool:
        """Whether any task has a table."""
        return bool(self._tables)

    def add(
        self,
        job: str,
        index: int,
        tables: Sequence[TableFigures],
        rows: float | None,
        size: float | None,
        left_out: float | None,
    ) -> None:
        """One task: its tables, the rows and bytes of all that it has, and how many of them are not in `tables`. What
        it does not tell is that of `tables`."""
        task = f"{job}/{index}"
        for table in tables:
            name = _PART.sub("", table.name) if "/part_" in table.name else table.name
            self._tables.setdefault((name, table.kind), []).append((task, table))
        held = sum(table.bytes for table in tables) if size is None else int(size)
        if job == _SERVERS:
            self._servers[task] = held
        self._bytes += held
        self._rows += sum(table.rows for table in tables) if rows is None else int(rows)
        self._left_out += int(left_out or 0)

    def view(self) -> TablesView | None:
        """All of it, the largest tables first; None where no task has a table."""
        tables = [_table(name, kind, parts) for (name, kind), parts in self._tables.items()]
        if not tables:
            return None
        tables.sort(key=lambda table: (-table.bytes, table.name))
        largest, unevenness = _unevenness(self._servers.items())
        return TablesView(
            tables=tables[:MOST_TABLES],
            left_out=self._left_out + sum(table.parts for table in tables[MOST_TABLES:]),
            rows=self._rows,
            bytes=self._bytes,
            largest=largest,
            unevenness=unevenness,
        )


def _table(name: str, kind: str, parts: Sequence[tuple[str, TableFigures]]) -> TableView:
    rows = sum(part.rows for _, part in parts)
    waiting = _sum(part.waiting for _, part in parts)
    lookups, found = _sum(part.lookups for _, part in parts), _sum(part.found for _, part in parts)
    largest, unevenness = _unevenness((task, part.rows) for task, part in parts)
    return TableView(
        name=name,
        kind=kind,
        parts=len(parts),
        rows=rows,
        admitted=None if waiting is None else rows - waiting,
        waiting=waiting,
        evicted=_sum(part.evicted for _, part in parts),
        bytes=sum(part.bytes for _, part in parts),
        quota_bytes=_sum(part.quota_bytes for _, part in parts),
        lookups=lookups,
        found=found,
        hit_rate=round(found / lookups, 4) if lookups and found is not None else None,
        largest=largest,
        unevenness=unevenness,
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    """Of those that are known; None where none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _unevenness(sizes: Iterable[tuple[str, int]]) -> tuple[str | None, float | None]:
    """The task with the largest part, and how many times the mean that is; None without two parts, or anything."""
    known = list(sizes)
    total = sum(size for _, size in known)
    if len(known) < 2 or not total:
        return None, None
    task, largest = max(known, key=lambda each: each[1])
    return task, round(largest * len(known) / total, 3)
