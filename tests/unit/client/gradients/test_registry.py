"""The gradient table: clashes and misses say what and where; rules are asked and their answers checked."""

from __future__ import annotations

import pytest

import tenfold as tf
from tenfold.gradients import registry


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
