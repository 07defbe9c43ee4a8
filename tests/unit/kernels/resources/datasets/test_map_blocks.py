"""Maps of whole blocks: what fails does so for its element alone, states go on, and the faster way is taken."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, AtOnce, drained, numbers, plain
from tenfold_core import errors
from tenfold_kernels.resources.datasets import map_blocks, parallel, states
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Filter, Map
from tenfold_kernels.resources.datasets.map_blocks import Apart, Blocks
from tenfold_kernels.resources.datasets.parallel import ParallelMap


class Fails:
    """Doubles numbers; one of them cannot be had."""

    def __init__(self, wrong: int) -> None:
        self.wrong, self.single, self.together = wrong, list[int](), list[list[int]]()

    def one(self, n: Any) -> Any:
        self.single.append(int(n))
        if n == self.wrong:
            raise errors.InvalidArgumentError(None, None, f"not {self.wrong}")
        return n * 2

    def many(self, numbers: Any) -> Any:
        self.together.append(numbers.tolist())
        if self.wrong in numbers:
            raise errors.InvalidArgumentError(None, None, "some of them")
        return numbers * 2


def test_an_element_that_fails_does_so_by_itself() -> None:
    body = Fails(5)
    machine = Map(INT, SCALAR, numbers(12), AtOnce(body.one, body.many, is_sure=False), ()).iterate(Run())
    assert machine.block is not None

    assert machine.block(4)[0].tolist() == [0, 2, 4, 6]  # type: ignore[index]
    assert machine.block(4) is None
    assert body.single == [], "nothing is done before it is asked for"
    assert plain(machine.following()) == 8
    with pytest.raises(errors.InvalidArgumentError, match="not 5"):
        machine.following()
    assert machine.block(4) is None, "the rest of a block that failed comes first"
    assert [plain(machine.following()) for _ in range(2)] == [12, 14]
    assert machine.block(4)[0].tolist() == [16, 18, 20, 22]  # type: ignore[index]
    assert machine.following() is None


def test_what_was_given_back_is_saved() -> None:
    def make() -> Machine:
        body = Fails(5)
        return Map(INT, SCALAR, numbers(9), AtOnce(body.one, body.many, is_sure=False), ()).iterate(Run())

    machine = make()
    assert machine.block is not None
    assert machine.block(6) is None
    assert plain(machine.following()) == 0
    other = make()
    other.restore(states.from_bytes(states.to_bytes(machine.save())))

    assert [plain(other.following()) for _ in range(4)] == [2, 4, 6, 8]
    with pytest.raises(errors.InvalidArgumentError, match="not 5"):
        other.following()
    assert drained(other) == [12, 14, 16]


def test_an_error_of_the_source_comes_behind_what_was_before_it() -> None:
    body = Fails(-1)
    inner = Fails(3)
    source = Map(INT, SCALAR, numbers(6), AtOnce(inner.one, inner.many, is_sure=False), ())
    filtered = Filter(source, AtOnce(lambda n: n >= 0, lambda n: n >= 0), ())
    machine = Map(INT, SCALAR, filtered, AtOnce(body.one, body.many, is_sure=False), ()).iterate(Run())
    assert machine.block is not None

    assert machine.block(5)[0].tolist() == [0, 4, 8]  # type: ignore[index]
    with pytest.raises(errors.InvalidArgumentError, match="not 3"):
        machine.block(5)
    assert machine.block(5)[0].tolist() == [16, 20]  # type: ignore[index]


def test_elements_of_different_shapes_are_called_one_by_one() -> None:
    body = Fails(-1)
    uneven = Map(INT, ANY, numbers(3), AtOnce(lambda n: np.arange(n), lambda n: n, is_sure=False), ())
    uneven._function.by_rows = lambda ranks: None  # type: ignore[method-assign]
    machine = Map(INT, ANY, uneven, AtOnce(lambda n: n.sum(), body.many, is_sure=False), ())
    machine._input.shapes = SCALAR
    assert drained(machine) == [0, 0, 1]


@pytest.mark.parametrize("together", [1, 100])
@pytest.mark.parametrize(("calls", "on_threads"), [(1, False), (3, False), (3, True)])
def test_the_faster_way_is_taken(together: int, calls: int, on_threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of our own, on which an element takes ten units alone."""
    if on_threads:
        monkeypatch.setattr(parallel, "_LONG", 0.0)
    now, ways = [0], list[str]()

    def one(n: Any) -> Any:
        now[0] += 10
        ways.append("one")
        return n

    def many(numbers: Any) -> Any:
        now[0] += together * len(numbers)
        ways.append("many")
        return numbers

    monkeypatch.setattr(map_blocks, "clock", lambda: now[0])
    monkeypatch.setattr(map_blocks, "_SIZE", 4)
    function = AtOnce(one, many, is_sure=False)
    mapped: Dataset = Map(INT, SCALAR, numbers(400), function, ())
    if calls > 1:
        mapped = ParallelMap(INT, SCALAR, numbers(400), function, (), True, calls, True)
    machine = Batch(INT, ANY, mapped, 4, False).iterate(Run())

    found = [plain(machine.following()) for _ in range(100)]

    assert [n for batch in found for n in batch] == list(range(400))
    assert ways[-1] == ("many" if together == 1 else "one")
    assert {"one", "many"} == set(ways)


