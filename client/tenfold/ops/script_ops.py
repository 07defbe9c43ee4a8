"""Python functions in a graph (`tf.py_func`): the node holds a token; the function stays in this process.

tenfold_core/script_functions.py keeps the function, and the PyFunc kernel calls it; a task in another process
cannot run the node. The node's name and attrs follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold_core import dtypes, script_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["eager_py_func", "numpy_function", "py_func", "py_function"]


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """The outputs of `func(*inp)`, called with arrays whenever the node runs.

    `Tout` is a type, or a list of types, which `func` must return exactly. A function without side effects may be
    declared not `stateful`. Gives a tensor for a single type, a list for a list of types, and the operation itself
    for an empty list; without state that is an empty list, as nothing would run such a function.
    """
    if not callable(func):
        raise TypeError(f"py_func needs a function, got {func!r}")
    several = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t) for t in (Tout if several else [Tout])]
    token = script_functions.register(func, get_default_graph().outermost)
    outputs = apply_op("PyFunc" if stateful else "PyFuncStateless", name, input=list(inp), token=token, Tout=types)
    if not types or several:
        return outputs
    return outputs[0] if isinstance(outputs, (list, tuple)) else outputs


def numpy_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: str | None = None) -> Any:
    """`py_func` of a function that may have side effects."""
    return py_func(func, inp, Tout, stateful=True, name=name)


class FedValue(np.ndarray):
    """An array that a function of `py_function` gets: it has TensorFlow's `numpy()`, which gives a plain array."""

    def numpy(self) -> Any:
        """The value as an array, or as bytes for one string."""
        plain = self.view(np.ndarray)
        return plain[()] if plain.ndim == 0 else plain


def py_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: str | None = None) -> Any:
    """`py_func` of a function that takes TensorFlow's eager values: here arrays that have `numpy()`, too.

    The function computes with NumPy; ops of `tf` inside it would build a graph. It has no gradient. Its results are
    converted to `Tout`; with an empty `Tout`, the operation is returned.
    """
    types = [dtypes.as_dtype(each) for each in (Tout if isinstance(Tout, (list, tuple)) else [Tout])]

    def called(*values: Any) -> Any:
        given = func(*(np.asarray(value).view(FedValue) for value in values))
        if not types:
            return []
        results = given if isinstance(given, (list, tuple)) and len(types) == len(given) else [given]
        arrays = [
            np.asarray(each, object if dtype.name == "string" else dtype.as_numpy_dtype)
            for each, dtype in zip(results, types, strict=True)
        ]
        return arrays if len(types) > 1 or isinstance(Tout, (list, tuple)) else arrays[0]

    return py_func(called, inp, Tout, stateful=True, name=name)


eager_py_func = py_function
