"""Gathers, distinct ids, sums by id and updates of many tables in one call: to the bit what each node gives alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.kernel_runs import make_node
from tenfold_core import dtypes
from tenfold_core.errors import InvalidArgumentError, OpError
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.cpu._compiled import many_rows
from tenfold_kernels.cpu._many_rows import ManyRows, Member
from tenfold_kernels.cpu._many_updates import ManyUpdates
from tenfold_kernels.resources.state import ResourceManager, Variable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = np.float32
CACHE: Any = None
COUNT = 5


def scalar(value: float) -> np.ndarray[Any, Any]:
    return np.array(value, F)


def members_of(node: Any, inputs: int) -> tuple[Member, ...]:
    return tuple(Member(node, tuple(range(n * inputs, (n + 1) * inputs))) for n in range(COUNT))


def ways(loop: str, op: str, inputs: Sequence[Sequence[Any]], outputs: int = 1, **attrs: Any) -> Any:
    """(the results of the nodes by themselves, of one call), and how often the call ran the nodes after all."""
    node = make_node(op, list(inputs[0]), attrs, ResourceManager(), op)
    each = registry.lookup(node, "CPU")(node)
    width, ran = len(inputs[0]), []

    def alone(*flat: Any) -> Any:
        ran.append(1)
        made = [each(*flat[n * width : (n + 1) * width]) for n in range(COUNT)]
        return tuple(made if outputs == 1 else [value for pair in made for value in pair])

    ports = tuple((n, port) for n in range(COUNT) for port in range(outputs))
    call = ManyRows(loop, members_of(node, width), ports).build(alone, CACHE)
    flat = [value for given in inputs for value in given]
    apart, together = alone(*flat), None
    ran.clear()
    together = call(*flat)
    return apart, together, len(ran)


def same(apart: Any, together: Any) -> None:
    for mine, other in zip(together, apart, strict=True):
        assert mine.dtype == other.dtype
        assert mine.shape == other.shape
        assert mine.tobytes() == other.tobytes()


def ids_of(choose: np.random.Generator, limit: int, size: int, dtype: Any, stride: int) -> np.ndarray[Any, Any]:
    return choose.integers(0, limit, [size, stride]).astype(dtype)[:, stride // 2]


@pytest.mark.parametrize("seed", range(12))
def test_many_are_what_each_is(seed: int) -> None:
    choose = np.random.default_rng(seed)
    dtype, stride = (np.int32, np.int64)[seed % 2], 1 + seed % 3
    row = [(), (1,), (3,), (16,), (2, 5), (8, 4)][seed % 6]
    sizes = choose.integers(1, 2500, COUNT).tolist()
    tables = [choose.normal(size=(int(choose.integers(1, 90)), *row)).astype(F) for _ in sizes]
    ids = [ids_of(choose, len(table), size, dtype, stride) for table, size in zip(tables, sizes, strict=True)]

    *gathered, ran = ways(
        "gather", "GatherV2", [(t, i, np.array(0, np.int32)) for t, i in zip(tables, ids, strict=True)]
    )
    same(*gathered)
    *distinct, told = ways("distinct", "Unique", [(i,) for i in ids], 2, out_idx=(dtypes.int32, dtypes.int64)[seed % 2])
    same(*distinct)
    # as the gradient of a concatenation gives them, and some that belong to no sum
    wide = 7 if len(row) == 1 else 0
    rows = [choose.normal(size=(size, *row)).astype(F) for size in sizes]
    if wide:
        rows = [choose.normal(size=(size, row[0] + wide)).astype(F)[:, 2 : 2 + row[0]] for size in sizes]
    places = [np.where(choose.random(size) < 0.1, -1, choose.integers(0, size, size)).astype(dtype) for size in sizes]
    given = [(r, p, np.array(size, np.int32)) for r, p, size in zip(rows, places, sizes, strict=True)]
    *summed, added = ways("add_up", "UnsortedSegmentSum", given)
    same(*summed)
    assert (ran, told, added) == (0, 0, 0)


def test_rows_of_any_shape_of_indices_and_of_integers() -> None:
    choose = np.random.default_rng(1)
    inputs = [
        (choose.integers(0, 99, (7, 3)), choose.integers(0, 7, shape), np.array(0, np.int32))
        for shape in ((), (0,), (2, 3), (4,), (1, 2, 2))
    ]
    apart, together, ran = ways("gather", "GatherV2", inputs)
    same(apart, together)
    assert ran == 0


@pytest.mark.parametrize("bad", [-1, 6])
def test_a_bad_index_is_told_by_its_node(bad: int) -> None:
    inputs = [(np.ones((6, 2), F), np.array([1, bad if n == 3 else 2]), np.array(0, np.int32)) for n in range(COUNT)]
    with pytest.raises(InvalidArgumentError, match=rf"indices\[1\] = {bad} is not in \[0, 6\)"):
        ways("gather", "GatherV2", inputs)


@pytest.mark.parametrize(
    ("loop", "op", "odd"),
    [
        ("gather", "GatherV2", (np.ones((6, 4), F)[:, ::2], np.array([1, 2]), np.array(0, np.int32))),
        ("add_up", "UnsortedSegmentSum", (np.ones((2, 4), F)[:, ::2], np.array([0, 0]), np.array(1, np.int32))),
        ("add_up", "UnsortedSegmentSum", (np.ones((2, 2), F), np.array([0, 0]), np.array(0, np.int32))),
    ],
    ids=["a table in pieces", "rows in pieces", "no sums"],
)
def test_what_the_loops_do_not_take_each_node_does(loop: str, op: str, odd: tuple[Any, ...]) -> None:
    plain = (np.ones((6 if loop == "gather" else 2, 2), F), odd[1], odd[2])
    inputs = [plain] * 3 + [odd, plain]
    if loop == "add_up" and not odd[2]:
        with pytest.raises(InvalidArgumentError):
            ways(loop, op, inputs)
        return
    apart, together, ran = ways(loop, op, inputs)
    same(apart, together)
    assert ran == 1


def test_without_machine_code_each_node_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_rows, "loop", lambda name: lambda: 0)
    apart, together, ran = ways("distinct", "Unique", [(np.array([3, 3, n]),) for n in range(COUNT)], 2)
    same(apart, together)
    assert ran == 1


# -- updates -----------------------------------------------------------------------------------------------------------

#: Slots, scalars before the gradient and behind the indices, and the node's switches.
OPTIMIZERS: dict[str, tuple[int, tuple[float, ...], tuple[float, ...], dict[str, Any]]] = {
    "SparseApplyAdagrad": (1, (0.1,), (), {"update_slots": True}),
    "SparseApplyMomentum": (1, (0.1,), (0.9,), {"use_nesterov": True}),
    "SparseApplyFtrl": (2, (), (0.1, 0.01, 0.02, -0.5), {}),
    "ScatterSub": (0, (), (), {}),
    "ScatterAdd": (0, (), (), {}),
}


class Updates:
    """`COUNT` variables of one update, with slots, gradients and indices drawn by a seed."""

    def __init__(self, op: str, seed: int = 0, rows: Sequence[int] = (9, 4, 700, 1, 30)) -> None:
        slots, before, behind, switches = OPTIMIZERS[op]
        choose = np.random.default_rng(seed)
        self.variables: list[list[Variable]] = []
        self.inputs: list[list[Any]] = []
        for number, count in enumerate(rows):
            width, size = (3, 1, 16, 5, 2)[number], (2, 0, 900, 7, 50)[number]
            made = [
                self._variable(f"v{number}_{n}", np.abs(choose.normal(size=(count, width)))) for n in range(slots + 1)
            ]
            grad = choose.normal(size=(size, width)).astype(F)
            ids = choose.integers(0, count, size).astype((np.int32, np.int64)[seed % 2])
            given = [ids, grad] if op.startswith("Scatter") else [grad, ids]
            self.variables.append(made)
            self.inputs.append([*made, *map(scalar, before), *given, *map(scalar, behind)])
        self.node = make_node(op, self.inputs[0], switches, ResourceManager(), op)
        self.each = registry.lookup(self.node, "CPU")(self.node)
        self.ran = 0

    @staticmethod
    def _variable(name: str, value: Any) -> Variable:
        variable = Variable(name, dtypes.float32, TensorShape(value.shape))
        variable.assign(value.astype(F))
        return variable

    def alone(self, *flat: Any) -> Any:
        self.ran += 1
        width = len(self.inputs[0])
        for n in range(COUNT):
            self.each(*flat[n * width : (n + 1) * width])

    def call(self) -> Callable[..., Any]:
        width = len(self.inputs[0])
        return ManyUpdates(members_of(self.node, width), (), (False,) * width).build(self.alone, CACHE)

    @property
    def flat(self) -> list[Any]:
        return [value for given in self.inputs for value in given]

    @property
    def state(self) -> list[bytes]:
        return [variable.value.tobytes() for made in self.variables for variable in made]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("op", OPTIMIZERS)
def test_updates_of_many_are_those_of_each(op: str, seed: int) -> None:
    mine, other = Updates(op, seed), Updates(op, seed)
    call, before = mine.call(), mine.state
    for _ in range(3):
        call(*mine.flat)
        other.alone(*other.flat)
        assert mine.state == other.state
    assert mine.ran == 0
    assert mine.state != before


def test_rows_are_kept_for_a_save_that_reads_them_in_pieces() -> None:
    mine = Updates("SparseApplyAdagrad", rows=(9, 4, 20_000, 1, 30))
    large = mine.variables[2][0]
    before, place = large.value.copy(), large.anchor
    with large.lock:
        reading = large.begin_reading()
    assert reading is not None
    mine.call()(*mine.flat)
    assert mine.ran == 0
    assert large.anchor is place
    assert (large.value != before).any()
    np.testing.assert_array_equal(reading.copy(), before)


def test_a_bad_index_leaves_the_variables_before_its_own_as_the_nodes_do() -> None:
    mine, other = Updates("SparseApplyAdagrad"), Updates("SparseApplyAdagrad")
    for updates, run in ((mine, mine.call()), (other, other.alone)):
        updates.inputs[3][4] = np.array([0, 0, 0, 1, 0, 0, 0], np.int32)
        with pytest.raises(InvalidArgumentError, match="Index 1 at offset 3 in indices is out of range"):
            run(*updates.flat)
    assert mine.ran == 1
    assert mine.state == other.state


def test_one_variable_twice_is_updated_twice() -> None:
    mine, other = Updates("SparseApplyAdagrad"), Updates("SparseApplyAdagrad")
    for updates, run in ((mine, mine.call()), (other, other.alone)):
        updates.inputs[1] = updates.inputs[0]
        run(*updates.flat)
    assert mine.ran == 1
    assert mine.state == other.state


@pytest.mark.parametrize("op", ["SparseApplyAdagrad", "ScatterAdd"])
def test_an_uninitialized_variable_is_told_by_its_node(op: str) -> None:
    mine = Updates(op)
    mine.inputs[2][0] = Variable("empty", dtypes.float32, TensorShape([700, 16]))
    with pytest.raises(OpError, match="uninitialized value empty"):
        mine.call()(*mine.flat)


def test_scalars_without_a_meaning_are_told_by_the_node() -> None:
    mine = Updates("SparseApplyFtrl")
    for given in mine.inputs:
        given[5] = scalar(-1)
    with pytest.raises(InvalidArgumentError, match="lr is not a positive scalar"):
        mine.call()(*mine.flat)
