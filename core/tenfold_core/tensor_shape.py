"""Static shapes: `Dimension` and `TensorShape`, as TensorFlow 1.x's Python API has them.

A dimension may be unknown (`None`), and so may the rank. Indexing a TensorShape gives a `Dimension`, whose `.value` is
an int or None. Used by the graph, the shape functions and the wire (TensorShapeProto). Follows tensor_shape.py of 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tenfold_protos import tensor_shape_pb2


class Dimension:
    """One dimension of a TensorShape: `.value` is an int ≥ 0, or None where it is not known."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        if value is None:
            self._value: int | None = None
            return
        if isinstance(value, Dimension):
            self._value = value._value
            return
        try:
            number = int(value.__index__())
        except AttributeError:
            try:
                number = int(value)
            except (TypeError, ValueError):
                raise TypeError(f"Dimension value must be integer or None, got {value!r}") from None
            if number != value and not isinstance(value, str | bytes):
                raise ValueError(f"Ambiguous dimension: {value}") from None
        if number < 0:
            raise ValueError(f"Dimension {number} must be >= 0")
        self._value = number

    @property
    def value(self) -> int | None:
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        other = as_dimension(other)
        return self._value is None or other._value is None or self._value == other._value

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """The dimension that both allow. Raises ValueError where they differ."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return other if self._value is None else self

    def _binary(self, other: Any, function: Callable[[int, int], int]) -> Any:
        try:
            other = as_dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or other._value is None:
            return Dimension(None)
        return Dimension(function(self._value, other._value))

    def __add__(self, other: Any) -> Any:
        return self._binary(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Any:
        return self._binary(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return as_dimension(other) - self

    def __mul__(self, other: Any) -> Any:
        return self._binary(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> Any:
        return self._binary(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Any:
        return as_dimension(other) // self

    # TensorFlow 1.x lets old programs divide dimensions with `/` and floors.
    __div__ = __floordiv__

    def __mod__(self, other: Any) -> Any:
        return self._binary(other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        return as_dimension(other) % self

    def _compare(self, other: Any, function: Callable[[int, int], bool]) -> bool | None:
        other = as_dimension(other)
        if self._value is None or other._value is None:
            return None
        return function(self._value, other._value)

    def __eq__(self, other: object) -> Any:
        try:
            return self._compare(other, lambda a, b: a == b)
        except (TypeError, ValueError):
            return NotImplemented

    def __ne__(self, other: object) -> Any:
        try:
            return self._compare(other, lambda a, b: a != b)
        except (TypeError, ValueError):
            return NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a >= b)

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        if self._value is None:
            raise TypeError("An unknown Dimension has no int value; feed the shape or set it with set_shape")
        return self._value

    __index__ = __int__

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value})"


def as_dimension(value: Any) -> Dimension:
    """A Dimension as it is; anything else through `Dimension(value)`."""
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(value: Any) -> int | None:
    """`.value` of a Dimension; an int or None as it is."""
    return value.value if isinstance(value, Dimension) else value


class TensorShape:
    """The static shape of a tensor: a list of dimensions, or of unknown rank.

    Built from None (unknown rank), an int (a vector), a TensorShapeProto, or an iterable of ints, Nones and Dimensions;
    -1 stands for None as on the wire.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        #: int or None for each dimension; None where the rank is unknown.
        self._dims: tuple[int | None, ...] | None
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif hasattr(dims, "unknown_rank"):
            self._dims = None if dims.unknown_rank else tuple(_size(d.size) for d in dims.dim)
        elif isinstance(dims, str | bytes):
            raise TypeError(f"A string has ambiguous TensorShape: {dims!r}. Please pass a list of dimensions.")
        else:
            try:
                items = list(dims)
            except TypeError:
                items = [dims]
            self._dims = tuple(Dimension(None if _is_minus_one(d) else d).value for d in items)

    @staticmethod
    def from_proto(proto: tensor_shape_pb2.TensorShapeProto) -> TensorShape:
        return TensorShape(proto)

    def as_proto(self) -> tensor_shape_pb2.TensorShapeProto:
        """TensorShapeProto, -1 for an unknown dimension."""
        from tenfold_protos import tensor_shape_pb2

        if self._dims is None:
            return tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
        dim = tensor_shape_pb2.TensorShapeProto.Dim
        return tensor_shape_pb2.TensorShapeProto(dim=[dim(size=-1 if d is None else d) for d in self._dims])

    @property
    def dims(self) -> list[Dimension] | None:
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    @property
    def ndims(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    rank = ndims

    def as_list(self) -> list[int | None]:
        """Ints and Nones. Raises ValueError where the rank is unknown."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self) -> int | None:
        """The product of the dimensions, None where it is not fully defined."""
        if self._dims is None:
            return None
        total = 1
        for d in self._dims:
            if d is None:
                return None
            total *= d
        return total

    def is_fully_defined(self) -> bool:
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        """True where some fully defined shape fits both."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """The most that both say. Raises ValueError where they contradict each other."""
        theirs = as_shape(other)
        if self._dims is None:
            return theirs
        if theirs._dims is None:
            return self
        if not self.is_compatible_with(theirs):
            raise ValueError(f"Shapes {self} and {theirs} are not compatible")
        return TensorShape([b if a is None else a for a, b in zip(self._dims, theirs._dims, strict=True)])

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The most specific shape that fits both: dimensions that differ are unknown, as is a differing rank."""
        theirs = as_shape(other)
        if self._dims is None or theirs._dims is None or len(self._dims) != len(theirs._dims):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self._dims, theirs._dims, strict=True)])

    def concatenate(self, other: Any) -> TensorShape:
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def with_rank(self, rank: int) -> TensorShape:
        """This shape with a known rank. Raises ValueError where it has another."""
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def assert_has_rank(self, rank: int) -> None:
        if self._dims is not None and len(self._dims) != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank_at_least(self, rank: int) -> TensorShape:
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_same_rank(self, other: Any) -> None:
        other = as_shape(other)
        if self._dims is not None and other._dims is not None and len(self._dims) != len(other._dims):
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of Shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key: Any) -> Any:
        if self._dims is not None:
            return TensorShape(self._dims[key]) if isinstance(key, slice) else Dimension(self._dims[key])
        if not isinstance(key, slice):
            return Dimension(None)
        start, stop = key.start or 0, key.stop
        if key.step not in (None, 1) or stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return unknown_shape(max(stop - start, 0))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)._dims
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        inner = ", ".join("?" if d is None else str(d) for d in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"

    def __repr__(self) -> str:
        return "TensorShape(None)" if self._dims is None else f"TensorShape({[Dimension(d) for d in self._dims]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)


def _size(size: int) -> int | None:
    """A size as a proto has it. Raises ValueError below -1."""
    if size < -1:
        raise ValueError(f"Dimension {size} must be >= -1, where -1 means unknown")
    return None if size == -1 else size


def _is_minus_one(value: Any) -> bool:
    return not isinstance(value, Dimension) and isinstance(value, int) and value == -1


def as_shape(value: Any) -> TensorShape:
    """A TensorShape as it is; anything else through `TensorShape(value)`."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of unknown rank, or of `rank` unknown dimensions."""
    return TensorShape(None) if rank is None else TensorShape([None] * rank)


def scalar() -> TensorShape:
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    return TensorShape([length])


def matrix(rows: Any, columns: Any) -> TensorShape:
    return TensorShape([rows, columns])


def from_dims(dims: Iterable[int | None]) -> TensorShape:
    """A shape of known rank from ints ≥ 0 and Nones."""
    return TensorShape(list(dims))
