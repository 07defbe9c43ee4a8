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


@pytest.mark.parametrize(
    "ask",
    [
        lambda: registry.has_row("MatMul"),
        lambda: registry.is_differentiable("MatMul"),
        lambda: registry.kind_of("MatMul"),
        lambda: registry.registered(),
        lambda: registry.lookup("MatMul"),
    ],
)
def test_the_first_question_loads_every_family_once(ask, monkeypatch):
    loaded = []
    monkeypatch.setattr(registry, "_loaded", False)
    monkeypatch.setattr(registry.importlib, "import_module", loaded.append)
    ask()
    assert loaded == registry.modules()
    assert "tenfold.gradients.math_unary" in loaded
    assert not {"tenfold.gradients.walker", "tenfold.gradients.registry"} & set(loaded)
    ask()
    assert loaded == registry.modules(), "once"


def test_a_users_row_comes_after_those_of_the_families(monkeypatch):
    monkeypatch.setattr(registry, "_rows", dict(registry._rows))
    monkeypatch.setattr(registry, "_loaded", False)
    loaded = []
    monkeypatch.setattr(registry.importlib, "import_module", loaded.append)

    def rule(op, grad):
        return grad

    ours = lambda op, grad: grad  # noqa: E731
    ours.__module__ = "tenfold.gradients.of_a_family"
    assert registry.RegisterGradient("First")(ours) is ours
    assert loaded == []
    assert registry.RegisterGradient("Second")(rule) is rule
    assert loaded == registry.modules()
    assert registry.lookup("Second").function is rule
    registry._loaded = False
    tf.NotDifferentiable("Third")
    assert loaded == 2 * registry.modules()
    assert registry.lookup("Third") is None


def test_what_the_table_says_of_an_op(monkeypatch):
    registry.ensure_loaded()
    monkeypatch.setattr(registry, "_rows", dict(registry._rows))
    registry.not_implemented("Missing")
    registry.not_differentiable("Why", why="as it is")
    kinds = {"MatMul": "rule", "Shape": "none", "Spence": "refused", "Missing": "refused", "NoSuchOp": "absent"}
    for op, kind in kinds.items():
        assert registry.kind_of(op) == kind
        assert registry.has_row(op) is (kind != "absent")
        assert registry.is_differentiable(op) is (kind in ("rule", "refused"))
    assert list(registry.registered()) == sorted(registry._rows)
    with pytest.raises(
        KeyError, match=r"First at not_implemented\('Missing'\), again at not_differentiable\('Missing'\)"
    ):
        registry.not_differentiable("Missing")
    with pytest.raises(KeyError, match=r"First at not_differentiable\('Why', why='as it is'\)"):
        registry.not_implemented("Why")
    with pytest.raises(TypeError, match="op_type must be a string"):
        registry.not_differentiable(3)
    with pytest.raises(LookupError, match=r"no entry for: Qqqqq$"):
        registry.lookup("Qqqqq")


def test_a_rule_without_a_place_is_named_by_itself(monkeypatch):
    registry.ensure_loaded()
    monkeypatch.setattr(registry, "_rows", dict(registry._rows))

    class Rule:
        def __call__(self, op, grad):
            return grad

        def __repr__(self):
            return "<a rule>"

    registry.gradient("One", "Two")(Rule())
    with pytest.raises(KeyError, match="First at <a rule>, again at <a rule>"):
        registry.gradient("Two")(Rule())


def test_which_rule_an_operation_has():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        assert registry.get_gradient_function(x.op) is None
        assert registry.get_gradient_function(tf.exp(x).op) is registry.lookup("Exp")
        assert registry.get_gradient_function(tf.shape(x).op) is None
        with tf.get_default_graph().gradient_override_map({"Exp": "NoSuchRow"}):
            y = tf.exp(x)
        with pytest.raises(LookupError, match="no entry for: NoSuchRow"):
            registry.get_gradient_function(y.op)


def test_conjugates_are_taken_of_complex_numbers_alone():
    """Into the rule of a holomorphic op, and out of it; what is not a tensor, or real, passes as it is."""
    given = []

    def rule(op, *grads):
        given.extend(grads)
        return [grads[0], None]

    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.constant(1 + 2j, tf.complex64), tf.constant(3.0)
        total = x + tf.cast(y, tf.complex64)
        g = tf.constant(5 + 7j, tf.complex64)
        of_first, of_second = registry.GradientRule(rule, holomorphic=True)(total.op, g)
        assert of_second is None
        assert session.run([given.pop(), of_first]) == [5 - 7j, 5 + 7j]
        assert registry.GradientRule(lambda op, g: (y, y), holomorphic=True)(total.op, g) == [y, y]
        assert registry.GradientRule(lambda op, g: (g, g))(total.op, g) == [g, g]
        real = y + y
        assert registry.GradientRule(lambda op, g: (g, g), holomorphic=True)(real.op, y) == [y, y]
        assert registry.GradientRule(lambda op, g: [None, None], holomorphic=True)(total.op, None) == [None, None]


def test_rules_of_ops_that_broadcast_are_summed():
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.zeros([2, 3]), tf.zeros([3])
        total = x + y
        g = tf.reshape(tf.range(6.0), [2, 3])
        found = registry.GradientRule(lambda op, g: [g, -g], broadcasts=True)(total.op, g)
        assert [each.tolist() for each in session.run(found)] == [[[0, 1, 2], [3, 4, 5]], [-3, -5, -7]]
        assert registry.GradientRule(lambda op, g: [g, g])(total.op, g) == [g, g]


@pytest.mark.parametrize("op", ["SparseSparseMaximum", "SparseSparseMinimum"])
def test_a_rule_that_tensorflow_has_not_written_either(op):
    with tf.Graph().as_default():
        values = tf.placeholder(tf.float32, [1])
        one = tf.SparseTensor([[0]], values, [2])
        y = getattr(tf.sparse, op.removeprefix("SparseSparse").lower())(one, one, name="extreme").values
        with pytest.raises(NotImplementedError, match=f"Gradient for {op} is currently not implemented yet: 'extreme"):
            tf.gradients(y, values)
