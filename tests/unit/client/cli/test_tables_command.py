"""What `tenfold tables` prints: golden output at 80 columns, and of which tasks it tells."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tenfold.cli import tables_command
from tenfold.cli.tables_command import count, rendered
from tenfold.control.run_answers import RunProgress

EMBEDDING: dict[str, Any] = {"kind": "EmbeddingVariable", "evicted": 0, "waiting": 0}
MIB = 1 << 20


def part(name: str, rows: int, **figures: Any) -> dict[str, Any]:
    numbers = {"bytes": 10 * MIB + rows, "quota_bytes": 10 * MIB, "lookups": 4 * rows, "found": 3 * rows}
    return {"name": name, "rows": rows, **EMBEDDING, **numbers, **figures}


def lookup_table(name: str, rows: int) -> dict[str, Any]:
    nothing = dict.fromkeys(("waiting", "evicted", "lookups", "found"))
    return {"name": name, "kind": "MutableHashTable", "rows": rows, "bytes": 512, "quota_bytes": 512, **nothing}


def table(parts: list[dict[str, Any]], unevenness: float | None) -> dict[str, Any]:
    """As the service sums them up."""
    summed: dict[str, Any] = {"name": parts[0]["name"].removesuffix("/part_0"), "kind": parts[0]["kind"]}
    for member in ("rows", "waiting", "evicted", "bytes", "quota_bytes", "lookups", "found"):
        summed[member] = None if parts[0][member] is None else sum(each[member] for each in parts)
    admitted = None if summed["waiting"] is None else summed["rows"] - summed["waiting"]
    summed |= {"admitted": admitted, "parts": len(parts), "largest": "ps/0", "unevenness": unevenness}
    return {**summed, "hit_rate": summed["found"] / summed["lookups"] if summed["lookups"] else None}


USER = [part("user/part_0", 1_300_000, waiting=300_000, evicted=7), part("user/part_1", 900_000, waiting=100_000)]
ITEM = [part("item", 50)]
WORDS = [lookup_table("words", 12)]
TABLES = {
    "tables": [table(USER, 1.182), table(ITEM, None), table(WORDS, None)],
    "left_out": 0,
    "rows": 2_200_062,
    "bytes": 33 * MIB,
    "largest": "ps/0",
    "unevenness": 1.333,
}


def task(job: str, index: int, tables: list[dict[str, Any]], **figures: Any) -> dict[str, Any]:
    return {"job": job, "index": index, "figures": {"tables": tables, **figures}}


def progress(*tasks: dict[str, Any], tables: Any = TABLES) -> RunProgress:
    nothing = {"times": [], "steps": [], "values": []}
    unseen = {"updated": "", "steps": 0, "global_step": None, "steps_per_second": None, "curves": {}}
    unseen |= {"global_steps": nothing, "speed": nothing, "checkpoints": [], "logdirs": []}
    told = [
        {**unseen, **each, "figures": {k: v for k, v in each["figures"].items() if k != "tables"}}
        | ({"tables": each["figures"]["tables"]} if each["figures"]["tables"] else {})
        for each in tasks
    ]
    return RunProgress.from_json({"run": "r", "progress": None, "tasks": told, "tables": tables})


class FakeClient:
    """Knows one run, one cluster, and one session of it."""

    def __init__(self, *tasks: dict[str, Any], tables: Any = TABLES) -> None:
        self._tasks, self._tables = tasks, tables
        self.clusters: list[str] = []

    def progress(self, run: str) -> RunProgress:
        return progress(*self._tasks, tables=self._tables)

    def jobs(self, cluster: str) -> dict[str, Any]:
        self.clusters.append(cluster)
        found = {"jobs": [{"tasks": list(self._tasks)}], "tables": self._tables}
        return {name: value for name, value in found.items() if value is not None}

    def session(self, name: str) -> Any:
        return SimpleNamespace(status=lambda: SimpleNamespace(cluster="theirs"))


def shown(found: dict[str, Any], limit: int = 50, width: int = 80, *, parts: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(rendered(found, width, limit, parts=parts))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def asked(*tasks: dict[str, Any], run: str | None = "r", session: str | None = None, tables: Any = TABLES) -> Any:
    return tables_command._ask(FakeClient(*tasks, tables=tables), "default", session, run)  # type: ignore[arg-type]


PS = [
    task("ps", 0, [USER[0], ITEM[0]], table_rows=1_300_050.0, table_bytes=22.0 * MIB),
    task("ps", 1, [USER[1], WORDS[0]], table_rows=900_012.0, table_bytes=11.0 * MIB, tables_left_out=3.0),
]


@pytest.mark.parametrize("run", ["r", None])
def test_tables_and_tasks(run: str | None) -> None:
    found = asked(*PS, task("worker", 0, []), run=run)

    assert shown(found) == [
        "tables of run r" if run else "tables of cluster default",
        "rows   admitted  waiting  evicted  memory    hit rate  uneven  parts  table",
        "2.2 M  1.8 M     400,000  7        22.1 MiB  75.0 %    1.18    2      user",
        "50     -         0        0        10.0 MiB  75.0 %    -              item",
        "12     -         -        -        512 B     -         -              words (Mu…",
        "ps/0 has the most bytes of tables: 1.33 times the mean",
        "",
        "by task",
        "task  tables  rows     memory    counted for its limit",
        "ps/0  2       1.3 M    22.0 MiB  20.0 MiB",
        "ps/1  5       900,012  11.0 MiB  10.0 MiB",
    ]


def test_columns_that_say_nothing_are_left_out() -> None:
    tables = {**TABLES, "tables": [table(ITEM, None)], "unevenness": None, "largest": None}
    found = asked(task("worker", 0, ITEM), tables=tables)

    assert shown(found) == [
        "tables of run r",
        "rows  memory    hit rate  table",
        "50    10.0 MiB  75.0 %    item",
        "",
        "by task",
        "task      tables  rows  memory    counted for its limit",
        "worker/0  1       50    10.0 MiB  10.0 MiB",
    ]


def test_parts_have_their_tasks() -> None:
    assert shown(asked(*PS), limit=3, parts=True)[:6] == [
        "parts of tables of run r",
        "rows     admitted  waiting  evicted  memory    hit rate  task  table",
        "1.3 M    1.0 M     300,000  7        11.2 MiB  75.0 %    ps/0  user/part_0",
        "900,000  800,000   100,000  0        10.9 MiB  75.0 %    ps/1  user/part_1",
        "50       -         0        0        10.0 MiB  75.0 %    ps/0  item",
        "… and 4 more",
    ]


def test_what_is_not_shown_is_counted() -> None:
    found = asked(*PS, tables={**TABLES, "left_out": 9})

    assert shown(found, limit=1)[3] == "… and 11 more parts of tables"


def test_without_tables_there_is_a_sentence() -> None:
    assert shown(asked(task("ps", 0, []), tables=None)) == ["No task of run r tells of a table."]
    # a service of before, whose tasks have no figures yet
    assert asked({"job": "ps", "index": 0, "figures": None}, run=None, tables=None)["tasks"] == []


def test_the_tables_of_a_session_are_those_of_its_cluster() -> None:
    assert asked(*PS, run=None, session="s")["of"] == "cluster theirs"


@pytest.mark.parametrize(
    ("number", "text"), [(None, "-"), (0, "0"), (999_999, "999,999"), (12_345_678, "12.3 M"), (3 * 10**9, "3.0 G")]
)
def test_counts(number: int | None, text: str) -> None:
    assert count(number) == text
