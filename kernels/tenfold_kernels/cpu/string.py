"""Strings, one at a time: join, length, case, part, base64, format. Strings are object arrays of bytes.

Outputs are fresh. Splitting is in string_split.py, numbers in string_number.py. Follows string_join_op.cc,
substr_op.cc, base64_ops.cc, string_format_op.cc.
"""

from __future__ import annotations

import base64
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import Array, invalid, scalar_object, shape_text, text_attr
from tenfold_kernels.cpu._strings import Room, bytes_attr, elementwise, printable, utf8_starts
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable


@kernel("StringJoin")
def build_string_join(node: KernelNode) -> Compute:
    """Joins element by element; a scalar goes with every element of the others."""
    separator = bytes_attr(node, "separator")

    def compute(*inputs: Array) -> Array:
        shape: tuple[int, ...] = ()
        for x in inputs:
            if x.ndim:
                if shape and x.shape != shape:
                    raise invalid(f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(x.shape)}")
                shape = x.shape
        count = math.prod(shape)
        room = Room(node.op)
        room.take(len(separator) * max(len(inputs) - 1, 0) * count)
        for x in inputs:
            # a scalar goes with each element
            room.take(sum(map(len, x.reshape(-1).tolist())) * (1 if x.ndim else count))
        out = np.empty(shape, dtype=object)
        columns = [np.broadcast_to(x, shape).reshape(-1).tolist() for x in inputs]
        flat = out.reshape(-1)
        for i in range(flat.size):
            flat[i] = separator.join(column[i] for column in columns)
        return out

    return compute


@kernel("StringLength")
def build_string_length(node: KernelNode) -> Compute:
    if text_attr(node, "unit", "BYTE") == "UTF8_CHAR":
        return lambda x: elementwise(x, lambda v: len(utf8_starts(v)), np.int32)
    return lambda x: elementwise(x, len, np.int32)


@kernel("StringLower", "StringUpper")
def build_string_case(node: KernelNode) -> Compute:
    """ASCII letters only, unless the encoding is utf-8."""
    lower, encoding = node.op == "StringLower", text_attr(node, "encoding")
    if encoding not in ("", "utf-8"):
        raise invalid("only utf8 or '' (no encoding) is supported")

    def change(value: bytes) -> bytes:
        if encoding:
            text = value.decode("utf-8", "replace")
            return (text.lower() if lower else text.upper()).encode()
        return value.lower() if lower else value.upper()

    return lambda x: elementwise(x, change)


@kernel("StringStrip")
def build_string_strip(node: KernelNode) -> Compute:
    return lambda x: elementwise(x, lambda v: v.strip(b" \t\n\r\f\v"))


@kernel("Substr")
def build_substr(node: KernelNode) -> Compute:
    """pos may be negative, counted from the end; it must lie in the string. Two dimensions at most are broadcast."""
    utf8 = text_attr(node, "unit", "BYTE") == "UTF8_CHAR"

    def one(value: bytes, position: int, length: int, where: str) -> bytes:
        starts = [*utf8_starts(value), len(value)] if utf8 else range(len(value) + 1)
        size = len(starts) - 1
        if not -size <= position <= size:
            text = "string" if utf8 else f"string b'{printable(value)}'"
            raise invalid(f"pos {position} out of range for {text} at index {where}")
        start = position + size if position < 0 else position
        end = size if length < 0 else min(start + length, size)
        return value[starts[start] : starts[end]]

    def compute(x: Array, position: Array, length: Array) -> Array:
        if position.shape != length.shape:
            raise invalid(
                "pos and len should have the same shape, got: "
                f"{shape_text(position.shape)} vs. {shape_text(length.shape)}"
            )
        try:
            shape = np.broadcast_shapes(x.shape, position.shape)
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(position.shape)}") from None
        is_broadcast = position.ndim > 0 and x.shape != position.shape
        if is_broadcast and len(shape) > 2:
            raise errors.unimplemented(f"Substr broadcast not implemented for {len(shape)} dimensions")
        columns = [np.broadcast_to(a, shape).reshape(-1).tolist() for a in (x, position, length)]
        out = np.empty(shape, dtype=object)
        flat = out.reshape(-1)
        pairs = is_broadcast and len(shape) == 2 and not utf8
        room = Room(node.op)
        for i, (value, start, count) in enumerate(zip(*columns, strict=True)):
            if x.size < flat.size:  # several parts of one string
                room.take(len(value) if utf8 or count < 0 else min(len(value), count))
            flat[i] = one(value, start, count, "({}, {})".format(*divmod(i, shape[1])) if pairs else str(i))
        return out

    return compute


