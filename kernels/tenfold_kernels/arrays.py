"""What kernels and resources do with arrays alike: error texts in TensorFlow's words, 0-d results, shape inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tenfold_kernels.registry import KernelNode

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")


class Shaped(Protocol):
    """What checks of shapes look at: an array of the host, or of a GPU."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...


def invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def one_number(value: Array, what: str) -> int:
    """The whole number that an input holds. Raises InvalidArgumentError unless it is a scalar."""
    if value.ndim:
        raise invalid(f"{what} must be a scalar, got shape {shape_text(value.shape)}")
    return int(value)


def shape_text(shape: Iterable[int]) -> str:
    """`[2,3]`, as TensorShape::DebugString writes it."""
    return "[" + ",".join(str(d) for d in shape) + "]"


def incompatible(*arrays: Array) -> errors.InvalidArgumentError:
    return invalid("Incompatible shapes: " + " vs. ".join(shape_text(a.shape) for a in arrays))


def as_array(value: Any) -> Array:
    """`value`, or the 0-d array of the element that a ufunc, a reduction or an index returns: bytes stay an object."""
    if type(value) is np.ndarray:
        return value
    return scalar_object(value) if isinstance(value, bytes) else np.asarray(value)


def scalar_object(value: Any) -> Array:
    """A fresh 0-d array of a string, or of what a variant or resource edge carries."""
    out = np.empty((), dtype=object)
    out[()] = value
    return out


def objects(values: Sequence[Any]) -> Array:
    """A fresh vector of such values."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


#: From NumPy 2.3 on a ufunc called with out=... gives an array for 0-d inputs too, where it gives a NumPy scalar
#: otherwise: half the time of making an array of that scalar.
_GIVES_ARRAYS = np.lib.NumpyVersion(np.__version__) >= "2.3.0"


def returning_array(ufunc: np.ufunc) -> Callable[..., Any]:
    """`ufunc` as a function of its inputs that gives an array, 0-d included."""
    call: Callable[..., Any] = ufunc
    if not _GIVES_ARRAYS:
        return lambda *inputs: as_array(call(*inputs))
    if ufunc.nin == 1:
        return lambda x: call(x, out=...)
    return lambda x, y: call(x, y, out=...)


def output_type(node: KernelNode, index: int = 0) -> Any:
    """The NumPy type of an output."""
    return node.output_types[index].base_dtype.as_numpy_dtype


def input_type(node: KernelNode, index: int = 0) -> Any:
    """The NumPy type of an input."""
    return node.input_types[index].base_dtype.as_numpy_dtype


def text_attr(node: KernelNode, name: str, default: str = "") -> str:
    """A string attr as str; attrs of type string are bytes."""
    value = node.attrs.get(name, default)
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise invalid(f"attr {name!r} of {node.op} is no UTF-8: {value!r}") from None


def as_shape(value: Array, what: str = "shape", dtype: Any = None, times: int = 1) -> tuple[int, ...]:
    """The dimensions that a shape input holds. Raises InvalidArgumentError unless it is a vector of sizes ≥ 0.

    With a `dtype`, ResourceExhaustedError when a tensor of it would be too large; `times` as in sizes.allow.
    """
    if value.ndim > 1:
        raise invalid(f"{what} must be a vector of {{int32,int64}}, got shape {shape_text(value.shape)}")
    dims = tuple(value.ravel().tolist())
    for i, d in enumerate(dims):
        if d < 0:
            raise invalid(f"Dimension {d} must be >= 0: {what}[{i}] of {shape_text(dims)}")
    if dtype is not None:
        allow(dims, dtype, times)
    return dims


def freeze(array: Array) -> Array:
    """Makes an array that nobody else holds read-only for good, and the memory that it is a view of; the array."""
    part: Any = array
    while type(part) is np.ndarray:
        part.flags.writeable = False
        part = part.base
    return array


def is_frozen(array: Array) -> bool:
    """Whether the array is what it is for good, as constants are, so that a kernel may remember what it read there.

    A read-only view of what others write to is not: that of a reference variable is the same object in all steps.
    """
    if array.flags.writeable:
        return False
    owner: Any = array
    while type(owner.base) is np.ndarray:
        owner = owner.base
    return not owner.flags.writeable and (owner.base is None or type(owner.base) is bytes)


def remembering(read: Callable[[Array], T]) -> Callable[[Array], T]:
    """`read`, a function of an input's elements, with what it gave for the last frozen array: a constant is the same
    array in every step. For small inputs: the array is kept.
    """
    last: tuple[Any, Any] = (None, None)

    def again(array: Array) -> T:
        nonlocal last
        known = last
        if known[0] is not array:
            known = array, read(array)
            if is_frozen(array):
                last = known
        value: T = known[1]
        return value

    return again


def canonical_axis(axis: int, rank: int, message: str) -> int:
    """`axis` counted from the front. Raises InvalidArgumentError with `message` if it is not in [-rank, rank)."""
    if not -rank <= axis < rank:
        raise invalid(message)
    return axis + rank if axis < 0 else axis


def truncated_quotient(x: Any, y: Any) -> Any:
    """Of integers, cut towards zero as C++ divides them; the least number, too. By 0 it is what NumPy makes of that."""
    return np.floor_divide(x - np.fmod(x, y), y)


def contiguous(array: Array) -> Array:
    """`array`, or a C-contiguous, aligned copy of it: compiled kernels take nothing else. Keeps 0-d arrays 0-d.

    An array that views the bytes of a message may be unaligned.
    """
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def broadcast_shape(arrays: Sequence[Array]) -> tuple[int, ...]:
    """The shape that the arrays broadcast to. Raises InvalidArgumentError in TensorFlow's words."""
    try:
        return np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        raise incompatible(*arrays) from None
