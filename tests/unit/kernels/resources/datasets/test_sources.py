"""Datasets without inputs: every way to their elements, blocks, states, and how a generator ends."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, INT, SCALAR, SOON_S, Called, drained, ints, one, plain
from tenfold_core import dtypes, errors
from tenfold_kernels.philox import Philox
from tenfold_kernels.resources.datasets import sources
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Machine, Run
from tenfold_kernels.resources.datasets.sources import (
    Generated,
    Listed,
    RandomNumbers,
    Range,
    Records,
    Slices,
    SparseSlices,
    Tensors,
    row,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# ---- what is there ---------------------------------------------------------------------------------------------------

SOURCES: dict[str, tuple[Callable[[], Dataset], list[Any]]] = {
    "tensors": (lambda: Tensors(INT, SCALAR, (ints(1, 2), one(3))), [([1, 2], 3)]),
    "listed": (lambda: Listed(INT, ANY, [(ints(1),), (ints(2, 3),), (ints(),)]), [[1], [2, 3], []]),
    "nothing listed": (lambda: Listed(INT, ANY, []), []),
    "slices": (
        lambda: Slices(INT * 2, SCALAR * 2, (ints(1, 2, 3), ints([4], [5], [6]))),
        [(1, [4]), (2, [5]), (3, [6])],
    ),
    "no slices": (lambda: Slices(INT, SCALAR, (ints(),)), []),
    "no components": (lambda: Slices((), (), ()), []),
    "range": (lambda: Range(INT, SCALAR, 2, 12, 3), [2, 5, 8, 11]),
    "range down": (lambda: Range(INT, SCALAR, 5, -2, -3), [5, 2, -1]),
    "range of nothing": (lambda: Range(INT, SCALAR, 5, 5, 1), []),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_elements_by_number_by_blocks_and_after_a_restore(kind: str) -> None:
    make, wanted = SOURCES[kind]
    dataset, run, count = make(), Run(), len(wanted)
    assert drained(dataset) == drained(dataset) == wanted
    assert dataset.cardinality() == count
    assert [plain(dataset.at(number, run)) for number in range(count)] == wanted
    for beyond in (-1, count):
        with pytest.raises(errors.OutOfRangeError, match=rf"\[0, {count}\): {beyond}$"):
            dataset.at(beyond, run)
    for taken in range(count + 1):
        machine, other = dataset.iterate(run), dataset.iterate(run)
        for _ in range(taken):
            machine()
        other()
        other.restore(machine.save())
        assert drained(other) == drained(machine) == wanted[taken:]


@pytest.mark.parametrize("kind", ["slices", "no slices", "range", "range down", "range of nothing"])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_blocks(kind: str, size: int) -> None:
    make, wanted = SOURCES[kind]
    machine, found = make().iterate(Run()), list[Any]()
    assert machine.block is not None
    while (block := machine.block(size)) is not None:
        assert len(block[0]) == min(size, len(wanted) - len(found))
        found += [plain([np.asarray(array[number]) for array in block]) for number in range(len(block[0]))]
        other = make().iterate(Run())
        other.restore(machine.save())
        assert drained(other) == wanted[len(found) :]
    assert found == wanted
    assert machine() is None


def test_types_of_a_range() -> None:
    for dtype in (dtypes.int32, dtypes.int64, dtypes.uint8):
        made = Range((dtype,), SCALAR, 1, 4, 1)
        machine = made.iterate(Run())
        first, rest = machine(), machine.block and machine.block(9)
        assert first is not None
        assert rest is not None
        assert {first[0].dtype, rest[0].dtype, made.at(1, Run())[0].dtype} == {np.dtype(dtype.as_numpy_dtype)}
    assert made.scalars == 3
    with pytest.raises(errors.InvalidArgumentError, match=r"^step must be a non-zero integer\.$"):
        Range(INT, SCALAR, 0, 3, 0)


def test_rows_are_copies() -> None:
    whole = np.arange(6).reshape(3, 2)
    found = row(whole, 1)
    assert found.tolist() == [2, 3]
    assert not found.flags.writeable
    assert not np.may_share_memory(found, whole)
    texts = np.array([b"a", b"b"], object)
    assert (row(texts, 1).shape, row(texts, 1).item()) == ((), b"b")


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ((one(1),), "^All components must be at least 1-dimensional$"),
        ((ints(1), one(1)), "^All components must be at least 1-dimensional$"),
        ((ints(1, 2), ints(1, 2), ints(1)), "^All components must have the same size in the 0th dimension$"),
        ((ints(1), ints(1, 2)), "^All components must have the same size in the 0th dimension$"),
    ],
)
def test_components_that_are_no_slices(arrays: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        Slices(INT, SCALAR, arrays)


# ---- sparse tensors --------------------------------------------------------------------------------------------------


def sparse(rows: list[int], count: int) -> SparseSlices:
    indices = np.array([[number, place, 7] for place, number in enumerate(rows)], np.int64).reshape(-1, 3)
    return SparseSlices(dtypes.float32, indices, np.arange(len(rows), dtype=np.float32) * 10, ints(count, 9, 8))


def test_rows_of_a_sparse_tensor() -> None:
    made = sparse([0, 0, 2], 4)
    wanted = [([[0, 7], [1, 7]], [0, 10], [9, 8]), ([], [], [9, 8]), ([[2, 7]], [20], [9, 8]), ([], [], [9, 8])]
    assert drained(made) == wanted
    assert made.cardinality() == 4
    assert [dtype.name for dtype in made.types] == ["int64", "float32", "int64"]
    assert [shape.as_list() for shape in made.shapes] == [[None, 2], [None], [2]]
    for taken in range(5):
        machine, other = made.iterate(Run()), made.iterate(Run())
        for _ in range(taken):
            machine()
        other()
        other.restore(machine.save())
        assert drained(other) == drained(machine) == wanted[taken:]
    element = made.iterate(Run())()
    assert element is not None
    assert not any(array.flags.writeable for array in element)
    assert not any(np.may_share_memory(array, made._indices) for array in element)


def test_indices_of_a_sparse_tensor_stand_in_order() -> None:
    assert len(drained(sparse([], 2))) == 2
    assert drained(sparse([], 0)) == []
    for rows in ([1, 1, 3], [2]):
        sparse(rows, 4)
    for rows in ([1, 0], [0, 2, 1]):
        with pytest.raises(errors.UnimplementedError, match="The SparseTensor must be ordered in the batch dimension"):
            sparse(rows, 4)


# ---- numbers ---------------------------------------------------------------------------------------------------------


def test_numbers_of_a_generator() -> None:
    def wanted(first: int, second: int) -> list[int]:
        words = Philox(first % (1 << 64), (second % (1 << 64)) << 64).single()
        return [next(words) for _ in range(6)]

    drawn = iter([(3, 4), (-1, -2), (5, 6)])
    made = RandomNumbers(INT, SCALAR, lambda: next(drawn))
    first, second, third = (made.iterate(Run()) for _ in range(3))
    assert drained(first, most=6) == wanted(3, 4)
    assert drained(second, most=6) == wanted(-1, -2), "each pass asks for its seeds"
    assert made.cardinality() == INFINITE
    assert third.save() == (5, 6, 0)
    third.restore((3, 4, 2))
    assert third.save() == (3, 4, 2)
    assert drained(third, most=3) == wanted(3, 4)[2:5]
    assert third.save() == (3, 4, 5)
    third.restore((-1, -2, 0))
    assert drained(third, most=6) == wanted(-1, -2)
    element = third()
    assert element is not None
    assert element[0].dtype == np.int64


# ---- records ---------------------------------------------------------------------------------------------------------


class Files:
    """Files of three records each, of which some fail; remembers which were opened."""

    def __init__(self, **fails: int) -> None:
        self.opened: list[bytes] = []
        self._fails = fails

    def __call__(self, name: bytes) -> Iterator[bytes]:
        self.opened.append(name)
        for number in range(3):
            if self._fails.get(name.decode()) == number:
                raise errors.DataLossError(None, None, f"{name.decode()} is torn")
            yield name + str(number).encode()


def events(machine: Machine, size: int) -> list[Any]:
    """Records one by one, or by blocks of that size; an error is its text."""
    found: list[Any] = []
    assert machine.block is not None
    while True:
        try:
            block = machine.block(size) if size else machine()
        except errors.DataLossError as error:
            found.append(error.message)
            continue
        if block is None:
            return found
        if size:
            assert 1 <= len(block[0]) <= size
            assert block[0].dtype == object
            found += block[0].tolist()
        else:
            assert block[0].shape == ()
            found.append(block[0].item())


@pytest.mark.parametrize("size", [0, 1, 2, 3, 9])
@pytest.mark.parametrize(
    ("fails", "wanted"),
    [
        ({}, [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]),
        ({"a": 0}, ["a is torn", b"b0", b"b1", b"b2"]),
        ({"a": 1}, [b"a0", "a is torn", b"b0", b"b1", b"b2"]),
        ({"a": 2, "b": 1}, [b"a0", b"a1", "a is torn", b"b0", "b is torn"]),
    ],
)
def test_an_error_ends_its_file(size: int, fails: dict[str, int], wanted: list[Any]) -> None:
    files = Files(**fails)
    machine = Records([b"a", b"b"], files).iterate(Run())
    assert files.opened == []
    assert events(machine, size) == wanted
    assert files.opened == [b"a", b"b"]
    assert machine() is None
    assert machine.block is not None
    assert machine.block(2) is None


@pytest.mark.parametrize("taken", range(7))
@pytest.mark.parametrize("size", [0, 2])
def test_records_go_on_where_they_were(taken: int, size: int) -> None:
    whole = [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2"]
    dataset = Records([b"a", b"b"], Files())
    machine, have = dataset.iterate(Run()), 0
    assert machine.block is not None
    while have < taken:
        block = machine.block(min(size, taken - have)) if size else machine()
        have += len(block[0]) if size and block is not None else 1
    other = dataset.iterate(Run())
    other()
    other.restore(machine.save())
    assert events(other, size) == whole[taken:]
    assert events(machine, 0) == whole[taken:]


def test_records_of_files_by_their_numbers() -> None:
    """What is saved names a file and how many of its records were given; an unopened one is opened when asked."""
    files = Files()
    machine = Records([b"a", b"b"], files).iterate(Run())
    assert machine.save() == (0, 0)
    machine()
    machine()
    assert machine.save() == (0, 2)
    machine()
    machine()
    assert machine.save() == (1, 1)
    files.opened.clear()
    machine.restore((1, 0))
    assert files.opened == []
    machine.restore((0, 2))
    assert files.opened == [b"a"]
    assert events(machine, 0) == [b"a2", b"b0", b"b1", b"b2"]
    machine.restore((0, 9))
    assert events(machine, 0) == [b"b0", b"b1", b"b2"], "a file that has become shorter"
    closed = Run()
    other = Records([b"a"], files).iterate(closed)
    closed.close()
    with pytest.raises(errors.CancelledError):
        other.restore((0, 1))


def test_an_error_that_waits_is_forgotten_by_a_restore() -> None:
    machine = Records([b"a", b"b"], Files(a=2)).iterate(Run())
    assert machine.block is not None
    block = machine.block(5)
    assert block is not None
    assert block[0].tolist() == [b"a0", b"a1"]
    machine.restore((1, 0))
    assert events(machine, 0) == [b"b0", b"b1", b"b2"]


# ---- generators ------------------------------------------------------------------------------------------------------


class Steps:
    """The three functions of a generator that counts down from what it captured; remembers its calls."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.left = [2, 1]
        self.ended = threading.Event()

    def dataset(self, end: Callable[..., Any] | None = None) -> Generated:
        return Generated(
            INT, SCALAR, (Called(self.begin), (one(5),)), (Called(self.following), (one(10),)),
            (Called(end or self.end), (one(7),)),
        )  # fmt: skip

    def begin(self, start: Any) -> Any:
        self.seen.append("begin")
        return start, start + 1

    def following(self, a: Any, b: Any, step: Any) -> Any:
        if not self.left:
            raise errors.OutOfRangeError(None, None, "over")
        return a * 100 + b * step + self.left.pop()

    def end(self, a: Any, b: Any, last: Any) -> Any:
        self.seen.append(("end", int(a), int(b), int(last)))
        self.ended.set()
        return 0