@kernel("EncodeBase64")
def build_encode_base64(node: KernelNode) -> Compute:
    """The web-safe alphabet; padding only if asked for."""
    pad = bool(node.attrs["pad"])

    def one(value: bytes) -> bytes:
        text = base64.urlsafe_b64encode(value)
        return text if pad else text.rstrip(b"=")

    return lambda x: elementwise(x, one)


_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}")


@kernel("DecodeBase64")
def build_decode_base64(node: KernelNode) -> Compute:
    """The web-safe alphabet; padding may be there or not."""

    def one(value: bytes) -> bytes:
        if not _BASE64.fullmatch(value):
            raise invalid("Invalid character found in base64.")
        digits = value.rstrip(b"=")
        if len(value) % 4 == 1:
            raise invalid("Base64 string length cannot be 1 modulo 4.")
        if len(digits) < len(value) and len(value) % 4:
            raise invalid("Invalid character found in base64.")  # so TensorFlow calls padding that is too short
        return base64.urlsafe_b64decode(digits + b"=" * (-len(digits) % 4))

    return lambda x: elementwise(x, one)


@kernel("StringFormat")
def build_string_format(node: KernelNode) -> Compute:
    """Fills a template with tensors, each written as tf.print does."""
    template, placeholder = text_attr(node, "template", "%s"), text_attr(node, "placeholder", "%s")
    limit = int(node.attrs["summarize"])
    pieces = template.split(placeholder) if placeholder else [template]

    def compute(*inputs: Array) -> Array:
        if len(pieces) != len(inputs) + 1:
            raise invalid(
                f"num placeholders in template and num inputs must match: {len(pieces) - 1} vs. {len(inputs)}"
            )
        text, room = pieces[0], Room(node.op)
        for piece, x in zip(pieces[1:], inputs, strict=True):
            # two characters for each element at least
            room.take(2 * x.size if limit < 0 else 0)
            written = tensor_text(x, limit)
            room.take(len(written))
            text += written + piece
        return scalar_object(text.encode("utf-8", "surrogateescape"))

    return compute


def tensor_text(value: Array, limit: int) -> str:
    """`value` as tf.print writes it: brackets, strings in quotes, `limit` elements at both ends of each dimension.

    A negative limit writes everything.
    """
    ends = (limit if limit >= 0 else max(value.shape, default=0)) if value.size else 0

    def part(x: Array, depth: int) -> str:
        if x.ndim == 0:
            return _element(x[()])
        last = x.ndim == 1
        spacing = " " if last else "\n" * (x.ndim - 1) + " " * (depth + 1)
        size = x.shape[0]
        text = spacing.join(part(x[i, ...], depth + 1) for i in range(min(ends, size)))
        if size > 2 * ends:
            text += spacing + "..."
        text += "".join(spacing + part(x[i, ...], depth + 1) for i in range(max(ends, size - ends), size))
        return f"[{text}]"

    return part(value, 0)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def _c_escape(value: bytes) -> str:
    # Bytes from 0x80 on stay as they are: they may be UTF-8.
    text = value.decode("utf-8", "surrogateescape")
    return "".join(_ESCAPES.get(c) or (c if " " <= c <= "~" or c >= "\x80" else f"\\{ord(c):03o}") for c in text)


_FORMATS: dict[str, Callable[[object], str]] = {
    "b": lambda v: str(int(v)),  # type: ignore[call-overload]
    "f": lambda v: _real(v),
    "c": lambda v: f"({_real(v.real)},{_real(v.imag)})",  # type: ignore[attr-defined]
}


def _real(value: Any) -> str:
    """The shorter of two widths that gives the same number back."""
    is_double = isinstance(value, np.float64)
    kind = np.float64 if is_double else np.float32
    number = float(value)
    short = f"{number:.15g}" if is_double else f"{number:.6g}"
    if float(kind(short)) == number or number != number:
        return short
    return f"{number:.17g}" if is_double else f"{number:.9g}"


def _element(value: object) -> str:
    if isinstance(value, bytes):
        return f'"{_c_escape(value)}"'
    kind = np.asarray(value).dtype.kind
    return _FORMATS.get(kind, str)(value)
