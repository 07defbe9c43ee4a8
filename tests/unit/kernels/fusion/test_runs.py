"""A run's text, and the function around it: what fits is computed, what does not goes to the nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_kernels.fusion import runs
from tenfold_kernels.fusion.runs import FusedInput, FusedOp, FusedRun, fused, write_source

F32, F64, I32, BOOL = map(np.dtype, ("float32", "float64", "int32", "bool"))


class AsPython:
    """Stands for FusionCache: what would be compiled, as it is; refuses what Numba would not take."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.source = self.signature = ""

    def function(self, source: str, signature: str) -> Any:
        self.source, self.signature = source, signature
        namespace: dict[str, Any] = {"math": math, "np": np, "add_any_order": lambda x, y: x + y}
        exec(source, namespace)
        kinds = signature.removeprefix("types.boolean(").removesuffix(")").split(", types.")

        def run(*given: Any) -> Any:
            self.calls.append(given)
            assert len(given) == len(kinds), signature
            for value, kind in zip(given, kinds, strict=True):
                if "Array" in kind and (not value.flags.c_contiguous or f", {value.ndim}, 'C'" not in kind):
                    raise TypeError("no matching definition")
            return namespace["run"](*given)

        return run


def nodes(*values: Any) -> Any:
    return ("the nodes", *values)


def made(run: FusedRun, fallback: Any = nodes) -> tuple[Any, AsPython]:
    cache = AsPython()
    return fused(run, fallback, cache), cache  # type: ignore[arg-type]


def op(name: str, *sources: Any, dtype: Any = F32, reduce: Any = "") -> FusedOp:
    return FusedOp(name, (), sources, dtype, reduce)


def given(*roles: str, dtype: Any = F32) -> tuple[FusedInput, ...]:
    return tuple(FusedInput(dtype, role) for role in roles)  # type: ignore[arg-type]


A, B, C = ("input", 0), ("input", 1), ("input", 2)


# ---- scalars ---------------------------------------------------------------------------------------------------------


def test_scalars_of_one_type_share_a_vector() -> None:
    inputs = (FusedInput(F32, "scalar"), FusedInput(I32, "scalar"), FusedInput(BOOL, "scalar"))
    ops = (
        op("Neg", A),
        op("Less", A, ("op", 0), dtype=BOOL),
        op("Add", B, ("constant", 0), dtype=I32),
        op("Square", ("op", 0)),
        op("LogicalNot", C, dtype=BOOL),
    )
    run = FusedRun(0, inputs, ops, ((5, I32),), (0, 1, 2, 3, 4))
    call, cache = made(run)
    assert cache.source.splitlines() == [
        "def run(a0, a1, a2, o0, o1, o2):",
        "    k0 = np.int32(5)",
        "    x0 = np.float32(a0)",
        "    x1 = np.int32(a1)",
        "    x2 = bool(a2)",
        "    t0 = -x0",
        "    t1 = x0 < t0",
        "    t2 = np.int32(x1 + k0)",
        "    t3 = t0 * t0",
        "    t4 = not x2",
        "    o0[0] = t0",
        "    o0[1] = t3",
        "    o1[0] = t1",
        "    o1[1] = t4",
        "    o2[0] = t2",
        "    return False",
    ]
    vectors = ", ".join(f"types.Array(types.{name}, 1, 'C')" for name in ("float32", "boolean", "int32"))
    assert cache.signature == f"types.boolean(types.float64, types.int64, types.boolean, {vectors})"
    values = np.array(-2, F32), np.array(7, I32), np.array(False)
    found = call(*values)
    assert [(each.shape, each.dtype, each.item()) for each in found] == [
        *(((), F32, 2), ((), BOOL, True), ((), I32, 12), ((), F32, 4), ((), BOOL, True))
    ]
    assert cache.calls[0][:3] == (-2, 7, False)
    for place in range(3):
        odd = [*values]
        odd[place] = odd[place].reshape(1)
        assert call(*odd)[0] == "the nodes"


def test_one_scalar_is_an_array_of_its_own() -> None:
    call, _ = made(FusedRun(0, given("scalar"), (op("Neg", A),), (), (0,)))
    found = call(np.array(3, F32))
    assert (type(found), found.shape, found.item()) == (np.ndarray, (), -3)


# ---- arrays ----------------------------------------------------------------------------------------------------------


