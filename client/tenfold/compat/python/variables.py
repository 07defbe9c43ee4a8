"""Names of TensorFlow's variables and variable_scope modules for what is `tf.Variable` here."""

from __future__ import annotations

from typing import Any

from tenfold.graph import GraphKeys, get_collection
from tenfold.ops.reference_variables import RefVariable
from tenfold.ops.variables import Variable

__all__ = ["RefVariable", "VariableV1", "variable"]

VariableV1 = Variable


def variable(*args: Any, **kwargs: Any) -> Variable:
    """A new variable: `tf.Variable`."""
    return Variable(*args, **kwargs)


def _all_saveable_objects(scope: str | None = None) -> list[Any]:
    """What a Saver saves by default: global variables and saveable objects."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope) + get_collection(GraphKeys.SAVEABLE_OBJECTS, scope)
