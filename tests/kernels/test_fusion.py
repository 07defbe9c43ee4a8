"""Fused runs against the kernels they stand for: every row of the table, every type, the values where rows go wrong.

All rows of one type are compiled as one run, because a compilation takes a tenth of a second and more.
"""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_kernels import chunks, object_code, parallel, registry
from tenfold_kernels.fusion import expressions, shares
from tenfold_kernels.fusion.cache import FusionCache, cache_folder
from tenfold_kernels.fusion.runs import FusedInput, FusedOp, FusedRun, fused, is_cut, write_source
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

#: How far a fused float may be from the kernel's where both call some library's function, in units in the last place.
LIBM_ULPS = 4

F32 = np.dtype("float32")
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 1.5, 3.0, 1e-40, 100.0, -100.0, 2.0, 7.0]
SELECTS = {"Select", "SelectV2"}
TO_BOOL = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"} | {
    *("LogicalAnd", "LogicalOr", "LogicalNot", "IsNan", "IsFinite", "IsInf")
}


@pytest.fixture(scope="module")
def cache() -> FusionCache:
    return FusionCache(None)


def values_of(dtype: np.dtype[Any], seed: int) -> np.ndarray[Any, Any]:
    """48 values: every special one meets every other one as seeds differ."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, 48).astype(bool)
    if dtype.kind == "f":
        return np.concatenate([rng.permutation(SPECIAL), rng.permutation(SPECIAL), rng.normal(0, 3, 16)]).astype(dtype)
    info = np.iinfo(dtype)
    picked = rng.integers(max(info.min, -50), 50, 44).tolist()
    return np.array([info.min, info.max, 0, 1, *picked], dtype)


def kernel(op: str, inputs: Sequence[np.dtype[Any]], output: np.dtype[Any]) -> Callable[..., Any]:
    """The op's own kernel."""
    first = dtypes.as_dtype(inputs[-1] if op.startswith("Select") else inputs[0])
    node = registry.KernelNode(
        name="n",
        op=op,
        attrs={"T": first, "SrcT": first, "DstT": dtypes.as_dtype(output), "alpha": 0.2, "N": 2},
        input_types=tuple(dtypes.as_dtype(t) for t in inputs),
        output_types=(dtypes.as_dtype(output),),
        device="/job:localhost/replica:0/task:0/device:CPU:0",
        resources=ResourceManager(),
    )
    return registry.lookup(node, "CPU")(node)


def rows_for(dtype: np.dtype[Any]) -> list[tuple[str, list[np.dtype[Any]], np.dtype[Any]]]:
    """(op, input types, output type) of every row for operands of this type."""
    bool_ = np.dtype(bool)
    found = []
    for op in expressions.OPS:
        if op in ("BiasAdd", "BiasAddV1"):
            continue  # it wants rows: see below
        if op in SELECTS:
            inputs, output = [bool_, dtype, dtype], dtype
        elif op == "Cast":
            inputs, output = [dtype], np.dtype("float64" if dtype != np.float64 else "float32")
        else:
            inputs = [dtype] * expressions.arity(op)
            output = bool_ if op in TO_BOOL else dtype
        if expressions.row_of(op, inputs, output) is not None:
            found.append((op, inputs, output))
    return found


