"""Every op has a row in the gradient table, which the family modules fill: none is left out, none is of no op."""

from __future__ import annotations

import pytest

from tenfold.gradients import registry
from tenfold_core import opdefs

#: The op types that the smallest training programs run (facts of a census of TensorFlow programs).
TIER_1 = """
    Mul AddV2 Add Cast Maximum Mean RealDiv FloorDiv Prod Sub MatMul FloorMod Neg Sum BroadcastGradientArgs Equal
    Sigmoid SigmoidGrad ArgMax Select LogicalNot BiasAdd Relu BiasAddGrad ReluGrad LogSoftmax
    SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits Const Identity Reshape Fill Tile ExpandDims
    Shape GatherV2 Pack ConcatV2 Slice StridedSlice Gather StopGradient PreventGradient Squeeze Where Split Assign
    VariableV2 AssignAdd AssignVariableOp ReadVariableOp VarHandleOp VarIsInitializedOp IsVariableInitialized
    ApplyGradientDescent ApplyAdam ApplyAdagrad ApplyMomentum ResourceApplyAdam ResourceApplyGradientDescent
    ResourceApplyMomentum ResourceApplyAdagrad NoOp Merge Switch RefSwitch Print RestoreV2 SaveV2 MergeV2Checkpoints
    ShardedFilename StringJoin StaticRegexFullMatch ScalarSummary HistogramSummary MergeSummary TruncatedNormal
    RandomUniform RandomStandardNormal
""".split()  # noqa: SIM905  # a list of strings would take a page


def test_every_op_definition_has_a_row():
    assert [name for name in opdefs.names() if not registry.has_row(name)] == []


def test_every_row_belongs_to_an_op_definition():
    # functions with gradients of their own have rows, too, in a process in which other tests made some
    rows = [name for name in registry.registered() if not name.startswith("CustomGradient-")]
    assert [name for name in rows if not opdefs.has(name)] == []


@pytest.mark.parametrize("op_type", TIER_1)
def test_tier_1_op_has_a_gradient_or_is_not_differentiable(op_type):
    row = registry.lookup(op_type)

    assert row is None or "not_implemented" not in row.function.__qualname__
