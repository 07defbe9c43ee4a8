"""Maps of whole blocks: what fails does so for its element alone, states go on, and the faster way is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, AtOnce, drained, numbers, plain
from tenfold_core import errors
from tenfold_kernels.resources.datasets import map_blocks, parallel, states
from tenfold_kernels.resources.datasets.batches import Batch
from tenfold_kernels.resources.datasets.core import Dataset, Machine, Run
from tenfold_kernels.resources.datasets.functional import Filter, Map
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