def ulps(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The largest distance, in units in the last place; inf where one is nan or infinite and the other is not."""
    if a.dtype.kind != "f":
        return 0.0 if np.array_equal(a, b) else np.inf
    both_nan, same = np.isnan(a) & np.isnan(b), a == b
    rest = ~(both_nan | same)
    if not rest.any():
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(a[rest] - b[rest]) / np.spacing(np.abs(b[rest]))))


@pytest.mark.parametrize(
    ("dtype", "rank"),
    [
        *(
            pytest.param(
                dtype, 1, marks=() if dtype in {F32, np.dtype("int32"), np.dtype(bool)} else pytest.mark.thorough
            )
            for dtype in sorted(expressions.ELEMENT_TYPES, key=str)
        ),
        (F32, 0),
        (np.dtype("int32"), 0),
    ],
    ids=str,
)
def test_every_row_gives_what_its_kernel_gives(dtype: np.dtype[Any], rank: int, cache: FusionCache) -> None:
    rows = rows_for(dtype)
    bool_ = np.dtype(bool)
    role: Any = "full" if rank else "scalar"
    ops = []
    for op, inputs, output in rows:
        sources = [("input", 0 if t == bool_ and op in SELECTS else 1 + i) for i, t in enumerate(inputs)]
        if op in SELECTS:
            sources = [("input", 0), ("input", 1), ("input", 2)]
        ops.append(FusedOp(op, (("alpha", 0.2),), tuple(sources), output))  # type: ignore[arg-type]
    inputs_ = tuple(FusedInput(t, role) for t in (bool_, dtype, dtype))
    run = FusedRun(rank, inputs_, tuple(ops), (), tuple(range(len(ops))))
    call = fused(run, _no_fallback, cache)
    arrays = [values_of(bool_, 0), values_of(dtype, 1), values_of(dtype, 2)]

    for place in range(1 if rank else 48):
        given = arrays if rank else [a[place, ...] for a in arrays]
        results = call(*given)
        for (op, types, output), result in zip(rows, results, strict=True):
            operands = given[1 : 1 + len(types)] if op not in SELECTS else given
            with registry.quiet():
                expected = kernel(op, types, output)(*operands)
            row = expressions.row_of(op, types, output)
            assert row is not None
            assert result.dtype == expected.dtype == output
            assert result.shape == expected.shape
            distance = ulps(result, np.asarray(expected))
            assert distance <= (LIBM_ULPS if row.libm or row.single else 0), f"{op} of {[o.tolist() for o in operands]}"


def _no_fallback(*inputs: Any) -> Any:
    raise AssertionError("the run did not fit its own shapes")


def bias_relu() -> FusedRun:
    inputs = FusedInput(F32, "full"), FusedInput(F32, "row")
    add = FusedOp("BiasAdd", (), (("input", 0), ("input", 1)), F32)
    return FusedRun(2, inputs, (add, FusedOp("Relu", (), (("op", 0),), F32)), (), (1,))


def test_a_row_is_added_to_every_row(cache: FusionCache) -> None:
    x, bias = np.float32([[1, -5], [2, 3]]), np.float32([1, 2])
    assert fused(bias_relu(), _no_fallback, cache)(x, bias).tolist() == [[2, 0], [3, 5]]


def scaled_rows() -> FusedRun:
    """x_RC · column_R1, and its sum over the rows."""
    inputs = FusedInput(F32, "full"), FusedInput(F32, "column")
    scale = FusedOp("Mul", (), (("input", 0), ("input", 1)), F32)
    return FusedRun(2, inputs, (scale, FusedOp("Sum", (), (("op", 0),), F32, "rows")), (), (0, 1))


def test_a_column_is_one_number_for_every_row(cache: FusionCache) -> None:
    x, column = np.float32([[1, -5], [2, 3], [4, 0]]), np.float32([[1], [2], [-1]])
    scaled, total = fused(scaled_rows(), _no_fallback, cache)(x, column)
    assert scaled.tolist() == [[1, -5], [4, 6], [-4, 0]]
    assert total.tolist() == [1, 1]


@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (1, 3), (3,)])
def test_another_column_goes_to_the_nodes_themselves(shape: tuple[int, ...], cache: FusionCache) -> None:
    inputs = np.zeros((3, 2), np.float32), np.zeros(shape, np.float32)
    assert fused(scaled_rows(), lambda *given: given, cache)(*inputs) == inputs


@pytest.mark.parametrize(
    "inputs",
    [
        (np.zeros((2, 3), np.float32), np.zeros(2, np.float32)),
        (np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32)),
        (np.zeros((4, 2), np.float32).T, np.zeros(4, np.float32)),
        (np.zeros((0, 3), np.float32)[:, :0], np.zeros(0, np.float32)),
    ],
    ids=["another length", "another rank", "strided", "empty"],
)
def test_arrays_that_do_not_fit_go_to_the_nodes_themselves(inputs: Any, cache: FusionCache) -> None:
    assert fused(bias_relu(), lambda *given: given, cache)(*inputs) == inputs


def test_arrays_that_view_the_bytes_of_a_message(cache: FusionCache) -> None:
    x = np.frombuffer(b"\0" * 25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    nodes = lambda value, bias: np.maximum(value + bias, 0)  # noqa: E731
    assert fused(bias_relu(), nodes, cache)(x, np.ones(3, np.float32)).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_read_only_inputs(cache: FusionCache) -> None:
    x, bias = np.ones((2, 2), np.float32), np.ones(2, np.float32)
    x.flags.writeable = bias.flags.writeable = False
    result = fused(bias_relu(), _no_fallback, cache)(x, bias)
    assert result.tolist() == [[2, 2], [2, 2]]
    assert result.flags.writeable


@pytest.mark.parametrize(
    ("op", "reduce", "expected"),
    [
        ("Sum", "all", lambda x: np.sum(x, dtype=np.float64)),
        ("Mean", "all", lambda x: np.mean(x, dtype=np.float64)),
        ("L2Loss", "all", lambda x: np.sum(np.square(x), dtype=np.float64) / 2),
        ("BiasAddGrad", "rows", lambda x: np.sum(x, axis=0)),
        ("Sum", "rows", lambda x: np.sum(x, axis=0)),
    ],
)
def test_reductions_at_the_end_of_a_run(op: str, reduce: Any, expected: Any, cache: FusionCache) -> None:
    x = np.random.default_rng(3).standard_normal((513, 65)).astype(np.float32)
    square = FusedOp("Square", (), (("input", 0),), F32)
    run = FusedRun(2, (FusedInput(F32, "full"),), (square, FusedOp(op, (), (("op", 0),), F32, reduce)), (), (1,))
    result = fused(run, _no_fallback, cache)(x)
    wanted = expected(np.square(x))
    assert result.shape == wanted.shape
    # Rows are added in the kernel's order; a sum of everything in LLVM's, with an error of the same size as NumPy's.
    np.testing.assert_allclose(result, wanted, rtol=0 if reduce == "rows" else 2e-6)


def test_a_long_run_is_cut_into_loops_of_the_same_result(cache: FusionCache) -> None:
    rng = np.random.default_rng(5)
    ops, sources = [], [("input", 0), ("input", 1)]
    for i in range(160):
        picked = [sources[int(k)] for k in rng.integers(max(0, len(sources) - 3), len(sources), 2)]
        ops.append(FusedOp(("Add", "Sub", "Maximum", "Minimum")[int(rng.integers(4))], (), tuple(picked), F32))  # type: ignore[arg-type]
        sources.append(("op", i))
    run = FusedRun(1, (FusedInput(F32, "full"),) * 2, tuple(ops), (), (100, 159))
    assert write_source(run).count("for i in range(n)") >= 2
    x, y = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    functions = {"Add": np.add, "Sub": np.subtract, "Maximum": np.maximum, "Minimum": np.minimum}
    values: list[Any] = []
    for op in ops:
        a, b = ((x, y)[n] if kind == "input" else values[n] for kind, n in op.sources)
        values.append(functions[op.op](a, b))
    at_100, at_159 = fused(run, _no_fallback, cache)(x, y)
    np.testing.assert_array_equal(at_100, values[100])
    np.testing.assert_array_equal(at_159, values[159])


# -- the cache on disk -----------------------------------------------------------------------------------------------


def test_a_second_process_loads_what_the_first_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    fused(bias_relu(), _no_fallback, FusionCache(folder))
    pattern = "run_*.object" if object_code.is_supported() else "run_*.nbc"
    files = sorted(path.name for path in folder.rglob(pattern))
    assert len(files) == 1
    before = (folder / "__pycache__" / files[0]).stat().st_mtime_ns

    second = fused(bias_relu(), _no_fallback, FusionCache(folder))

    assert second(np.ones((1, 2), np.float32), np.ones(2, np.float32)).tolist() == [[2, 2]]
    assert [(path.name, path.stat().st_mtime_ns) for path in folder.rglob(pattern)] == [(files[0], before)]


def test_a_damaged_file_is_written_again(tmp_path: Path) -> None:
    fused(bias_relu(), _no_fallback, FusionCache(tmp_path / "cache"))
    (source,) = (tmp_path / "cache").glob("run_*.py")
    source.write_text("raise SystemExit")
    call = fused(bias_relu(), _no_fallback, FusionCache(tmp_path / "cache"))
    assert call(np.ones((1, 2), np.float32), np.ones(2, np.float32)).tolist() == [[2, 2]]


@pytest.mark.skipif(sys.platform == "win32", reason="modes mean nothing there")
def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(stat.S_IRWXU | stat.S_IRWXO)
    call = fused(bias_relu(), _no_fallback, FusionCache(folder))
    assert call(np.ones((1, 2), np.float32), np.ones(2, np.float32)).tolist() == [[2, 2]]
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    call = fused(bias_relu(), _no_fallback, FusionCache(tmp_path / "file" / "cache"))
    assert call(np.ones((1, 2), np.float32), np.ones(2, np.float32)).tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"TENFOLD_CACHE_DIR": "/somewhere"}, "/somewhere/fused"),
        ({"TENFOLD_CACHE_DIR": ""}, None),
        ({"XDG_CACHE_HOME": "/cache"}, "/cache/tenfold/fused"),
    ],
)
def test_where_the_folder_is(environment: dict[str, str], folder: str | None) -> None:
    if sys.platform == "win32":
        pytest.skip("other paths there")
    assert str(cache_folder(environment)) == str(folder)


def test_arrays_that_are_not_contiguous_are_copied(cache: FusionCache) -> None:
    given = FusedInput(F32, "full")
    add = FusedOp("Add", (), (("input", 0), ("input", 1)), F32)
    run = FusedRun(2, (given, FusedInput(F32, "row")), (add,), (), (0,))
    unfused: list[int] = []

    def fallback(a: Any, b: Any) -> Any:
        unfused.append(1)
        return a + b

    call = fused(run, fallback, cache)
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    row = np.arange(3, dtype=np.float32)
    parts = [whole[:, :3], whole[:, 3:], whole[::2, :3], np.ascontiguousarray(whole[:, :3])]
    for part in parts:
        assert np.array_equal(call(part, row), part + row)
    assert len(unfused) == 1, "only the first strided one runs node by node"
    assert np.array_equal(call(whole[:, ::2], whole[0, ::2]), whole[:, ::2] + whole[0, ::2])
    assert np.array_equal(call(row, row), row + row), "of another rank"
    assert len(unfused) == 2


# -- parts for several threads


class Parts:
    """Stands for in_parts: each row is a part of its own, the last one first."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def __call__(self, work: Callable[[int, int], None], total: int, least: int) -> None:
        self.asked.append((total, least))
        for first in reversed(range(total)):
            work(first, first + 1)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Parts:
    made = Parts()
    monkeypatch.setattr(shares, "in_parts", made)
    return made


def test_a_large_run_is_cut_into_rows_and_gives_the_same(cache: FusionCache, parts: Parts) -> None:
    x, bias = np.random.default_rng(1).standard_normal((4, 1 << 15), F32), np.arange(1 << 15, dtype=F32) / 999 - 15
    call = fused(bias_relu(), _no_fallback, cache)

    assert np.array_equal(call(x, bias), np.maximum(x + bias, 0))
    assert parts.asked == [(4, 2)], "two ops: 65,536 elements are worth a part"
    assert np.array_equal(call(x[:3], bias), np.maximum(x[:3] + bias, 0))
    assert parts.asked == [(4, 2)], "too small to be cut"


def columns_and_scalars() -> FusedRun:
    """x_RC · column_R1 + number."""
    inputs = FusedInput(F32, "full"), FusedInput(F32, "column"), FusedInput(F32, "scalar")
    scale = FusedOp("Mul", (), (("input", 0), ("input", 1)), F32)
    return FusedRun(2, inputs, (scale, FusedOp("Add", (), (("op", 0), ("input", 2)), F32)), (), (0, 1))


def test_columns_are_cut_and_scalars_are_not(cache: FusionCache, parts: Parts) -> None:
    x, column = np.ones((8, 1 << 15), np.float32), np.arange(8, dtype=np.float32).reshape(8, 1)
    scaled, added = fused(columns_and_scalars(), _no_fallback, cache)(x, column, np.float32(3).reshape(()))

    assert np.array_equal(scaled, x * column)
    assert np.array_equal(added, x * column + 3)
    assert parts.asked == [(8, 2)]


def test_large_arrays_that_do_not_fit_go_to_the_nodes_themselves(cache: FusionCache, parts: Parts) -> None:
    """Their first rows would fit."""
    x, more = np.ones((8, 1 << 15), np.float32), np.ones((9, 1 << 15), np.float32)
    full = FusedInput(F32, "full")
    add = FusedRun(2, (full, full), (FusedOp("Add", (), (("input", 0), ("input", 1)), F32),) * 2, (), (0,))
    number = np.float32(3).reshape(())

    for run, inputs in (
        (add, (x, more)),
        (columns_and_scalars(), (x, more[:, :1], number)),
        (columns_and_scalars(), (x, x[:, :2], number)),
    ):
        assert fused(run, lambda *given: given, cache)(*inputs) == inputs


def test_what_a_part_raises_is_raised(cache: FusionCache, monkeypatch: pytest.MonkeyPatch) -> None:
    x, bias = np.ones((1 << 15, 8), np.float32).T, np.ones(1 << 15, np.float32)
    call = fused(bias_relu(), lambda value, row: np.maximum(value + row, 0), cache)
    assert np.array_equal(call(x, bias), np.full((8, 1 << 15), 2)), "no code for strided arrays"
    monkeypatch.setattr(shares, "in_parts", Parts())
    assert np.array_equal(call(x, bias), np.full((8, 1 << 15), 2)), "copied now"


@pytest.mark.parametrize(
    ("run", "can_be"),
    [
        (bias_relu(), True),
        (columns_and_scalars(), True),
        (scaled_rows(), False),
        (replace(bias_relu(), rank=1), False),
        (replace(bias_relu(), inputs=(*bias_relu().inputs, FusedInput(np.dtype("int32"), "shape"))), False),
        (FusedRun(0, (FusedInput(F32, "scalar"),), (FusedOp("Neg", (), (("input", 0),), F32),), (), (0,)), False),
    ],
    ids=["rows", "columns", "a sum", "one row", "a shape", "scalars"],
)
def test_which_runs_can_be_cut(run: FusedRun, can_be: bool) -> None:
    assert is_cut(run) is can_be


@pytest.mark.parametrize("width", [1, 2])
def test_slices_are_copied_block_by_block(width: int, cache: FusionCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_width", lambda: width)
    monkeypatch.setattr(chunks, "is_crowded", lambda: False)
    ops = (FusedOp("Mul", (), (("input", 0), ("input", 1)), F32), FusedOp("Add", (), (("op", 0), ("input", 2)), F32))
    run = FusedRun(3, tuple(FusedInput(F32, role) for role in ("full", "full", "column")), ops, (), (1,))
    call = fused(run, _no_fallback, cache)
    wide = np.random.default_rng(4).standard_normal((700, 50, 12), np.float32)
    sizes = list[int]()
    copied = np.ascontiguousarray
    counting = {**vars(np), "ascontiguousarray": lambda x: (sizes.append(x.size), copied(x))[1]}
    monkeypatch.setattr(shares, "np", SimpleNamespace(**counting))
    x, y, z = wide[..., :5], wide[..., 5:10], wide[..., 10:11]

    for given in ((copied(x), copied(y), copied(z)), (x, y, z), (copied(x), y, z), (x, copied(y), copied(z))):
        np.testing.assert_array_equal(call(*given), x * y + z)

    assert len(sizes) > 5
    assert max(sizes) <= shares._BLOCK
