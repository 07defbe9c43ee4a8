"""The gradient table: every op has a row, clashes and misses say what and where."""

from __future__ import annotations

import pytest

import tenfold as tf
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


def test_missing_row_names_the_nearest():
    with pytest.raises(LookupError, match=r"no entry for: MatMull; nearest registered: .*MatMul"):
        registry.lookup("MatMull")


def test_registering_twice_names_both_places():
    with pytest.raises(KeyError, match=r"two gradients with name 'MatMul'! First at .*math\.py:\d+, again at .*test_"):

        @tf.RegisterGradient("MatMul")
        def again(op, grad):
            return grad, grad

    with pytest.raises(KeyError, match=r"First at not_differentiable\('Shape'"):
        tf.NotDifferentiable("Shape")
    with pytest.raises(TypeError):
        tf.RegisterGradient(3)


def test_gradient_override_map(monkeypatch):
    # The table is restored afterwards, so that the order of tests does not matter.
    registry.ensure_loaded()
    monkeypatch.setattr(registry, "_rows", dict(registry._rows))

    @tf.RegisterGradient("Tenfold")
    def tenfold_gradient(op, grad):
        return 10.0 * grad

    with tf.Graph().as_default() as graph:
        x = tf.constant(3.0)
        with graph.gradient_override_map({"Identity": "Tenfold"}):
            y = tf.identity(x)
        (grad,) = tf.gradients(y, x)
        with tf.Session() as session:
            assert session.run(grad) == 10.0


def test_a_gradient_that_is_not_implemented_says_so():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        y = tf.raw_ops.Spence(x=x, name="running")
        with pytest.raises(LookupError, match=r"No gradient is implemented for operation 'running'.*Spence"):
            tf.gradients(y, x)


def test_rule_with_the_wrong_number_of_gradients_is_reported():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        total = x + x
        rule = registry.GradientRule(lambda op, grad: grad)
        with pytest.raises(ValueError, match=r"Num gradients 1 generated for op 'add'.*num inputs 2"):
            rule(total.op, x)
