"""Checks of tensors: `tf.assert_equal`, `tf.assert_rank`, `tf.is_strictly_increasing` and similar.

What is known statically is checked while the graph is built; the rest becomes an Assert, on which another operation has
to depend (`tf.control_dependencies`). Follows TensorFlow 1.15's check_ops.py, with the same error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold import nest
from tenfold.graph.constant_value import constant_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.named import named
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow import Assert, no_op
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tenfold.graph.argument_types import DTypeLike, TensorLike
    from tenfold.graph.operation import Operation
    from tenfold_core.dtypes import DType

__all__ = [
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
]

_NUMERIC = frozenset(
    {
        *(dtypes.float32, dtypes.float64, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8),
        *(dtypes.qint8, dtypes.qint32, dtypes.quint8, dtypes.complex64),
    }
)


def _in_graph(*values: Any) -> list[Any]:
    """The elements of a graph among `values` and lists in them; a name scope checks these."""
    return [value for value in nest.flatten(list(values)) if hasattr(value, "graph")]


# --- element by element ---


class _Comparison(Protocol):
    def __call__(
        self,
        x: TensorLike,
        y: TensorLike,
        data: TensorLike | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation: ...


def _comparison(made: str, sign: str, compare: Callable[[Any, Any], Tensor], compare_now: Any) -> _Comparison:
    def check(
        x: TensorLike,
        y: TensorLike,
        data: TensorLike | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, made, _in_graph(x, y, data)):
            if sign == "==" and x is y:
                return no_op()
            first = convert_to_tensor(x, name="x")
            second = convert_to_tensor(y, name="y")
            shown: Any = data
            if shown is None:
                shown = [f"Condition x {sign} y did not hold element-wise:", *_shown("x", first), *_shown("y", second)]
            if message is not None:
                shown = [message, *shown]
            holds = math.reduce_all(compare(first, second))
            known_x, known_y = constant_value(first), constant_value(second)
            if known_x is not None and known_y is not None and not np.all(compare_now(known_x, known_y)):
                raise errors.InvalidArgumentError(None, None, "\n".join(_as_text(item) for item in shown))
            return Assert(holds, shown, summarize=summarize)

    return named(check, made, f"Fails unless x {sign} y everywhere.")


def _shown(what: str, tensor: Tensor) -> list[Any]:
    return [f"{what} ({tensor.name}) = ", tensor]


def _as_text(item: Any) -> str:
    known = constant_value(item) if isinstance(item, Tensor) else item
    return str(item if known is None else known)


assert_equal = _comparison("assert_equal", "==", math.equal, np.equal)
assert_none_equal = _comparison("assert_none_equal", "!=", math.not_equal, np.not_equal)
assert_less = _comparison("assert_less", "<", math.less, np.less)
assert_less_equal = _comparison("assert_less_equal", "<=", math.less_equal, np.less_equal)
assert_greater = _comparison("assert_greater", ">", math.greater, np.greater)
assert_greater_equal = _comparison("assert_greater_equal", ">=", math.greater_equal, np.greater_equal)


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: Any = None,
    atol: Any = None,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails unless |x - y| < atol + rtol * |y| everywhere; both default to ten times the type's epsilon."""
    with name_scope(name, "assert_near", _in_graph(x, y, rtol, atol, data)):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype)
        epsilon = np.finfo(x.dtype.as_numpy_dtype).eps
        rtol = convert_to_tensor(10 * epsilon if rtol is None else rtol, name="rtol", dtype=x.dtype)
        atol = convert_to_tensor(10 * epsilon if atol is None else atol, name="atol", dtype=x.dtype)
        if data is None:
            data = [
                message or "",
                f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}",
                *_shown("x", x),
                *_shown("y", y),
            ]
        holds = math.reduce_all(math.less(math.abs(x - y), atol + rtol * math.abs(y)))
        return Assert(holds, data, summarize=summarize)


