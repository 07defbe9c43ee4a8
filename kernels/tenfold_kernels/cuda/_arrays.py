"""DeviceArray: a tensor in a GPU's memory. Elements are contiguous, in C order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tenfold_kernels.cuda._runtime import Buffer, Runtime


class DeviceArray:
    """`shape` and `dtype` as of a NumPy array, and where the elements are. Immutable, but for who owns it alone.

    Several may share a buffer. What the host reads of it, it copies with `to_host`.
    """

    __slots__ = ("__weakref__", "buffer", "dtype", "offset", "runtime", "shape")

    def __init__(
        self, runtime: Runtime, buffer: Buffer, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0
    ) -> None:
        """`offset` is in bytes, a multiple of the element's size."""
        self.runtime, self.buffer, self.shape, self.dtype, self.offset = runtime, buffer, shape, dtype, offset

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype.name}{list(self.shape)} on {self.runtime.name}>"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def reshape(self, shape: Sequence[int]) -> DeviceArray:
        """The same elements under another shape, of which one size may be -1. Raises ValueError for one of another
        number of elements.
        """
        sizes = tuple(shape)
        if -1 in sizes:
            known = -math.prod(sizes)
            if known <= 0 or self.size % known:
                raise ValueError(f"cannot reshape array of size {self.size} into shape {sizes}")
            sizes = tuple(self.size // known if size == -1 else size for size in sizes)
        elif math.prod(sizes) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {sizes}")
        return DeviceArray(self.runtime, self.buffer, sizes, self.dtype, self.offset)

    def rows(self, begin: int, end: int) -> DeviceArray:
        """A view of those rows of the first dimension."""
        row = math.prod(self.shape[1:]) * self.dtype.itemsize
        shape = (end - begin, *self.shape[1:])
        return DeviceArray(self.runtime, self.buffer, shape, self.dtype, self.offset + begin * row)

    def view(self, dtype: np.dtype[Any]) -> DeviceArray:
        """The same bytes as elements of another type of the same size."""
        assert dtype.itemsize == self.dtype.itemsize, (self.dtype, dtype)
        return DeviceArray(self.runtime, self.buffer, self.shape, dtype, self.offset)

    def frozen(self) -> DeviceArray:
        """The same elements where they are now, whatever the buffer becomes."""
        return DeviceArray(self.runtime, self.buffer.alias(), self.shape, self.dtype, self.offset)

    def to_host(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The elements in the host's memory. Blocks until all that was launched before has run."""
        return self.runtime.to_host(self)
