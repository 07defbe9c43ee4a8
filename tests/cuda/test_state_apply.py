"""An optimizer's update on a GPU gives what the CPU gives: dense and by rows, references and resources, odd shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.gpu_variables import SCALARS, Pair, inputs_of
from tenfold_core import dtypes, errors, opdefs
from tenfold_kernels import optimizer_rules
from tenfold_kernels.cuda import _rows

if TYPE_CHECKING:
    from types import SimpleNamespace

F = np.float32
SHAPES = ((), (0,), (1,), (7,), (3, 5))
INDICES = ((), (2,), (4, 1, 4, 0, 1, 4, 4))
FLAGS = ("use_nesterov", "update_slots", "multiply_linear_by_lr")
DENSE = [op for op in optimizer_rules.OPS if not optimizer_rules.layout_of(op).sparse]
SPARSE = [op for op in optimizer_rules.OPS if optimizer_rules.layout_of(op).sparse]


def check(gpu: SimpleNamespace, op: str, shape: tuple[int, ...], dtype: Any, indices: Any = None, **attrs: Any) -> None:
    layout = optimizer_rules.layout_of(op)
    random = np.random.default_rng(len(op))
    start = [random.uniform(0.1, 1.0, shape).astype(dtype) for _ in layout.variables]
    if "Centered" in op:
        # the mean of the squares is more than the square of the mean
        start[1] *= dtype(0.1)
    gradient = shape if indices is None else (len(indices), *shape[1:])
    scalars = {name: attrs.pop(name) for name in list(attrs) if name in SCALARS}
    inputs = inputs_of(op, start, random.uniform(-1.0, 1.0, gradient).astype(dtype), indices, **scalars)
    pair = Pair(inputs, layout.variables, resource=op.startswith("Resource"))

    pair.run(gpu, op, **attrs)

    rtol = 2e-5 if dtype is F else 1e-10
    for ours, theirs in pair.values():
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-7, err_msg=f"{op} {shape} {attrs}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", DENSE)
def test_a_dense_update(gpu: SimpleNamespace, op: str, dtype: Any) -> None:
    for shape in SHAPES:
        check(gpu, op, shape, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", SPARSE)
def test_an_update_by_rows(gpu: SimpleNamespace, op: str, dtype: Any) -> None:
    for number, indices in enumerate(INDICES):
        check(gpu, op, (5, 2), dtype, np.array(indices, (np.int32, np.int64)[number % 2]))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_long_lists_are_sorted(gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, index: Any) -> None:
    monkeypatch.setattr(_rows, "FEW", 0)

    check(gpu, "SparseApplyMomentum", (20, 1), F, np.array([4, 1, 4, 0, 19, 4, 4, 0], index))


@pytest.mark.parametrize("flag", FLAGS)
def test_switches(gpu: SimpleNamespace, flag: str) -> None:
    ops = [op for op in optimizer_rules.OPS if any(attr.name == flag for attr in opdefs.get(op).attrs)]
    assert ops
    for op in ops:
        indices = np.array([1, 3, 1]) if optimizer_rules.layout_of(op).sparse else None
        default = next(attr.default for attr in opdefs.get(op).attrs if attr.name == flag)
        check(gpu, op, (4, 1), F, indices, **{flag: not default})


def test_another_power_of_ftrl(gpu: SimpleNamespace) -> None:
    check(gpu, "ApplyFtrlV2", (5,), F, lr_power=-0.4)


@pytest.mark.parametrize("few", [0, 9])
def test_a_row_out_of_range_is_left_out(gpu: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(_rows, "FEW", few)
    grad = np.ones((3, 1), F)
    inputs = inputs_of("SparseApplyMomentum", [np.ones((2, 1), F)] * 2, grad, np.array([7, 1, -1]))
    pair = Pair(inputs, (0, 1), resource=False)

    gpu.run("SparseApplyMomentum", pair.on_gpu)

    np.testing.assert_allclose(pair.gpu_values()[0], [[1], [1 - 0.1 * 1.8]], rtol=1e-6)


def test_a_reader_of_a_resource_keeps_its_snapshot(gpu: SimpleNamespace) -> None:
    inputs = inputs_of("ResourceApplyGradientDescent", [np.ones(3, F)], np.ones(3, F))
    pair = Pair(inputs, (0,), resource=True)

    before = pair.gpu_variables[0].snapshot()
    gpu.run("ResourceApplyGradientDescent", pair.on_gpu, resources=pair.gpu_resources)

    assert before.to_host().tolist() == [1, 1, 1]
    np.testing.assert_allclose(pair.gpu_values()[0], [0.9] * 3, rtol=1e-6)


V, V3, TABLE = np.zeros(2, F), np.zeros(3, F), np.zeros((3, 2), F)
ERRORS = [
    ("ApplyGradientDescent", [V], {"grad": np.zeros(3, F)}, r"^var and delta do not have the same shape\[2\] \[3\]$"),
    ("ApplyMomentum", [V, V3], {"grad": V}, r"^var and accum do not have the same shape\[2\] \[3\]$"),
    ("SparseApplyAdagrad", [TABLE] * 2, {"grad": np.zeros((2, 3), F), "indices": np.array([0, 1])}, "dimension 1$"),
    ("SparseApplyAdagrad", [TABLE] * 2, {"grad": TABLE, "indices": np.array([0, 1])}, "in the first dimension"),
    ("ApplyMomentum", [V, V], {"grad": V, "lr": np.ones(1, F)}, r"^lr is not a scalar: \[1\]$"),
]


@pytest.mark.parametrize(("op", "start", "given", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors_are_the_cpus(gpu: SimpleNamespace, op: str, start: list[Any], given: Any, message: str) -> None:
    inputs = inputs_of(op, start, given["grad"], given.get("indices"))
    if "lr" in given:
        inputs[2] = given["lr"]
    pair = Pair(inputs, optimizer_rules.layout_of(op).variables, resource=False)

    with pytest.raises(errors.InvalidArgumentError, match=message):
        gpu.run(op, pair.on_gpu)


def test_complex_variables_are_not_updated_on_a_gpu() -> None:
    from tenfold_kernels import registry

    assert registry.devices_with_kernel("ApplyAdam", {"T": dtypes.float64}) == ("CPU", "GPU")
    assert registry.devices_with_kernel("ApplyAdam", {"T": dtypes.complex64}) == ()
