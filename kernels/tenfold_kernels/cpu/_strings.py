"""What the kernels of the string family share: element by element over arrays of bytes, attrs, UTF-8 as bytes.

Strings are object arrays of bytes. Used by string*.py and client/ops/parsing.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow, tensor_limit
from tenfold_kernels.arrays import Array, invalid, shape_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.registry import KernelNode


class Room:
    """How many bytes the strings of one tensor may still take: as many as a tensor may, all together.

    For ops whose output an input or an attribute can make longer than what came in.
    """

    def __init__(self, op: str) -> None:
        self._op, self._limit, self._taken = op, tensor_limit(), 0

    def take(self, size: int) -> None:
        """Before so many bytes more are made. Raises ResourceExhaustedError."""
        self._taken += size
        if self._taken > self._limit:
            raise errors.resource_exhausted(
                f"OOM: {self._op} would give strings of {self._taken} bytes or more, and {self._limit} is the limit "
                "for one tensor here."
            )


def elementwise(x: Array, function: Callable[[Any], Any], dtype: Any = object) -> Array:
    """A fresh array of `function` of each element. Raises ResourceExhaustedError where they are too many."""
    allow(x.shape, object)
    out = np.empty(x.shape, dtype=dtype)
    flat = out.reshape(-1)
    for i, value in enumerate(x.reshape(-1).tolist()):
        flat[i] = function(value)
    return out


def bytes_attr(node: KernelNode, name: str, default: bytes = b"") -> bytes:
    """A string attr, as the bytes that it is on the wire."""
    value = node.attrs.get(name, default)
    return value if isinstance(value, bytes) else str(value).encode()


def scalar_bytes(value: Array | None, what: str) -> bytes:
    """The one string of an input. Raises InvalidArgumentError for anything but a scalar."""
    if value is None or value.ndim:
        raise invalid(f"{what} must be scalar, but received {shape_text(() if value is None else value.shape)}")
    return bytes(value[()])


def printable(value: bytes) -> str:
    """`value` for the text of an error."""
    return value.decode("utf-8", "replace")


def utf8_starts(value: bytes) -> list[int]:
    """Where the characters begin: every byte that does not continue one, as TensorFlow counts, valid or not."""
    return [i for i, byte in enumerate(value) if byte & 0xC0 != 0x80]