class _ZeroCheck(Protocol):
    def __call__(
        self,
        x: TensorLike,
        data: TensorLike | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation: ...


def _against_zero(made: str, sign: str, zero_first: bool, compare: _Comparison) -> _ZeroCheck:
    def check(
        x: TensorLike,
        data: TensorLike | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with name_scope(name, made, _in_graph(x, data)):
            tensor = convert_to_tensor(x, name="x")
            shown: Any = data
            if shown is None:
                shown = [message or "", f"Condition x {sign} 0 did not hold element-wise:", *_shown("x", tensor)]
            zero = convert_to_tensor(0, dtype=tensor.dtype)
            pair = (zero, tensor) if zero_first else (tensor, zero)
            return compare(*pair, data=shown, summarize=summarize)

    return named(check, made, f"Fails unless x {sign} 0 everywhere.")


assert_negative = _against_zero("assert_negative", "<", False, assert_less)
assert_positive = _against_zero("assert_positive", ">", True, assert_less)
assert_non_negative = _against_zero("assert_non_negative", ">=", True, assert_less_equal)
assert_non_positive = _against_zero("assert_non_positive", "<=", False, assert_less_equal)


# --- rank, type ---


def _ranked(
    what: str,
    x: Any,
    ranks: Sequence[Any],
    fits: tuple[Callable[[int, Sequence[int]], bool], Callable[[Tensor, Sequence[Tensor]], Tensor]],
    data: Any,
    summarize: int | None,
    message: str | None,
    name: str | None,
) -> Operation:
    """`fits` decides on numbers while the graph is built, and makes the tensor that decides in a step."""
    fits_now, fits_later = fits
    with name_scope(name, "assert_rank" + what.replace(" ", "_"), _in_graph(x, list(ranks), data)):
        x = convert_to_tensor(x, name="x")
        wanted = [convert_to_tensor(rank, name="rank") for rank in ranks]
        if data is None:
            data = [message or "", f"Tensor {x.name} must have rank{what}", *wanted, "Received shape: ", array.shape(x)]
        for rank in wanted:
            assert_type(rank, dtypes.int32)
        known = [constant_value(rank) for rank in wanted]
        if all(value is not None for value in known):
            if any(value.ndim != 0 for value in known):
                raise ValueError("Rank must be a scalar.")
            if x.shape.ndims is not None:
                numbers = [int(value) for value in known]
                if not fits_now(x.shape.ndims, numbers):
                    asked = tuple(numbers) if what == " in" else numbers[0]
                    raise ValueError(
                        f"{message or ''}.  Tensor {x.name} must have rank{what} {asked}.  Received rank "
                        f"{x.shape.ndims}, shape {x.shape}"
                    )
                return no_op(name="static_checks_determined_all_ok")
        holds: Any = fits_later(array.rank(x), wanted)
        for rank, value in zip(wanted, known, strict=True):
            if value is None:
                is_scalar = assert_rank(rank, 0, data=["Rank must be a scalar. Received rank: ", rank])
                holds = with_dependencies([is_scalar], holds)
        return Assert(holds, data, summarize=summarize)


def assert_rank(
    x: TensorLike,
    rank: Any,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails unless x has the rank `rank`. Raises ValueError if that is known statically."""
    fits = (lambda actual, wanted: actual == wanted[0], lambda actual, wanted: math.equal(actual, wanted[0]))
    return _ranked("", x, [rank], fits, data, summarize, message, name)


def assert_rank_at_least(
    x: TensorLike,
    rank: Any,
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails unless x has `rank` dimensions or more. Raises ValueError if that is known statically."""
    fits = (lambda actual, wanted: actual >= wanted[0], lambda actual, wanted: math.greater_equal(actual, wanted[0]))
    return _ranked(" at least", x, [rank], fits, data, summarize, message, name)


def assert_rank_in(
    x: TensorLike,
    ranks: Iterable[Any],
    data: TensorLike | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails unless the rank of x is one of `ranks`. Raises ValueError if that is known statically."""

    def any_of(actual: Tensor, wanted: Sequence[Tensor]) -> Tensor:
        if not wanted:
            return convert_to_tensor(False)
        result = math.equal(wanted[0], actual)
        for rank in wanted[1:]:
            result = math.logical_or(result, math.equal(rank, actual))
        return result

    fits = (lambda actual, wanted: actual in wanted, any_of)
    return _ranked(" in", x, list(ranks), fits, data, summarize, message, name)


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError unless x is of an integer type."""
    with name_scope(name, "assert_integer", _in_graph(x)):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError(f'{message or ""}  Expected "x" to be integer type.  Found: {x.name} of dtype {x.dtype}')
        return no_op("statically_determined_was_integer")


def assert_type(tensor: TensorLike, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError unless `tensor` is of the type `tf_type`."""
    with name_scope(name, "assert_type", _in_graph(tensor)):
        tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype != tf_type:
            raise TypeError(f"{message or ''}  {tensor.name} must be of type {tf_type}")
        return no_op("statically_determined_correct_type")


def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> Tensor:
    """`tensor`. Raises ValueError unless it is known to be a scalar."""
    with name_scope(name, "assert_scalar", _in_graph(tensor)) as scope:
        scalar = convert_to_tensor(tensor, name=scope)
        if scalar.shape.ndims != 0:
            raise ValueError(f"{message or ''}Expected scalar shape for {scalar.name}, saw shape: {scalar.shape}.")
        return scalar


def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError unless `values` is meant to be iterated over: not a tensor, an array or a string."""
    if isinstance(values, (Tensor, np.ndarray, bytes, str)) or nest.is_composite(values):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


def assert_same_float_dtype(tensors: Any = None, dtype: DTypeLike | None = None) -> DType:
    """The floating type that `tensors` and `dtype` share; float32 if there are none. Raises ValueError otherwise."""
    wanted: DType | None = None if dtype is None else dtypes.as_dtype(dtype)
    first = ""
    for item in tensors or ():
        if item is None:
            continue
        found = item.dtype.base_dtype
        if wanted is None:
            wanted, first = found, f" as {item.name}"
        elif found != wanted:
            raise ValueError(f"{item.name}, type={found!r}, must be of the same type ({wanted!r}){first}.")
    if wanted is None:
        return dtypes.float32
    if not wanted.is_floating:
        raise ValueError(f"Expected floating point type, got {wanted!r}.")
    return wanted


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether `tensor` is a Tensor of numbers."""
    return isinstance(tensor, Tensor) and tensor.dtype in _NUMERIC


# --- order ---


def _steps(x: Any) -> Any:
    """The differences of neighbouring elements of x, taken in order."""
    x = array.reshape(x, [-1])
    if not is_numeric_tensor(x):
        raise TypeError(f"Expected x to be numeric, instead found: {x}")
    rest = array.shape(x) - 1
    return cond(
        math.less(array.size(x), 2),
        lambda: array.constant(np.zeros(0, x.dtype.as_numpy_dtype), dtype=x.dtype),
        lambda: slicing.strided_slice(x, [1], 1 + rest) - slicing.strided_slice(x, [0], rest),
    )


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """A scalar bool: no element of x is smaller than the one before."""
    with name_scope(name, "is_non_decreasing", _in_graph(x)):
        steps = _steps(x)
        return math.reduce_all(math.less_equal(convert_to_tensor(0, dtype=steps.dtype), steps))


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """A scalar bool: every element of x is greater than the one before."""
    with name_scope(name, "is_strictly_increasing", _in_graph(x)):
        steps = _steps(x)
        return math.reduce_all(math.less(convert_to_tensor(0, dtype=steps.dtype), steps))
