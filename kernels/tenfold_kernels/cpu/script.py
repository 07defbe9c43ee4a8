"""PyFunc and its kin: call a function of the client's process, found by its token in tenfold_core/script_functions.py.

Only a server in the client's own process has the function, and calls it for sessions of that process alone; elsewhere
the error says so. Runs on the step's thread and blocks for as long as the function does. Follows py_func.cc in what
functions get, may return and raise.
"""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np

from tenfold_core import errors, script_functions
from tenfold_kernels.arrays import Array, invalid, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel

#: What a function raises → the error of the step, the first that fits. Everything else is UnknownError.
_ERRORS: tuple[tuple[type[BaseException], type[errors.OpError]], ...] = (
    (TypeError, errors.InvalidArgumentError),
    (ValueError, errors.InvalidArgumentError),
    (StopIteration, errors.OutOfRangeError),
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
)


@kernel("PyFunc", "PyFuncStateless", "EagerPyFunc")
def build_py_func(node: KernelNode) -> Compute:
    token = text_attr(node, "token")
    types = node.output_types
    is_own = node.is_own_session

    def compute(*inputs: Array) -> Any:
        # another program's session does not even learn whether there is such a function
        function = script_functions.find(token) if is_own else None
        if function is None:
            raise invalid(
                f"{node.op} '{node.name}': callback {token} is not found. The function lives in the process that built "
                "the graph: it runs only on a server in that process, for the sessions that this process opens, not on "
                "another task."
            )
        try:
            returned = function(*(_argument(x) for x in inputs))
        except errors.OpError:
            raise
        except Exception as error:
            raise _step_error(error) from error
        if returned is None:
            values: list[Any] = []
        else:
            values = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        if len(values) != len(types):
            raise invalid(f"{token} returns {len(values)} values, but expects to see {len(types)} values.")
        outputs = [_result(token, i, value, types[i]) for i, value in enumerate(values)]
        if len(outputs) == 1:
            return outputs[0]
        return tuple(outputs) if outputs else None

    return compute


def _argument(x: Array) -> Any:
    """What the function sees: an array that it may write to; a NumPy scalar, or bytes, for a scalar."""
    if x.ndim == 0:
        return x[()]
    return x if x.flags.writeable and x.flags.owndata else x.copy()


def _result(token: str, i: int, value: Any, dtype: Any) -> Array:
    array = np.asarray(value)
    if array.dtype.kind in "SU":
        flat = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(value, object).reshape(-1).tolist()]
        strings = np.empty(len(flat), object)
        strings[:] = flat
        array = strings.reshape(array.shape)
    wanted = np.dtype(dtype.as_numpy_dtype)
    if array.dtype == wanted:
        # The function may keep what it returned and change it later.
        return array.copy() if array is value else array
    # A Python number or list has no type of its own: it takes the wanted one where that loses nothing.
    if not isinstance(value, (np.ndarray, np.generic)) and np.can_cast(array.dtype, wanted, "same_kind"):
        return array.astype(wanted)
    raise invalid(f"{i}-th value returned by {token} is {array.dtype.name}, but expects {dtype.op_name}")


def _step_error(error: Exception) -> errors.OpError:
    kind = next((k for raised, k in _ERRORS if isinstance(error, raised)), None)
    text = f"{type(error).__name__}: {error}\n" + "".join(traceback.format_exception(error))
    if kind is None:
        return errors.unknown(text)
    return kind(None, None, text)
