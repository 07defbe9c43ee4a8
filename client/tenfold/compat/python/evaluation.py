"""`tensorflow.python.training.evaluation`: of its helpers the one that programs call."""

from __future__ import annotations

from typing import Any

from tenfold.graph import GraphKeys
from tenfold.ops import init_ops
from tenfold.ops.variable_scope import get_variable, variable_scope
from tenfold_core import dtypes


def _get_or_create_eval_step() -> Any:
    """The variable that counts the steps of an evaluation. Raises ValueError if the graph has several."""
    from tenfold.graph import get_default_graph

    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    with variable_scope("", use_resource=True):
        return get_variable(
            "eval_step",
            shape=[],
            dtype=dtypes.int64,
            initializer=init_ops.zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
        )


get_or_create_eval_step = _get_or_create_eval_step
