"""Scatters into a resource variable, by function and by method, give what those into a reference variable give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

ROWS = np.arange(1.0, 7.0).reshape(3, 2)
KINDS = ("add", "sub", "mul", "div", "min", "max", "update")


def after(use: Any, use_resource: bool) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=ROWS, use_resource=use_resource)
        changed = use(variable)
        session.run(variable.initializer)
        returned: Any = session.run(changed)
        assert returned.tolist() == session.run(variable).tolist()
        return returned.tolist()


USES = {
    **{f"scatter_{kind}": lambda v, kind=kind: getattr(tf, f"scatter_{kind}")(v, [1], [[2.0, 9.0]]) for kind in KINDS},
    **{
        f"scatter_{kind} of it": lambda v, kind=kind: getattr(v, f"scatter_{kind}")(
            tf.IndexedSlices(tf.constant([[2.0, 9.0]], tf.float64), tf.constant([1]))
        )
        for kind in KINDS
    },
    **{
        f"scatter_nd_{kind}": lambda v, kind=kind: getattr(tf, f"scatter_nd_{kind}")(v, [[1, 0]], [2.0])
        for kind in ("add", "sub", "update")
    },
    **{
        f"scatter_nd_{kind} of it": lambda v, kind=kind: getattr(v, f"scatter_nd_{kind}")([[1, 0]], [2.0])
        for kind in ("add", "sub", "update")
    },
    "batch_scatter_update": lambda v: tf.batch_scatter_update(v, [[1], [0], [1]], [[7.0], [8.0], [9.0]]),
    "batch_scatter_update of it": lambda v: v.batch_scatter_update(
        tf.IndexedSlices(tf.constant([[7.0], [8.0], [9.0]], tf.float64), tf.constant([[1], [0], [1]]))
    ),
}


@pytest.mark.parametrize("name", USES)
def test_as_into_a_reference_variable(name: str) -> None:
    found = after(USES[name], use_resource=True)
    assert found == after(USES[name], use_resource=False)
    assert found != ROWS.tolist()


@pytest.mark.parametrize("op", ["ResourceScatterAdd", "ResourceScatterMul", "ResourceScatterNdAdd", "ResourceGather"])
def test_another_type_than_the_variables_is_named(op: str) -> None:
    # a graph of another client may say any type: the handle does not tell
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=ROWS, use_resource=True)
        session.run(variable.initializer)
        raw = getattr(tf.raw_ops, op)
        if op == "ResourceGather":
            step = raw(resource=variable.handle, indices=[1], dtype=tf.float32)
        else:
            target = {"ref" if "Nd" in op else "resource": variable.handle}
            indices, updates = ([[1, 0]], [2.0]) if "Nd" in op else ([1], [[2.0, 9.0]])
            step = raw(**target, indices=indices, updates=tf.constant(updates, tf.float32))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"wrong dtype in .*Expected double got float"):
            session.run(step)
        assert session.run(variable).tolist() == ROWS.tolist()
