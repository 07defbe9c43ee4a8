"""A part of a variable is assigned to, of both kinds of variables; a part of a tensor is not."""

from __future__ import annotations

import pytest

import tenfold as tf


@pytest.mark.parametrize("use_resource", [False, True])
def test_parts_are_assigned(use_resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", initializer=[[1, 2, 3], [4, 5, 6]], use_resource=use_resource)
        session.run(tf.global_variables_initializer())

        whole = session.run(variable[0, 1:].assign([8, 9]))
        session.run(variable[..., 0].assign([0, 0]))

        assert whole.tolist() == [[1, 8, 9], [4, 5, 6]]
        assert session.run(variable).tolist() == [[0, 8, 9], [0, 5, 6]]
        assert not hasattr(tf.constant([1, 2])[:1], "assign")
