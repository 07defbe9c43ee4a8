"""Embedding variables through a session: made, looked up, trained, exported; what their kernels refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

raw = tf.raw_ops


class Program:
    """A graph with an embedding variable of 3 elements a row, and a session on it."""

    def __init__(self, session: tf.Session, dtype: Any = tf.float32) -> None:
        self.session, self.dtype = session, dtype
        self.table = self.handle("v")

    def handle(self, name: str, width: int = 3) -> Any:
        return raw.KvVarHandleOp(dtype=self.dtype, shape=[width], Tkeys=tf.int64, shared_name=name)

    def initialize(self, resource: Any, primary: Any, value: Any, **attrs: Any) -> None:
        given = {"shape": [3], "counter_type": tf.int64, **attrs}
        key = tf.constant(-1, tf.int64)
        self.session.run(
            raw.InitializeKvVariableOp(
                resource_self=resource, resource_primary=primary, value=value, empty_key=key, **given
            )
        )

    def begin(self, **attrs: Any) -> None:
        self.initialize(self.table, self.table, tf.ones([4, 3], self.dtype), **attrs)

    def gather(self, ids: Any, **attrs: Any) -> Any:
        given = {"default_value": tf.constant(1.0, self.dtype), **attrs}
        return raw.KvResourceGather(resource=self.table, indices=tf.constant(ids, tf.int64), **given)

    def slot(self, name: str, start: float) -> Any:
        handle = self.handle("v/" + name)
        self.initialize(handle, self.table, tf.fill([3], tf.constant(start, self.dtype)), slot_index=1)
        return handle

    def exported(self, handle: Any = None) -> Any:
        handle = self.table if handle is None else handle
        return self.session.run(raw.KvResourceExport(resource_handle=handle, Tkeys=tf.int64, Tvalues=self.dtype))


@pytest.fixture
def program() -> Iterator[Program]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield Program(session)


def test_a_table_grows_by_lookups(program: Program) -> None:
    is_there = raw.KvVarIsInitializedOp(resource=program.table, Tkeys=tf.int64)
    assert not program.session.run(is_there)
    with pytest.raises(tf.errors.FailedPreconditionError, match="Attempting to use uninitialized value v"):
        program.session.run(program.gather([1]))
    program.begin()

    assert program.session.run(is_there)
    assert program.session.run(program.gather([[1, 2], [2, 1 << 60]])).tolist() == np.ones((2, 2, 3)).tolist()
    shape = raw.KvVariableShape(input=program.table, Tkeys=tf.int64)
    assert program.session.run(shape).tolist() == [3, 3]
    assert program.session.run(program.gather([7], is_inference=True)).tolist() == [[1, 1, 1]]
    assert program.session.run(shape).tolist() == [3, 3]
    program.begin()
    assert program.session.run(shape).tolist() == [3, 3], "what is there stays"
    assert program.exported().keys.tolist() == [1, 2, 1 << 60]


def test_counts_and_given_weights(program: Program) -> None:
    program.begin(filter_freq=4)
    ids = tf.constant([5, 6], tf.int64)
    counted = raw.KvResourceGatherV1(
        resource=program.table, indices=ids, default_value=tf.constant(1.0), counts=tf.constant([4, 1])
    )
    program.session.run(counted)

    assert program.session.run(counted).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert program.session.run(
        raw.EVGetFrequency(resource_handle=program.table, ids=ids, Tvalues=tf.float32)
    ).tolist() == [4, 2]
    rows = tf.constant([[2.0, 3.0, 4.0]])
    given = program.gather([5], default_value=rows, is_use_default_value_tensor=True)
    assert program.session.run(given).tolist() == [[1, 1, 1]], "it has weights"


def gradient_of(program: Program, ids: Any) -> Any:
    rows = program.gather(ids)
    (slices,) = tf.gradients(tf.reduce_sum(rows * tf.constant([1.0, 2.0, 3.0], program.dtype)), [program.table])
    return slices


def by_hand(step: int, kind: str) -> Any:
    """The weights after so many steps, by the optimizers' formulas."""
    w, g = np.ones(3), np.array([1.0, 2.0, 3.0])
    accum, linear, m, v = np.full(3, 0.1), np.zeros(3), np.zeros(3), np.zeros(3)
    decay = 0.3 if kind == "AdamW" else 0.0
    for t in range(1, step + 1):
        if kind == "GradientDescent":
            w = w - 0.1 * g
        elif kind == "Adagrad":
            accum = accum + g * g
            w = w - 0.1 * g / np.sqrt(accum)
        elif kind == "Momentum":
            m = 0.9 * m + g
            w = w - 0.1 * m
        elif kind in ("Adam", "AdamW"):
            m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            rate = 0.1 * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
            w = w - rate * (m / (np.sqrt(v) + 1e-8) + decay * w)
        else:
            more = accum + g * g
            linear = linear + g - (np.sqrt(more) - np.sqrt(accum)) / 0.1 * w
            accum, norm = more, np.sqrt((linear * linear).sum())
            w = (0.5 / norm - 1) * linear / (np.sqrt(accum) / 0.1 + 2 * 0.2) * (norm > 0.5)
    return w


