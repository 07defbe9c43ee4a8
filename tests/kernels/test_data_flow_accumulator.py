"""The ops of accumulators: shared ones are made alike, types and shapes of inputs, what is handed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu._compiled import merging
from tenfold_kernels.resources.accumulators import DenseAccumulator, SparseAccumulator, walk_in_step
from tenfold_kernels.resources.waiting import Waiting

F32, F64 = dtypes.float32, dtypes.float64


class Accumulators(Steps):
    """Steps of which some make accumulators."""

    def accumulator(self, kind: str = "ResourceConditionalAccumulator", **attrs: Any) -> Any:
        attrs = {"dtype": F32, "shape": TensorShape([2]), "shared_name": b"a", "container": b"", **attrs}
        return self(kind, **attrs)


@pytest.fixture
def steps() -> Accumulators:
    return Accumulators()


def held(handle: Any) -> Any:
    return handle.resource if hasattr(handle, "resource") else handle[()].resource


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


STEP = np.int64(0).reshape(())


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("ConditionalAccumulator", DenseAccumulator),
        ("ResourceConditionalAccumulator", DenseAccumulator),
        ("SparseConditionalAccumulator", SparseAccumulator),
    ],
)
@pytest.mark.parametrize("reduction", [b"SUM", None])
def test_an_accumulator_is_as_its_node_says(
    steps: Accumulators, kind: str, type_: Any, reduction: bytes | None
) -> None:
    found = held(steps.accumulator(kind, **({} if reduction is None else {"reduction_type": reduction})))
    assert type(found) is type_
    assert (found.name, found.dtype, found.shape.as_list()) == ("a", F32, [2])
    assert found.reduction == ("SUM" if reduction else "MEAN")
    assert found.account is not None


@pytest.mark.parametrize(("dtype", "is_compiled"), [(F32, True), (dtypes.float16, False)])
def test_sums_of_slices_are_compiled_where_they_can_be(steps: Accumulators, dtype: Any, is_compiled: bool) -> None:
    found = held(steps.accumulator("SparseConditionalAccumulator", dtype=dtype))
    assert found._walk is (merging.walk(np.float32) if is_compiled else walk_in_step)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"dtype": F64}, r"'a' has type float and shape \(2,\); node '.*' asks for double and \(2,\)\."),
        ({"shape": TensorShape([None])}, r"shape \(2,\); node '.*' asks for float and \(\?,\)\."),
    ],
)
def test_an_accumulator_of_a_name_is_made_alike(steps: Accumulators, other: Any, message: str) -> None:
    first = steps.accumulator()
    assert held(steps.accumulator()) is held(first)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps.accumulator(**other)


def test_dense_gradients(steps: Accumulators) -> None:
    handle = steps.accumulator(reduction_type=b"SUM")
    apply = steps.build("ResourceAccumulatorApplyGradient", handle, STEP, ones(2), dtype=F32)
    for _ in range(2):
        apply(handle, STEP, ones(2))
    count = steps("ResourceAccumulatorNumAccumulated", handle)
    assert (count.tolist(), count.dtype) == (2, np.int32)
    assert isinstance(steps("ResourceAccumulatorTakeGradient", handle, np.int32(3), dtype=F32), Waiting)
    steps("ResourceAccumulatorSetGlobalStep", handle, np.int64(5))
    apply(handle, STEP, ones(2))
    assert steps("ResourceAccumulatorNumAccumulated", handle).tolist() == 2, "it is of an earlier step"
    apply(handle, np.int64(5), ones(2))
    assert steps("ResourceAccumulatorNumAccumulated", handle).tolist() == 0, "who waited has taken them"


@pytest.mark.parametrize("has_shape", [True, False])
def test_sparse_gradients(steps: Accumulators, has_shape: bool) -> None:
    handle = steps.accumulator("SparseConditionalAccumulator", shape=TensorShape([4]))
    given = [STEP, np.array([1]), ones(1), np.array([5])]
    apply = steps.build("SparseAccumulatorApplyGradient", handle, *given, dtype=F32, has_known_shape=has_shape)
    if has_shape:
        with pytest.raises(errors.InvalidArgumentError, match="expected shape dim 0 to be 4, got 5"):
            apply(handle, *given)
    else:
        apply(handle, *given)
        indices, values, shape = steps("SparseAccumulatorTakeGradient", handle, np.int32(1), dtype=F32)
        assert (indices.tolist(), values.tolist(), shape.tolist()) == ([1], [1], [4])


def test_numbers_are_scalars(steps: Accumulators) -> None:
    handle, two = steps.accumulator(), np.array([1, 2])
    for op, given, name in (
        ("ResourceAccumulatorApplyGradient", [two, ones(2)], "local_step"),
        ("ResourceAccumulatorTakeGradient", [two.astype(np.int32)], "num_required"),
        ("ResourceAccumulatorSetGlobalStep", [two], "new_global_step"),
    ):
        attrs = {} if "Set" in op else {"dtype": F32}
        with pytest.raises(errors.InvalidArgumentError, match=rf"^Argument {name} must be scalar, .* shape \[2\]"):
            steps(op, handle, *given, **attrs)


def test_types_are_those_of_the_accumulator(steps: Accumulators) -> None:
    handle = steps.accumulator()
    with pytest.raises(
        errors.InvalidArgumentError, match="Expected ResourceAccumulatorApplyGradient with dtype float, got double"
    ):
        steps("ResourceAccumulatorApplyGradient", handle, STEP, ones(2, dtype=np.float64), dtype=F64)
    with pytest.raises(
        errors.InvalidArgumentError, match="ResourceAccumulatorTakeGradient with dtype float, got double"
    ):
        steps("ResourceAccumulatorTakeGradient", handle, np.int32(1), dtype=F64)
    sparse = steps.accumulator("SparseConditionalAccumulator", shared_name=b"s")
    given = [STEP, np.array([1]), ones(1, dtype=np.float64), np.array([5])]
    with pytest.raises(
        errors.InvalidArgumentError, match="SparseAccumulatorApplyGradient with dtype float, got double"
    ):
        steps("SparseAccumulatorApplyGradient", sparse, *given, dtype=F64, has_known_shape=False)
    with pytest.raises(errors.InvalidArgumentError, match="SparseAccumulatorTakeGradient with dtype float, got double"):
        steps("SparseAccumulatorTakeGradient", sparse, np.int32(1), dtype=F64)


def test_gradients_of_ops_that_were_built_in_order(steps: Accumulators) -> None:
    """Each op has its moment, by which a later generation of the chief knows older ones."""
    found = held(steps.accumulator())
    built: list[int] = []
    found.apply = lambda step, gradient, moment: built.append(moment)
    handle = steps.accumulator()
    computes = [steps.build("ResourceAccumulatorApplyGradient", handle, STEP, ones(2), dtype=F32) for _ in range(2)]
    for compute in (*computes, computes[0]):
        compute(handle, STEP, ones(2))
    assert built[0] < built[1]
    assert built[2] == built[0]
