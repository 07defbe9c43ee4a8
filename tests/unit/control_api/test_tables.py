"""Parts of tables on several tasks as one table: sums, hit rates, and how unevenly they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_control_api import tables
from tenfold_control_api.figures import TableFigures
from tenfold_control_api.tables import TableParts

if TYPE_CHECKING:
    import pytest


def part(name: str, rows: int, **figures: Any) -> TableFigures:
    numbers = {"waiting": 0, "evicted": 0, "lookups": 0, "found": 0, "quota_bytes": rows}
    return TableFigures(name=name, kind="EmbeddingVariable", rows=rows, bytes=10 * rows, **{**numbers, **figures})


def lookup_table(name: str, rows: int) -> TableFigures:
    return TableFigures(name=name, kind="HashTable", rows=rows, bytes=rows)


def summed(*tasks: tuple[str, int, list[TableFigures]], left_out: int = 0) -> Any:
    parts = TableParts()
    for job, index, told in tasks:
        rows, size = sum(each.rows for each in told), sum(each.bytes for each in told)
        parts.add(job, index, told, rows, size, left_out)
    return parts.view()


def test_the_parts_of_a_table_are_one() -> None:
    first = part("net/user/part_0", 300, waiting=100, evicted=5, lookups=80, found=60)
    second = part("net/user/part_1", 100, waiting=50, lookups=20, found=13)

    found = summed(("ps", 0, [first]), ("ps", 1, [second]))

    assert found.tables[0].model_dump() == {
        "name": "net/user",
        "kind": "EmbeddingVariable",
        "parts": 2,
        "rows": 400,
        "admitted": 250,
        "waiting": 150,
        "evicted": 5,
        "bytes": 4000,
        "quota_bytes": 400,
        "lookups": 100,
        "found": 73,
        "hit_rate": 0.73,
        "largest": "ps/0",
        "unevenness": 1.5,
    }
    assert (len(found.tables), found.left_out, found.rows, found.bytes) == (1, 0, 400, 4000)
    assert (found.largest, found.unevenness) == ("ps/0", 1.5)


def test_what_nobody_counts_is_unknown() -> None:
    (table,) = summed(("worker", 0, [lookup_table("words", 7)])).tables

    assert (table.rows, table.bytes, table.parts) == (7, 7, 1)
    unknown = ("admitted", "waiting", "evicted", "quota_bytes", "lookups", "found", "hit_rate", "largest", "unevenness")
    assert {getattr(table, member) for member in unknown} == {None}


def test_tables_of_one_name_and_another_kind_are_two() -> None:
    found = summed(("ps", 0, [part("t", 3), lookup_table("t", 2)]), ("ps", 1, [lookup_table("t", 2)]))

    assert [(table.kind, table.parts, table.rows) for table in found.tables] == [
        ("EmbeddingVariable", 1, 3),
        ("HashTable", 2, 4),
    ]


def test_parameter_servers_without_tables_count_and_workers_do_not() -> None:
    found = summed(("ps", 0, [part("a", 30)]), ("ps", 1, []), ("ps", 2, []), ("worker", 0, [part("b", 900)]))

    assert (found.largest, found.unevenness) == ("ps/0", 3.0)
    alone = summed(("ps", 0, [part("a", 30)]), ("worker", 0, []))
    assert (alone.largest, alone.unevenness) == (None, None)
    empty = summed(("ps", 0, [part("a", 0)]), ("ps", 1, [part("b", 0)]))
    assert (empty.largest, empty.unevenness, empty.tables[0].hit_rate) == (None, None, None)


def test_without_tables_there_is_no_view() -> None:
    assert summed() is None
    assert summed(("ps", 0, [])) is None


def test_the_largest_are_shown_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_TABLES", 2)
    told = [part(f"t{at}/part_{index}", 10 * at + 1) for at in range(5) for index in range(2)]

    found = summed(("ps", 0, told[::2]), ("ps", 1, told[1::2]), left_out=4)

    assert [table.name for table in found.tables] == ["t4", "t3"]
    # three tables in two parts, and four parts at each task
    assert found.left_out == 3 * 2 + 2 * 4
    assert found.rows == 2 * (1 + 11 + 21 + 31 + 41)


def test_a_task_that_tells_no_sums_has_those_of_its_tables() -> None:
    parts = TableParts()
    parts.add("ps", 0, [part("a", 30)], None, None, None)
    parts.add("ps", 1, [part("b", 10)], 10.0, 100.0, 0.0)

    found = parts.view()

    assert found is not None
    assert (found.rows, found.bytes, found.unevenness, found.left_out) == (40, 400, 1.5, 0)