#: Programs' updates, by the name of what they compute.
KINDS = ["GradientDescent", "Momentum", "Adagrad", "Adam", "AdamW", "Ftrl", "FtrlV2"]


def update_of(program: Program, kind: str, dtype: Any = tf.float32) -> tuple[Any, Any]:
    """An update of the rows 3 and 9, and the placeholder of Adam's powers."""
    slices = gradient_of(program, [3, 9])
    powers = tf.placeholder(dtype, [2])
    inputs = {"var": program.table, "grad": slices.values, "indices": slices.indices}

    def number(value: float) -> Any:
        return tf.constant(value, dtype)

    tenth, step = number(0.1), {"global_step": tf.constant(6, tf.int64)}
    inputs |= {
        "GradientDescent": lambda: {"alpha": tenth, **step},
        "Momentum": lambda: {"accum": program.slot("m", 0.0), "lr": tenth, "momentum": number(0.9), **step},
        "Adagrad": lambda: {"accum": program.slot("a", 0.1), "lr": tenth, **step},
        "Adam": lambda: {
            **{"m": program.slot("m", 0.0), "v": program.slot("v", 0.0), "lr": tenth, "beta1": number(0.9)},
            **{"beta1_power": powers[0], "beta2_power": powers[1], "beta2": number(0.99)},
            **{"epsilon": number(1e-8), "weight_decay": number(0.3), "apply_weight_decay": kind == "AdamW", **step},
        },
        "Ftrl": lambda: {
            **{"accum": program.slot("a", 0.1), "linear": program.slot("l", 0.0), "lr": tenth},
            **{"l1": number(0.5), "l2": number(0.2), "lr_power": number(-0.5)},
        },
    }[kind.removesuffix("V2").removesuffix("W")]()
    if kind == "FtrlV2":
        inputs["l2_shrinkage"] = number(0.0)
    return getattr(raw, "KvResourceSparseApply" + kind.removesuffix("W"))(**inputs), powers


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_trained(program: Program, kind: str) -> None:
    program.begin(steps_to_live=10)
    update, powers = update_of(program, kind)

    for t in (1, 2, 3):
        program.session.run(update, {powers: [0.9**t, 0.99**t]})

    keys, values, versions, _ = program.exported()
    assert keys.tolist() == [3, 9]
    np.testing.assert_allclose(values, [by_hand(3, kind)] * 2, rtol=1e-5)
    if "Ftrl" not in kind:
        assert versions.tolist() == [6, 6]
        ids = tf.constant([9, 4], tf.int64)
        found = raw.EVGetVersion(resource_handle=program.table, ids=ids, Tvalues=tf.float32)
        assert program.session.run(found).tolist() == [6, 0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_half_rows_are_trained_in_float(kind: str, dtype: Any) -> None:
    """A step rounds the rows once: in an arithmetic of half types Adam's second moment would never grow."""
    with tf.Graph().as_default(), tf.Session() as session:
        program = Program(session, dtype)
        program.begin()
        update, powers = update_of(program, kind, dtype)

        for t in (1, 2, 3):
            session.run(update, {powers: np.array([0.9**t, 0.99**t], dtype.as_numpy_dtype)})

        keys, values = program.exported()[:2]
        assert keys.tolist() == [3, 9]
        assert values.dtype == dtype.as_numpy_dtype
        precision = 0.004 if dtype is tf.float16 else 0.03
        np.testing.assert_allclose(values.astype(np.float32), [by_hand(3, kind)] * 2, rtol=precision, atol=precision)


def test_half_rows_add_up_small_steps_no_finer_than_their_type() -> None:
    """Two gradients of an id in one update are added before the row is rounded."""
    with tf.Graph().as_default(), tf.Session() as session:
        program = Program(session, tf.float16)
        program.begin()
        ids = tf.constant([5, 5], tf.int64)
        small = tf.fill([2, 3], tf.constant(0.0003, tf.float16))
        step = tf.constant(0, tf.int64)
        session.run(
            raw.KvResourceSparseApplyGradientDescent(
                var=program.table, alpha=tf.constant(1.0, tf.float16), grad=small, indices=ids, global_step=step
            )
        )
        values = program.exported()[1]
        assert values.tolist() == [[float(np.float16(1 - 0.0006))] * 3]
        assert float(np.float16(np.float16(1 - 0.0002) - 0.0002)) == 1.0, "each of them alone would be lost"


def test_slots_are_exported_by_their_handles(program: Program) -> None:
    program.begin()
    program.session.run(program.gather([4]))
    slot = program.slot("a", 0.25)

    assert program.exported(slot).values.tolist() == [[0.25] * 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs an embedding variable, not its slot v/a"):
        program.session.run(raw.KvResourceGather(resource=slot, indices=tf.constant([1], tf.int64), default_value=1.0))


def test_what_updates_and_lookups_refuse(program: Program) -> None:
    program.begin()
    other = program.handle("other")
    program.initialize(other, other, tf.ones([3]))
    slot, foreign, narrow = program.slot("a", 0.1), program.handle("other/a"), program.handle("v/n", 1)
    program.initialize(narrow, program.table, tf.zeros([1]), shape=[1])
    program.initialize(foreign, other, tf.zeros([3]))
    ids, step = tf.constant([1], tf.int64), tf.constant(0, tf.int64)

    def adagrad(accum: Any, grad: Any, var: Any = program.table) -> Any:
        return raw.KvResourceSparseApplyAdagrad(
            var=var, accum=accum, lr=tf.constant(0.1), grad=grad, indices=ids, global_step=step
        )

    for call, text in (
        (lambda: adagrad(foreign, tf.ones([1, 3])), "needs a slot of the embedding variable v as its accum"),
        (lambda: adagrad(program.table, tf.ones([1, 3])), "needs a slot of the embedding variable v as its accum"),
        (
            lambda: adagrad(narrow, tf.ones([1, 3])),
            "needs a slot as wide as the weights of v, 3, as its accum; v/n has 1",
        ),
        (lambda: adagrad(slot, tf.ones([1, 2])), r"grad has shape \[1,2\] for keys of shape \[1\]; a row of 3"),
        (
            lambda: program.gather([1], default_value=tf.ones([2]), is_use_default_value_tensor=True),
            r"shape \[2\]; \[3\] or",
        ),
        (
            lambda: raw.KvResourceGatherV1(
                resource=program.table, indices=ids, default_value=1.0, counts=tf.constant([1, 2])
            ),
            r"counts have shape \[2\]",
        ),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            program.session.run(call())
    late = program.handle("late")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"needs rows of 3 elements to begin with.*\[4\]"):
        program.initialize(late, late, tf.ones([4]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="vectors of a known size"):
        program.initialize(late, late, tf.ones([4]), shape=[2, 2])


def test_a_variable_is_forgotten(program: Program) -> None:
    program.begin()
    program.session.run(raw.DestroyKvResourceOp(resource=program.table))
    program.session.run(raw.DestroyKvResourceOp(resource=program.table))

    assert not program.session.run(raw.KvVarIsInitializedOp(resource=program.table, Tkeys=tf.int64))
    with pytest.raises(tf.errors.NotFoundError, match="There is no embedding variable v"):
        program.session.run(raw.DestroyKvResourceOp(resource=program.table, ignore_lookup_error=False))


def test_where_ids_are_and_versions_of_those_that_wait(program: Program) -> None:
    program.begin(filter_freq=2, steps_to_live=10)
    program.session.run(program.gather([3]))
    program.session.run(update_of(program, "GradientDescent")[0])

    ids = tf.constant([3, 9, 4], tf.int64)
    tier = raw.KvResourceLookupTier(resource=program.table, ids=ids, dtype=tf.float32)
    assert program.session.run(tier).tolist() == [0, 0, -1]
    versions = raw.EVGetVersion(resource_handle=program.table, ids=ids, Tvalues=tf.float32)
    assert program.session.run(versions).tolist() == [6, 6, 0], "9 waits, and yet it was updated"


def test_a_task_that_only_answers_adds_no_rows(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.begin()
    program.session.run(program.gather([3]))
    monkeypatch.setenv("INFERENCE_MODE", "1")

    assert program.session.run(program.gather([3, 4])).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert program.exported().keys.tolist() == [3]


def test_options_that_are_no_json_are_refused(program: Program) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"attr_json_str is not a JSON object: \[1\]"):
        program.begin(attr_json_str="[1]")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"attr_json_str is no JSON: \{"):
        program.begin(attr_json_str="{")
