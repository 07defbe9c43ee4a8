"""`xla.compile`: the computation as it is, its results passed on as XLA's would be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.graph.operation import Operation
from tenfold.ops import array, control_flow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """The results of `computation(*inputs)`, which is not compiled: a list of tensors, or a dictionary as it is.

    Operations among the results run with each of the tensors; results of operations alone give one operation, of
    nothing None. As TensorFlow 1.15's `tf.contrib.compiler.xla.compile`.
    """
    found = computation(*(convert_to_tensor(each) for each in inputs or ()))
    if found is None:
        return None
    if isinstance(found, dict):
        return found
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    waited = [each for each in results if isinstance(each, Operation)]
    tensors = [convert_to_tensor(each) for each in results if not isinstance(each, Operation)]
    with control_dependencies(waited):
        if not tensors:
            return control_flow.group(*waited)
        return [array.identity(each) for each in tensors]
