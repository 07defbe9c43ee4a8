"""Python operators on tensors, and on objects that convert to a tensor (variables, indexed slices).

`Operators` defines the special methods; what they do is registered in the table below by ops/operators.py, which is
loaded with the first module of tenfold.ops, so that the graph package does not depend on them. A class that inherits it
needs a conversion function (graph/conversion.py), nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

#: Special method name → the function that builds it. Reflected methods share the entry of the plain one.
_IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}


def implement_operator(name: str, function: Callable[..., Any]) -> None:
    """Registers what the operator `name` (`__add__`, …) builds. Raises ValueError if there is one already."""
    taken = _IMPLEMENTATIONS.setdefault(name, function)
    if taken is not function:
        raise ValueError(f"operator {name} is implemented by {taken.__module__}.{taken.__qualname__} already")


def _apply(name: str, *operands: Any) -> Tensor:
    result: Tensor = _IMPLEMENTATIONS[name](*operands)
    return result


class Operators:
    """The overloaded operators of TensorFlow 1.x. Equality stays identity; use `tf.equal`."""

    __slots__ = ()

    #: Makes NumPy leave `array + tensor` to `Tensor.__radd__`.
    __array_priority__ = 100

    def __add__(self, other: Any) -> Tensor:
        return _apply("__add__", self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _apply("__add__", other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _apply("__sub__", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _apply("__sub__", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _apply("__mul__", self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _apply("__mul__", other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _apply("__truediv__", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _apply("__truediv__", other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return _apply("__floordiv__", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _apply("__floordiv__", other, self)

    def __mod__(self, other: Any) -> Tensor:
        return _apply("__mod__", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _apply("__mod__", other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _apply("__pow__", self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return _apply("__pow__", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return _apply("__matmul__", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _apply("__matmul__", other, self)

    def __lt__(self, other: Any) -> Tensor:
        return _apply("__lt__", self, other)

    def __le__(self, other: Any) -> Tensor:
        return _apply("__le__", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _apply("__gt__", self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _apply("__ge__", self, other)

    def __and__(self, other: Any) -> Tensor:
        return _apply("__and__", self, other)

    def __rand__(self, other: Any) -> Tensor:
        return _apply("__and__", other, self)

    def __or__(self, other: Any) -> Tensor:
        return _apply("__or__", self, other)

    def __ror__(self, other: Any) -> Tensor:
        return _apply("__or__", other, self)

    def __xor__(self, other: Any) -> Tensor:
        return _apply("__xor__", self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return _apply("__xor__", other, self)

    def __neg__(self) -> Tensor:
        return _apply("__neg__", self)

    def __abs__(self) -> Tensor:
        return _apply("__abs__", self)

    def __invert__(self) -> Tensor:
        return _apply("__invert__", self)

    def __getitem__(self, item: Any) -> Tensor:
        return _apply("__getitem__", self, item)

    # Without this, Python would iterate by __getitem__(0), (1), … and add slices to the graph without end.
    def __iter__(self) -> Any:
        raise TypeError(
            f"'{type(self).__name__}' object is not iterable. Tensor objects are only iterable when eager execution is "
            "enabled. To iterate over this tensor use tf.map_fn."
        )
