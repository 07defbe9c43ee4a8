"""Updates of several small variables are one launch in a hot step, and give what they give one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import fused_programs, trained
from tenfold_compiler.fuse import captures, updates
from tenfold_kernels.cuda import fused_updates, update_text
from tenfold_kernels.cuda.fused_updates import DeviceUpdates

if TYPE_CHECKING:
    from collections.abc import Callable

F = np.float32
#: Of the variables of a model.
SIZES = ((3,), (), (2, 2))
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
}
STEPS = 5


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many updates each launch of several made."""
    found: list[int] = []
    compiled = update_text.compiled_many

    def noted(update: update_text.Update, count: int) -> Any:
        found.append(count)
        return compiled(update, count)

    monkeypatch.setattr(update_text, "compiled_many", noted)
    return found


def model(use_resource: bool, make: Callable[[], Any], sizes: Any = SIZES) -> tuple[Any, Any]:
    """(a training step, the variables) of a loss that is a sum of squares."""
    with tf.variable_scope("model", use_resource=use_resource):
        made = [tf.get_variable(f"v{i}", initializer=np.full(size, i + 1, F)) for i, size in enumerate(sizes)]
    x = tf.placeholder(tf.float32, [], name="x")
    loss = tf.add_n([tf.reduce_sum(tf.square(v - x)) for v in made])
    return [make().minimize(loss), loss], made


def learned(use_resource: bool, make: Callable[[], Any]) -> tuple[list[Any], list[DeviceUpdates]]:
    """(the variables after STEPS steps on a GPU, the groups of updates)"""
    with fused_programs() as programs, tf.Graph().as_default():
        with tf.device("/gpu:0"):
            step, made = model(use_resource, make)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                session.run(step, {"x:0": 0.5})
            values = session.run(made)
    return values, [g.run for program in programs for g in program.groups if isinstance(g.run, DeviceUpdates)]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    "name", ["adam", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("sgd", "momentum"))]
)
def test_updates_of_small_variables_are_one_launch(
    monkeypatch: pytest.MonkeyPatch, launches: list[int], name: str, use_resource: bool
) -> None:
    monkeypatch.setattr(captures, "LEAST", 1000)
    found, groups = learned(use_resource, OPTIMIZERS[name])

    wanted = trained("/cpu:0", lambda: model(use_resource, OPTIMIZERS[name]), [{"x": 0.5}] * STEPS)[0][-1]
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert [len(each.members) for each in groups] == [len(SIZES)]
    # from the third step on
    assert launches == [len(SIZES)] * (STEPS - 2)


def test_they_are_recorded_with_the_rest_of_the_step(launches: list[int]) -> None:
    found, groups = learned(False, OPTIMIZERS["momentum"])

    assert groups
    assert set(launches) == {len(SIZES)}
    np.testing.assert_allclose(found[1], trained_alone(2.0), rtol=1e-5)


def trained_alone(start: float) -> float:
    """What a scalar that begins there has become by momentum."""
    value, accum = start, 0.0
    for _ in range(STEPS):
        accum = accum * 0.9 + 2 * (value - 0.5)
        value -= 0.1 * accum
    return value


def test_a_large_variable_is_updated_alone(monkeypatch: pytest.MonkeyPatch, launches: list[int]) -> None:
    monkeypatch.setattr(updates, "SMALL", 3)

    _, groups = learned(False, OPTIMIZERS["sgd"])

    assert [len(each.members) for each in groups] == [2]
    assert set(launches) == {2}


def test_more_than_a_kernel_has_arguments_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "MOST", 2)

    found, groups = learned(True, OPTIMIZERS["sgd"])

    assert [len(each.members) for each in groups] == [2]
    assert fused_updates.MOST > 2
    np.testing.assert_allclose(found[2], np.full((2, 2), 0.5 + 2.5 * 0.8**STEPS), rtol=1e-5)


def test_an_update_that_waits_for_another_is_not_of_its_launch() -> None:
    with fused_programs() as programs, tf.Graph().as_default(), tf.device("/gpu:0"):
        first, second = (tf.Variable(np.ones(2, F), name=name) for name in ("first", "second"))
        rate = tf.constant(0.1)
        one = tf.raw_ops.ApplyGradientDescent(var=first._ref(), alpha=rate, delta=second * 2.0 + 1.0)
        with tf.control_dependencies([one]):
            two = tf.raw_ops.ApplyGradientDescent(var=second._ref(), alpha=rate, delta=tf.tanh(second) * 2.0)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                session.run([one.op, two.op])
            found = session.run([first, second])

    assert not [g for program in programs for g in program.groups if isinstance(g.run, DeviceUpdates)]
    a, b = 1.0, 1.0
    for _ in range(STEPS):
        a, b = a - 0.1 * (2 * b + 1), b - 0.1 * 2 * np.tanh(b)
    np.testing.assert_allclose(found, [[a, a], [b, b]], rtol=1e-5)


def test_the_one_that_fails_says_so() -> None:
    with fused_programs(), tf.Graph().as_default(), tf.device("/gpu:0"):
        rate = tf.constant(0.1)
        made = [tf.Variable(np.ones(2, F), name=f"v{i}", use_resource=True) for i in range(3)]
        given = tf.placeholder(tf.float32, [None], name="given")
        done = [
            tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=rate, delta=given * float(i), name=f"apply{i}")
            for i, v in enumerate(made)
        ]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(STEPS):
                session.run(done, {given: [1.0, 1.0]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="var and delta do not have the same") as why:
                session.run(done, {given: [1.0, 1.0, 1.0]})
            assert str(why.value.op.name).startswith("apply")
            np.testing.assert_allclose(session.run(made)[2], [1 - 0.1 * 2 * STEPS] * 2, atol=1e-6)


def test_a_step_with_branches_and_loops_has_them_too(launches: list[int]) -> None:
    def build() -> tuple[Any, Any]:
        made = [tf.get_variable(f"v{i}", initializer=np.full(size, i + 1, F)) for i, size in enumerate(SIZES)]
        x = tf.placeholder(tf.float32, [], name="x")
        far = tf.cond(x > 1.0, lambda: made[0] * 2.0, lambda: made[0] - 1.0)
        _, grown = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * made[1] + x), [0, x])
        loss = tf.reduce_sum(far) + grown + tf.reduce_sum(tf.square(made[2]))
        with tf.control_dependencies([tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)]):
            return [tf.identity(loss * 1.0)], made

    feeds = [0.5, 2.0, 0.5, 2.0, 0.5, 2.0]
    with fused_programs() as programs, tf.Graph().as_default():
        with tf.device("/gpu:0"):
            step, made = build()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for fed in feeds:
                session.run(step, {"x:0": fed})
            found = session.run(made)

    assert len(SIZES) in launches
    assert [len(g.run.members) for p in programs for g in p.groups if isinstance(g.run, DeviceUpdates)]
    wanted = trained("/cpu:0", build, [{"x": fed} for fed in feeds])[0][-1]
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
