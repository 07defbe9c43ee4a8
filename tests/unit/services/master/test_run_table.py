"""A session's memory of its runs: names as given, graphs by signature, and which graph was unused for longest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_core import errors
from tenfold_services.master import run_table
from tenfold_services.master.client_graph import MAX_NAMES, ClientGraph, run_names
from tenfold_services.master.run_table import RunTable


def graph(feeds: tuple[str, ...], fetches: tuple[str, ...]) -> ClientGraph:
    return ClientGraph(run_names(feeds, fetches, ()).signature, cast("Any", None), 0, 0)


def test_every_order_and_spelling_of_the_names_is_the_same_graph() -> None:
    runs, made = RunTable(), graph(("x", "y"), ("z",))
    runs.put(made)

    first, second = runs.find(("x", "y:0"), ("z",), ()), runs.find(("y", "x"), ("z:0", "z"), ())

    assert first is not None
    assert second is not None
    assert first.graph is second.graph is made
    assert first.names.feeds == ("x:0", "y:0")
    assert (second.names.feeds, second.names.fetches) == (("y:0", "x:0"), ("z:0", "z:0"))
    assert runs.find(("x", "y:0"), ("z",), ()) is first
    assert runs.find(("x",), ("z",), ()) is None


def test_a_graph_that_is_given_up_is_not_found_by_any_name() -> None:
    runs, made, other = RunTable(), graph((), ("z",)), graph((), ("y",))
    runs.put(made)
    runs.put(other)
    assert runs.find((), ("z",), ()) is not None
    assert runs.find((), ("y",), ()) is not None

    runs.forget(made)
    runs.forget(made)

    assert runs.find((), ("z",), ()) is None
    assert runs.find((), ("y",), ()) is not None
    assert runs.graphs == [other]


def test_the_graph_unused_for_longest_comes_first() -> None:
    runs, graphs = RunTable(), [graph((), (name,)) for name in "abcd"]
    for each in graphs:
        runs.put(each)
    runs.touch(graphs[0])
    graphs[1].users = 1
    graphs[2].local = cast("Any", SimpleNamespace(used=True))

    assert runs.unused() == [graphs[3], graphs[0], graphs[2]]
    assert graphs[2].local is not None
    assert not graphs[2].local.used


def test_names_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_table, "_RUNS", 2)
    runs, made = RunTable(), graph((), ("z",))
    runs.put(made)

    for fetches in (("z",), ("z:0",), ("z", "z")):
        found = runs.find((), fetches, ())
        assert found is not None
        assert found.graph is made

    assert [given[1] for given in runs._runs] == [("z:0",), ("z", "z")]


def test_too_many_names_are_refused() -> None:
    with pytest.raises(errors.ResourceExhaustedError, match="16385 fetches"):
        RunTable().find((), ("z",) * (MAX_NAMES + 1), ())


def test_a_graph_is_used_when_it_is_put_asked_for_or_found() -> None:
    runs, first, second = RunTable(), graph((), ("a",)), graph((), ("b",))
    runs.put(first)
    runs.put(second)
    assert runs.unused() == [first, second]
    assert runs.graph_of(first.signature) is first
    assert runs.unused() == [second, first]
    assert runs.find((), ("b",), ()) is not None
    assert runs.unused() == [first, second]
    assert runs.find((), ("a",), ()) is not None
    assert runs.unused() == [second, first]
    assert runs.find((), ("b",), ()) is not None, "by the names as they were given before"
    assert runs.unused() == [first, second]
    assert runs.graph_of(graph((), ("c",)).signature) is None


def test_what_callers_ran_themselves_counts_once() -> None:
    runs, first, second = RunTable(), graph((), ("a",)), graph((), ("b",))
    for each in (first, second):
        each.local = cast("Any", SimpleNamespace(used=each is first))
        runs.put(each)
    assert runs.unused() == [second, first]
    runs.touch(second)
    assert runs.unused() == [first, second], "not used since"


def test_only_the_graph_that_is_there_is_given_up() -> None:
    runs, old, new = RunTable(), graph((), ("z",)), graph((), ("z",))
    runs.put(old)
    assert runs.find((), ("z",), ()) is not None
    runs.put(new)
    runs.forget(old)
    assert runs.graphs == [new]
    runs.clear()
    assert runs.graphs == []
    assert runs.find((), ("z",), ()) is None


@pytest.mark.parametrize(("few", "short", "kept"), [(3, 3, True), (2, 3, False), (3, 2, False)])
def test_only_few_and_short_names_are_remembered(
    monkeypatch: pytest.MonkeyPatch, few: int, short: int, kept: bool
) -> None:
    monkeypatch.setattr(run_table, "_FEW_NAMES", few)
    monkeypatch.setattr(run_table, "_SHORT_NAMES", short)
    runs = RunTable()
    made = ClientGraph(run_names(("x",), ("z",), ("t",)).signature, cast("Any", None), 0, 0)
    runs.put(made)
    found = runs.find(("x",), ("z",), ("t",))
    assert found is not None
    assert found.graph is made
    assert list(runs._runs) == [(("x",), ("z",), ("t",))] * kept


def test_names_of_a_graph_that_was_given_up_meanwhile_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, made = RunTable(), graph((), ("z",))
    runs.put(made)

    class Lock:
        """Another thread was faster."""

        def __enter__(self) -> None:
            runs._graphs.clear()

        def __exit__(self, *about: object) -> None: ...

    monkeypatch.setattr(runs, "_lock", Lock())
    found = runs.find((), ("z",), ())
    assert found is not None
    assert found.graph is made, "this step may still run it"
    assert runs._runs == {}