def test_arrays_of_one_shape_and_a_scalar() -> None:
    run = FusedRun(2, given("full", "scalar", "full"), (op("Add", A, B), op("Mul", ("op", 0), C)), (), (0, 1))
    call, cache = made(run)
    array = "types.Array(types.float32, 2, 'C', readonly=True)"
    out = "types.Array(types.float32, 2, 'C')"
    assert cache.signature == f"types.boolean({array}, types.float64, {array}, {out}, {out})"
    x, y = np.arange(6, dtype=F32).reshape(2, 3), np.full((2, 3), 2, F32)
    total, product = call(x, np.array(1, F32), y)
    assert total.tolist() == (x + 1).tolist()
    assert product.tolist() == (2 * x + 2).tolist()
    assert (total.dtype, total.shape) == (F32, (2, 3))
    for odd in (np.zeros((3, 2), F32), np.zeros((2, 4), F32), np.zeros(3, F32)):
        assert call(x, np.array(1, F32), odd)[0] == "the nodes"
    assert call(x, np.ones(1, F32), y)[0] == "the nodes"
    empty = np.zeros((0, 3), F32)
    assert [each.shape for each in call(empty, np.array(1, F32), empty)] == [(0, 3)] * 2


def test_rows_and_columns_of_a_matrix() -> None:
    ops = (op("Add", A, B), op("Mul", ("op", 0), C), op("BiasAddGrad", ("op", 1), reduce="rows"))
    call, cache = made(FusedRun(3, given("full", "row", "column"), ops, (), (0, 1, 2)))
    assert "types.Array(types.float32, 1, 'C', readonly=True)" in cache.signature
    x, row = np.arange(12, dtype=F32).reshape(2, 2, 3), F32.type([1, 2, 3])
    column = np.arange(4, dtype=F32).reshape(2, 2, 1)
    total, product, summed = call(x, row, column)
    assert total.tolist() == (x + row).tolist()
    assert product.tolist() == ((x + row) * column).tolist()
    assert (summed.shape, summed.tolist()) == ((3,), ((x + row) * column).sum((0, 1)).tolist())
    for place, odd in (
        (1, np.zeros(2, F32)),
        (1, np.zeros((1, 3), F32)),
        (2, np.zeros((2, 1, 1), F32)),
        (2, np.zeros((1, 2, 1), F32)),
        (2, np.zeros((2, 2, 3), F32)),
        (2, np.zeros((2, 1), F32)),
        (0, np.zeros((2, 2, 0), F32)),
        (0, np.zeros((0, 2, 3), F32)),
        (0, np.zeros((2, 3), F32)),
        (0, np.zeros((), F32)),
    ):
        values = [x, row, column]
        values[place] = odd
        assert call(*values)[0] == "the nodes", (place, odd.shape)


def test_a_shape_that_the_arrays_must_have() -> None:
    run = FusedRun(2, (*given("full"), FusedInput(I32, "shape"), *given("aside")), (op("Neg", A),), (), (0,))
    call, cache = made(run)
    assert cache.source.startswith("def run(a0, a1, o0):"), "what stands aside is not read"
    x, aside = np.ones((2, 3), F32), object()
    assert call(x, np.int32([2, 3]), aside).tolist() == [[-1] * 3] * 2
    for sizes in ([3, 3], [2, 2], [2, 3, 1], [2], [3, 2]):
        assert call(x, np.int32(sizes), aside)[0] == "the nodes"


@pytest.mark.parametrize(
    ("name", "expected"), [("Sum", 26.0), ("Mean", 26.0 / 6), ("L2Loss", (4 + 9 + 16 + 25 + 36 + 36) / 2)]
)
def test_everything_is_reduced(name: str, expected: float) -> None:
    ops = (op("Neg", A, dtype=F64), op(name, ("op", 0), dtype=F64, reduce="all"))
    call, cache = made(FusedRun(2, given("full", dtype=F64), ops, (), (0, 1)))
    x = -np.array([[2.0, 3, 4], [5, 6, 6]])
    negated, found = call(x)
    assert negated.tolist() == (-x).tolist()
    assert (type(found), found.shape) == (np.ndarray, ())
    assert found.item() == pytest.approx(expected)
    assert "types.Array(types.float64, 1, 'C'))" in cache.signature
    assert call(np.zeros((0, 3)))[0] == "the nodes", "what a sum of nothing is, the kernels know"


def test_rows_are_summed_without_other_rows() -> None:
    call, _ = made(FusedRun(2, given("full"), (op("Sum", A, reduce="rows"),), (), (0,)))
    assert call(F32.type([[1, 2], [3, 5]])).tolist() == [4, 7]
    assert call(np.zeros((3, 0), F32))[0] == "the nodes"