def test_a_generator_ends_once() -> None:
    steps = Steps()
    dataset = steps.dataset()
    machine = dataset.iterate(Run())
    assert steps.seen == [], "begun when it is asked"
    assert [plain(machine()), plain(machine())] == [561, 562]
    assert steps.seen == ["begin"]
    assert [machine(), machine()] == [None, None]
    assert steps.seen == ["begin", ("end", 5, 6, 7)]
    del machine
    gc.collect()
    assert steps.seen == ["begin", ("end", 5, 6, 7)], "and not again"
    assert (dataset.cardinality(), dataset.is_slow, len(dataset.functions)) == (UNKNOWN, True, 3)


def test_a_generator_that_nobody_can_ask_is_ended_by_a_thread() -> None:
    steps = Steps()
    machine = steps.dataset().iterate(Run())
    machine()
    del machine
    gc.collect()
    assert steps.ended.wait(SOON_S)
    assert steps.seen == ["begin", ("end", 5, 6, 7)]


def test_a_generator_that_cannot_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*values: Any) -> Any:
        raise errors.DataLossError(None, None, "torn")

    machine = Steps().dataset(fails).iterate(Run())
    for _ in range(2):
        machine()
    with pytest.raises(errors.DataLossError, match="torn"):
        machine()
    assert machine() is None
    work: list[Any] = []

    class Pool:
        submit = staticmethod(work.append)

    monkeypatch.setattr(sources, "pool", Pool)
    forgotten = Steps().dataset(fails).iterate(Run())
    forgotten()
    del forgotten
    gc.collect()
    (call,) = work
    assert call() is None, "nobody is there to be told"


def test_each_pass_begins_anew() -> None:
    steps = Steps()
    dataset = steps.dataset()
    drained(dataset)
    steps.left = [4]
    assert drained(dataset) == [564]
    assert steps.seen == ["begin", ("end", 5, 6, 7)] * 2


def test_another_error_is_no_end_of_a_generator() -> None:
    steps = Steps()

    def following(*values: Any) -> Any:
        if not steps.left:
            steps.left = [9]
            raise errors.DataLossError(None, None, "torn")
        return one(steps.left.pop())

    steps.following = following  # type: ignore[method-assign]
    machine = steps.dataset().iterate(Run())
    assert [plain(machine()), plain(machine())] == [1, 2]
    with pytest.raises(errors.DataLossError, match="torn"):
        machine()
    assert plain(machine()) == 9
    assert steps.seen == ["begin"]


def test_a_generator_is_not_ended_with_the_process() -> None:
    """Its functions are over by then."""
    begun = sources._Begun((one(1),), (Called(lambda state: 0), ()))
    assert begun._forgotten.alive
    assert not begun._forgotten.atexit
    begun.end(Run())
    assert not begun._forgotten.alive