# -- sources whose blocks are given back -------------------------------------------------------------------------------


class Scripted:
    """A source that gives what it is told to: numbers, an error in its turn, or arrays of other shapes."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.restored: list[Any] = []

    def following(self) -> Any:
        if not self.items:
            return None
        item = self.items.pop(0)
        if isinstance(item, errors.OpError):
            raise item
        return (np.asarray(item),)

    def machine(self, block: Any = None) -> Machine:
        return Machine(self.following, lambda: len(self.items), self.restored.append, block)


TORN = errors.DataLossError(None, None, "torn")


def taken(apart: Apart, most: int) -> Any:
    found = apart.rows(most, Run())
    return None if found is None else found[0].tolist()


def test_elements_are_stacked_as_far_as_they_are_asked_for() -> None:
    apart = Apart(Scripted(1, 2, 3).machine())
    assert taken(apart, 2) == [1, 2]
    assert taken(apart, 2) == [3]
    assert taken(apart, 2) is None
    assert apart.following() is None


def test_an_error_behind_some_elements_comes_with_the_next_request() -> None:
    for ask in (lambda apart: taken(apart, 5), lambda apart: apart.following()):
        apart = Apart(Scripted(1, 2, TORN, 3).machine())
        assert taken(apart, 5) == [1, 2]
        assert apart.save() == ([], (TORN.code, "torn"), 1)
        with pytest.raises(errors.DataLossError, match="torn"):
            ask(apart)
        assert apart.save() == ([], None, 1)
        assert taken(apart, 5) == [3]


def test_an_error_before_any_element_comes_at_once() -> None:
    apart = Apart(Scripted(TORN, 3).machine())
    with pytest.raises(errors.DataLossError, match="torn"):
        apart.rows(5, Run())
    assert taken(apart, 5) == [3]


def test_a_cancellation_leaves_what_was_taken_for_the_next() -> None:
    apart = Apart(Scripted(1, 2, errors.CancelledError(None, None, "ended"), 3).machine())
    with pytest.raises(errors.CancelledError):
        apart.rows(5, Run())
    assert taken(apart, 5) is None, "while some are left"
    assert [plain(apart.following()) for _ in range(3)] == [1, 2, 3]
    closed, run = Apart(Scripted(1, 2).machine()), Run()
    run.close()
    with pytest.raises(errors.CancelledError):
        closed.rows(5, run)


def test_elements_of_other_shapes_come_one_by_one() -> None:
    apart = Apart(Scripted([1], [2, 3], [4]).machine())
    assert taken(apart, 5) is None
    assert [plain(apart.following()) for _ in range(3)] == [[1], [2, 3], [4]]


def test_blocks_of_the_source_are_blocks() -> None:
    asked: list[int] = []

    def block(most: int) -> Any:
        asked.append(most)
        return (np.arange(2),) if len(asked) == 1 else None

    apart = Apart(Scripted(7).machine(block))
    assert taken(apart, 5) == [0, 1]
    assert taken(apart, 4) == [7]
    assert asked == [5, 4]


def test_rows_are_given_back_and_saved() -> None:
    source = Scripted(9)
    apart = Apart(source.machine())
    apart.give_back((np.array([[1, 2], [3, 4]]), np.array([5, 6])))
    held, failure, inner = apart.save()
    assert ([plain(element) for element in held], failure, inner) == ([([1, 2], 5), ([3, 4], 6)], None, 1)
    other = Apart(Scripted().machine())
    other.restore(([[np.array(1)]], (TORN.code, "torn"), "where"))
    assert plain(other.following()) == 1
    with pytest.raises(errors.DataLossError, match="torn"):
        other.following()
    assert other.following() is None
    apart.machine.restore(([], None, "there"))
    assert source.restored == ["there"]


# -- which way is taken ------------------------------------------------------------------------------------------------


def test_a_way_is_as_fast_as_its_fastest_group() -> None:
    way = map_blocks._Way(4)
    assert (way.best, way.is_known) == (float("inf"), False)
    way.note(3, 30)
    assert way.best == float("inf")
    way.note(2, 20)
    assert way.best == 10
    way.note(4, 8)
    way.note(8, 80)
    assert way.best == 2
    for _ in range(2):
        way.note(4, 4)
    assert not way.is_known
    way.note(4, 400)
    assert (way.best, way.is_known) == (1, True)


def ways(together: int, alone: int, *, sure: bool = False) -> tuple[Blocks, list[str]]:
    """Of a map over a source without end; a call takes so long for an element."""
    now, calls = [0], list[str]()

    def many(values: Any) -> Any:
        calls.append("many")
        now[0] += together * len(values)
        return values

    function = AtOnce(lambda n: n, many, is_sure=sure)
    source = Apart(Machine(lambda: (np.asarray(1),)))
    blocks = Blocks(source, Run(), lambda: function.by_rows(()), ())

    def one() -> Any:
        calls.append("one")
        now[0] += alone
        return (np.asarray(1),)

    blocks.alone = blocks.timed(one)  # type: ignore[attr-defined]
    map_blocks.clock = lambda: now[0]  # type: ignore[assignment]
    return blocks, calls


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_blocks, "clock", map_blocks.clock)
    monkeypatch.setattr(map_blocks, "_SIZE", 2)


def one_block(blocks: Blocks, size: int) -> None:
    """As a batch takes it: a block, or elements where there is none."""
    if blocks.block(size) is None:
        for _ in range(size):
            blocks.alone()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize(("together", "chosen"), [(9, "many"), (10, "many"), (11, "one")])
def test_both_ways_are_timed_and_the_faster_one_is_taken(together: int, chosen: str) -> None:
    blocks, calls = ways(together, 10)
    for number in range(6):
        one_block(blocks, 4)
        assert calls == ["many"] * (number + 1)
        assert not blocks.is_known_as_faster()
    for _ in range(3):
        one_block(blocks, 4)
    assert calls == ["many"] * 6 + ["one"] * 12
    assert blocks.is_known_as_faster() is (chosen == "many")
    one_block(blocks, 4)
    assert calls[-1] == chosen


@pytest.mark.usefixtures("own_clock")
def test_ways_are_timed_again_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (map_blocks._AGAIN, map_blocks._SELDOM, map_blocks._GROUPS) == (4096, 131072, 6)
    monkeypatch.setattr(map_blocks, "_AGAIN", 16)
    monkeypatch.setattr(map_blocks, "_SELDOM", 100)
    blocks, calls = ways(1, 10)
    kinds = []
    for _ in range(120):
        one_block(blocks, 4)
        kinds.append(calls[-1])
    lengths = [len(list(group)) for kind, group in itertools.groupby(kinds) if kind == "many"]
    # 16 elements are 4 blocks, and the next 6 are timed anew; then it is 64, 100 and 100 elements
    assert lengths[:5] == [6, 10, 22, 31, 31]


@pytest.mark.usefixtures("own_clock")
def test_a_function_that_is_surely_faster_is_not_timed() -> None:
    blocks, calls = ways(1000, 1, sure=True)
    for _ in range(20):
        one_block(blocks, 4)
    blocks.alone()  # type: ignore[attr-defined]
    assert calls == ["many"] * 20 + ["one"]
    assert not blocks.is_known_as_faster()


def test_a_function_that_is_surely_faster_fails_as_a_whole() -> None:
    function = AtOnce(lambda n: n, failing_rows, is_sure=True)
    blocks = Blocks(Apart(Scripted(1, 2, 3).machine()), Run(), lambda: function.by_rows(()), ())
    with pytest.raises(errors.InvalidArgumentError, match="rows"):
        blocks.block(2)


def failing_rows(values: Any) -> Any:
    raise errors.InvalidArgumentError(None, None, "rows")


def test_a_cancelled_call_is_not_done_anew() -> None:
    def cancelled(values: Any) -> Any:
        raise errors.CancelledError(None, None, "ended")

    function = AtOnce(lambda n: n, cancelled, is_sure=False)
    blocks = Blocks(Apart(Scripted(1, 2, 3).machine()), Run(), lambda: function.by_rows(()), ())
    with pytest.raises(errors.CancelledError, match="ended"):
        blocks.block(2)


def test_captured_values_follow_the_rows() -> None:
    function = AtOnce(lambda n: n, lambda rows, by: rows * by)
    blocks = Blocks(Apart(Scripted(1, 2, 3).machine()), Run(), lambda: function.by_rows(()), (np.asarray(10),))
    found = blocks.block(2)
    assert found is not None
    assert found[0].tolist() == [10, 20]


def test_it_is_looked_for_once_how_a_function_is_called_for_many() -> None:
    looked: list[int] = []
    blocks = Blocks(Apart(Scripted(1).machine()), Run(), lambda: looked.append(1), ())
    assert [blocks.block(2), blocks.block(2)] == [None, None]
    assert looked == [1]


def test_elements_of_another_number_of_components_are_not_cut_short() -> None:
    elements = iter([(np.asarray(1), np.asarray(2)), (np.asarray(3),)])
    with pytest.raises(ValueError, match=r"zip\(\)"):
        Apart(Machine(lambda: next(elements, None))).rows(5, Run())


@pytest.mark.usefixtures("own_clock")
def test_blocks_of_one_element_are_groups_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_blocks, "_AGAIN", 8)
    blocks, calls = ways(20, 10)
    for _ in range(6):
        one_block(blocks, 1)
    assert calls == ["many"] * 6
    for _ in range(12):
        one_block(blocks, 1)
    assert calls == ["many"] * 6 + ["one"] * 12
    for _ in range(8):
        one_block(blocks, 1)
    assert calls[18:] == ["one"] * 8
    for _ in range(7):
        one_block(blocks, 1)
    assert calls[26:] == ["many"] * 6 + ["one"], "timed again"