def test_booleans_have_numpys_name() -> None:
    call, cache = made(FusedRun(1, given("full"), (op("Less", A, ("constant", 0), dtype=BOOL),), ((2, F32),), (0,)))
    assert "types.Array(types.boolean, 1, 'C')" in cache.signature
    assert call(F32.type([1, 2, 3])).tolist() == [True, False, False]
    assert runs._numpy_name(BOOL) == "bool_"
    assert runs._numpy_name(F32) == "float32"


def test_once_an_array_came_strided_all_are_made_contiguous() -> None:
    fell_back: list[int] = []

    def fallback(x: Any, s: Any, row: Any) -> Any:
        fell_back.append(1)
        return x + s + row

    inputs = given("full", "scalar", "row")
    run = FusedRun(2, inputs, (op("Add", A, B), op("Add", ("op", 0), C)), (), (1,))
    call, cache = made(run, fallback)
    x, one, row = np.arange(12, dtype=F32).reshape(3, 4), np.array(1, F32), np.arange(2, dtype=F32)
    for part in (x[:, :2], x[:, 2:], x[::2, 1:3]):
        assert call(part, one, row).tolist() == (part + 1 + row).tolist()
    assert (len(fell_back), len(cache.calls)) == (1, 3)
    assert call(x[:, :2], one, x[0, ::2]).tolist() == (x[:, :2] + 1 + x[0, ::2]).tolist()
    assert len(fell_back) == 1
    # of another rank: no code, and no try
    for values in ((row, one, row), (x[:, :2], one, x[:1, :2]), (x[:, :2], np.ones(1, F32), row)):
        call(*values)
    assert (len(fell_back), len(cache.calls)) == (4, 4)


# ---- long runs -------------------------------------------------------------------------------------------------------


def chain(count: int, *, wide: int = 0) -> FusedRun:
    """x + 1 + 1 …; the last op adds the first `wide` ones, so that so many values are alive all along."""
    ops = [op("Add", A, ("constant", 0))]
    for number in range(1, count):
        ops.append(op("Add", ("op", number - 1), ("constant", 0)))
    for number in range(wide):
        ops.append(op("Add", ("op", len(ops) - 1), ("op", number)))
    return FusedRun(1, given("full"), tuple(ops), ((1.0, F32),), (len(ops) - 1,))


def loops_of(run: FusedRun) -> list[list[int]]:
    """The numbers of the ops in each loop."""
    found: list[list[int]] = []
    for line in write_source(run).splitlines():
        if line.strip().startswith("for "):
            found.append([])
        elif line.strip().startswith("t"):
            found[-1].append(int(line.strip().split()[0][1:]))
    return found


def test_a_long_run_is_cut_where_few_values_are_alive() -> None:
    assert loops_of(chain(128)) == [list(range(128))]
    assert loops_of(chain(129)) == [list(range(64)), list(range(64, 129))]
    assert loops_of(chain(200)) == [list(range(64)), list(range(64, 128)), list(range(128, 200))]
    # four are alive beside the last sum, or three
    for wide, cut in ((3, True), (4, False)):
        assert (len(loops_of(chain(140, wide=wide))) > 1) is cut, wide
    by_row = chain(200)
    rows = FusedRun(2, (*by_row.inputs, *given("row")), by_row.ops, by_row.constants, by_row.outputs)
    assert len(loops_of(rows)) == 2, "the rows' and the columns'"


@pytest.mark.parametrize("wide", [0, 1, 3])
def test_loops_hand_on_what_later_ones_need(wide: int) -> None:
    run = chain(150, wide=wide)
    call, cache = made(run)
    assert cache.source.count("np.empty(n, np.float32)") == wide + 1
    x = F32.type([0, 10])
    expected = 150 + sum(range(1, wide + 1)) + (1 + wide) * x
    assert call(x).tolist() == expected.tolist()


def test_a_value_is_alive_until_its_last_use() -> None:
    """The place with the fewest values is taken, the first of equals."""
    ops = [op("Neg", A)]
    for number in range(1, 140):
        # from op 66 to 70 nothing else is alive; before and after, the one before the last is used too
        other = ("op", max(0, number - 1)) if 66 <= number <= 70 else ("op", max(0, number - 2))
        ops.append(op("Add", ("op", number - 1), other))
    run = FusedRun(1, given("full"), tuple(ops), (), (139,))
    assert [each[0] for each in loops_of(run)] == [0, 66]


def test_a_writer_of_neither_kind_names_no_input() -> None:
    with pytest.raises(NotImplementedError):
        runs._Writer(chain(1)).input(0)
