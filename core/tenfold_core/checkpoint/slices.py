"""Parts of a tensor: which box of it a saved slice is, as text, as a key of a checkpoint, and as a proto.

The text is what a Saver puts into `shape_and_slices`: "10 4 0,5:-" is rows 0 to 4 of a tensor of shape [10,4]. Used by
bundle_*.py, v1.py and the kernels of cpu/io_checkpoint.py. Follows tensor_slice.cc and saved_tensor_slice_util.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.checkpoint import coding
from tenfold_protos import tensor_slice_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

#: TensorFlow's limit on a tensor's rank.
MAX_RANK = 254
_MAX_SIZE = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A box: (start, length) of each dimension, or None for all of it."""

    extents: tuple[tuple[int, int] | None, ...]

    @classmethod
    def full(cls, rank: int) -> TensorSlice:
        return cls((None,) * rank)

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """Reads "0,5:-". Raises InvalidArgumentError."""
        extents: list[tuple[int, int] | None] = []
        for item in text.split(":"):
            if not item:
                continue
            if item == "-":
                extents.append(None)
                continue
            numbers = [piece for piece in item.split(",") if piece]
            try:
                start, length = (_number(piece) for piece in numbers)
            except ValueError:
                raise _invalid(f"Expected a pair of numbers or '-' but got '{item}': string = {text}") from None
            extents.append(_checked(start, length, f"string = {text}"))
        return cls(tuple(extents))

    @classmethod
    def from_proto(cls, proto: tensor_slice_pb2.TensorSliceProto) -> TensorSlice:
        """Raises InvalidArgumentError for a negative or endless box."""
        extents: list[tuple[int, int] | None] = []
        for extent in proto.extent:
            length = extent.length if extent.HasField("length") else -1
            full = extent.start == 0 and length == -1
            extents.append(None if full else _checked(extent.start, length, f"extent = {str(extent).strip()}"))
        return cls(tuple(extents))

    def to_proto(self) -> tensor_slice_pb2.TensorSliceProto:
        proto = tensor_slice_pb2.TensorSliceProto()
        for extent in self.extents:
            item = proto.extent.add()
            if extent is not None:
                item.start, item.length = extent
        return proto

    def __str__(self) -> str:
        return ":".join("-" if e is None else f"{e[0]},{e[1]}" for e in self.extents)

    @property
    def is_full(self) -> bool:
        return all(extent is None for extent in self.extents)

    def bounds(self, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """(start, end) in each dimension of a tensor of `shape`. Raises InternalError where they do not fit."""
        if len(shape) != len(self.extents):
            raise errors.InternalError(None, None, f"Mismatching ranks: shape = {_text(shape)}, slice = {self}")
        found = []
        for d, (size, extent) in enumerate(zip(shape, self.extents, strict=True)):
            start, end = (0, size) if extent is None else (extent[0], extent[0] + extent[1])
            if end > size:
                raise errors.InternalError(
                    None, None, f"Extent in dimension {d} out of bounds: shape = {_text(shape)}, slice = {self}"
                )
            found.append((start, end))
        return tuple(found)

    def shape_in(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of this part of a tensor of `shape`."""
        return tuple(end - start for start, end in self.bounds(shape))

    def covers(self, shape: tuple[int, ...]) -> bool:
        """Whether this is all of a tensor of `shape`."""
        return len(shape) == len(self.extents) and all(
            extent is None or extent == (0, size) for extent, size in zip(self.extents, shape, strict=True)
        )

    def key(self, name: bytes) -> bytes:
        """The key under which this part of the tensor `name` is stored."""
        out = coding.put_ordered_number(0) + coding.put_ordered_string(name)
        out += coding.put_ordered_number(len(self.extents))
        for extent in self.extents:
            start, length = (0, -1) if extent is None else extent
            out += coding.put_signed(start) + coding.put_signed(length)
        return out

    @classmethod
    def from_key(cls, key: bytes) -> tuple[bytes, TensorSlice]:
        """The name and the part that `key` was made of. Raises ValueError for another key."""
        zero, at = coding.get_ordered_number(key, 0)
        if zero != 0:
            raise ValueError("a slice key starts with 0")
        name, at = coding.get_ordered_string(key, at)
        rank, at = coding.get_ordered_number(key, at)
        if not 0 < rank <= MAX_RANK:
            raise ValueError(f"a slice key of rank {rank}")
        extents: list[tuple[int, int] | None] = []
        for _ in range(rank):
            start, at = coding.get_signed(key, at)
            length, at = coding.get_signed(key, at)
            extents.append((start, length) if length >= 0 else None)
        return name, cls(tuple(extents))


def overlap(
    a: Iterable[tuple[int, int]], b: Iterable[tuple[int, int]]
) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """Where two boxes of bounds meet: the index into the first and into the second, or None if they do not."""
    in_a, in_b = [], []
    for (a0, a1), (b0, b1) in zip(a, b, strict=True):
        start, end = max(a0, b0), min(a1, b1)
        if start >= end:
            return None
        in_a.append(slice(start - a0, end - a0))
        in_b.append(slice(start - b0, end - b0))
    return tuple(in_a), tuple(in_b)


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice, tuple[int, ...]]:
    """Reads "10 4 0,5:-": the whole tensor's shape, the part, and the part's shape. Raises InvalidArgumentError."""
    pieces = text.split(" ")
    if len(pieces) < 2:
        raise _invalid(f"Need least two elements in shape_and_slice specification: {text}")
    part = TensorSlice.parse(pieces[-1])
    try:
        shape = tuple(_number(piece) for piece in pieces[:-1])
    except ValueError:
        raise _invalid(f"Non numerical dimension in shape_and_slice: {text}") from None
    if len(shape) > MAX_RANK or any(d < 0 for d in shape):
        raise _invalid(f"Bad dimensions in shape_and_slice: {text}")
    return shape, part, part.shape_in(shape)


def _number(text: str) -> int:
    value = int(text)
    if not -_MAX_SIZE - 1 <= value <= _MAX_SIZE:
        raise ValueError(text)
    return value


def _checked(start: int, length: int, where: str) -> tuple[int, int]:
    if start < 0 or length <= 0:
        raise _invalid(
            f"Expected non-negative start and positive length but got start = {start}, length = {length}: {where}"
        )
    if start + length > _MAX_SIZE:
        raise _invalid(f"Extent end exceeds the maximum possible size: {where}")
    return start, length


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(str(d) for d in shape) + "]"


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)
