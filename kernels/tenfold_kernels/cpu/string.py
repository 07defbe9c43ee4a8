"""Strings: object arrays of bytes. Outputs are fresh.

Regular expressions run on Python's `re`; RE2's syntax, which TensorFlow has, agrees with it for what programs use.
Follows string_join_op.cc, as_string_op.cc, substr_op.cc, string_split_op.cc, reduce_join_op.cc.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._common import Array, as_array, invalid, output_type, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

no_kernel(
    "DecodeCompressed",
    "DecodeJSONExample",
    "StringNGrams",
    "UnicodeScript",
    "StringToHashBucketStrong",
    device="CPU",
    why="no program of the op census uses it",
)
no_kernel(
    "StringToHashBucket",
    "StringToHashBucketFast",
    device="CPU",
    why="its hash functions (TensorFlow's Hash64 and FarmHash) are not written yet",
)


def _map(x: Array, function: Callable[[Any], Any], dtype: Any = object) -> Array:
    out = np.empty(x.shape, dtype=dtype)
    flat = out.reshape(-1)
    for i, value in enumerate(x.reshape(-1).tolist()):
        flat[i] = function(value)
    return out


def _bytes_attr(node: KernelNode, name: str, default: bytes = b"") -> bytes:
    value = node.attrs.get(name, default)
    return value if isinstance(value, bytes) else str(value).encode()


@kernel("StringJoin")
def build_string_join(node: KernelNode) -> Compute:
    """Joins element by element; a scalar goes with every element of the others."""
    separator = _bytes_attr(node, "separator")

    def compute(*inputs: Array) -> Array:
        shape: tuple[int, ...] = ()
        for x in inputs:
            if x.ndim:
                if shape and x.shape != shape:
                    raise invalid(f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(x.shape)}")
                shape = x.shape
        out = np.empty(shape, dtype=object)
        columns = [np.broadcast_to(x, shape).reshape(-1).tolist() for x in inputs]
        flat = out.reshape(-1)
        for i in range(flat.size):
            flat[i] = separator.join(column[i] for column in columns)
        return out

    return compute


@kernel("RegexFullMatch", "StaticRegexFullMatch")
def build_regex_full_match(node: KernelNode) -> Compute:
    fixed = _compile(_bytes_attr(node, "pattern")) if node.op == "StaticRegexFullMatch" else None

    def compute(x: Array, pattern: Array | None = None) -> Array:
        regex = fixed or _compile(_scalar_bytes(pattern, "Pattern"))
        return _map(x, lambda v: regex.fullmatch(v) is not None, np.bool_)

    return compute


@kernel("RegexReplace", "StaticRegexReplace")
def build_regex_replace(node: KernelNode) -> Compute:
    """The rewrite may name groups as \\1, and \\0 is the whole match."""
    count = 0 if node.attrs.get("replace_global", True) else 1
    static = node.op == "StaticRegexReplace"
    fixed = (_compile(_bytes_attr(node, "pattern")), _bytes_attr(node, "rewrite")) if static else None

    def compute(x: Array, pattern: Array | None = None, rewrite: Array | None = None) -> Array:
        regex, template = fixed or (_compile(_scalar_bytes(pattern, "Pattern")), _scalar_bytes(rewrite, "Rewrite"))
        replacement = re.sub(rb"\\(\d)", rb"\\g<\1>", template)
        return _map(x, lambda v: regex.sub(replacement, v, count=count))

    return compute


def _compile(pattern: bytes) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise invalid(f"Invalid pattern: {pattern.decode('utf-8', 'replace')}, error: {error}") from None


def _scalar_bytes(value: Array | None, what: str) -> bytes:
    if value is None or value.ndim:
        raise invalid(f"{what} must be scalar, but received {shape_text(() if value is None else value.shape)}")
    return bytes(value[()])


@kernel("StringLength")
def build_string_length(node: KernelNode) -> Compute:
    if text_attr(node, "unit", "BYTE") == "UTF8_CHAR":
        return lambda x: _map(x, lambda v: len(v.decode("utf-8", "replace")), np.int32)
    return lambda x: _map(x, len, np.int32)


@kernel("StringLower", "StringUpper")
def build_string_case(node: KernelNode) -> Compute:
    """ASCII letters only, unless the encoding is utf-8."""
    lower, unicode = node.op == "StringLower", text_attr(node, "encoding") == "utf-8"

    def change(value: bytes) -> bytes:
        if unicode:
            text = value.decode("utf-8", "replace")
            return (text.lower() if lower else text.upper()).encode()
        return value.lower() if lower else value.upper()

    return lambda x: _map(x, change)


@kernel("StringStrip")
def build_string_strip(node: KernelNode) -> Compute:
    return lambda x: _map(x, lambda v: v.strip(b" \t\n\r\f\v"))


@kernel("Substr")
def build_substr(node: KernelNode) -> Compute:
    """pos may be negative, counted from the end; it must lie within the string."""
    utf8 = text_attr(node, "unit", "BYTE") == "UTF8_CHAR"

    def one(value: bytes, position: int, length: int, index: int) -> bytes:
        text = value.decode("utf-8", "replace") if utf8 else value
        if not -len(text) <= position <= len(text):
            raise invalid(
                f"pos {position} out of range for string b'{value.decode('utf-8', 'replace')}' at index {index}"
            )
        start = position + len(text) if position < 0 else position
        part = text[start : start + length]
        return part.encode() if isinstance(part, str) else part

    def compute(x: Array, position: Array, length: Array) -> Array:
        try:
            shape = np.broadcast_shapes(x.shape, position.shape, length.shape)
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(position.shape)}") from None
        columns = [np.broadcast_to(a, shape).reshape(-1).tolist() for a in (x, position, length)]
        out = np.empty(shape, dtype=object)
        flat = out.reshape(-1)
        for i, (value, start, count) in enumerate(zip(*columns, strict=True)):
            flat[i] = one(value, start, count, i)
        return out

    return compute


@kernel("StringToNumber")
def build_string_to_number(node: KernelNode) -> Compute:
    dtype = output_type(node)
    convert: Callable[[bytes], Any] = float if np.dtype(dtype).kind == "f" else int

    def one(value: bytes) -> Any:
        try:
            return dtype(convert(value))
        except (ValueError, OverflowError):
            text = value.decode("utf-8", "replace")
            raise invalid(f"StringToNumberOp could not correctly convert string: {text}") from None

    return lambda x: _map(x, one, dtype)


@kernel("AsString")
def build_as_string(node: KernelNode) -> Compute:
    """printf's formats: %d, %f, %e, %g, with width, precision and fill."""
    precision, width = int(node.attrs.get("precision", -1)), int(node.attrs.get("width", -1))
    fill = text_attr(node, "fill")
    kind = input_kind = node.input_types[0]
    point = "" if precision < 0 else f".{precision}"
    size = "" if width < 0 else str(width)
    if kind.is_bool:
        return lambda x: _map(x, lambda v: b"true" if v else b"false")
    if input_kind.name == "string":
        return lambda x: _map(x, lambda v: v.rjust(max(width, 0)) if fill != "-" else v.ljust(max(width, 0)))
    letter = (
        "d" if kind.is_integer else "e" if node.attrs.get("scientific") else "g" if node.attrs.get("shortest") else "f"
    )
    template = f"%{fill}{size}{'' if kind.is_integer else point}{letter}"
    if kind.is_complex:
        real = (
            f"%{fill}{size}{point}{'e' if node.attrs.get('scientific') else 'g' if node.attrs.get('shortest') else 'f'}"
        )
        return lambda x: _map(x, lambda v: f"({real % v.real},{real % v.imag})".encode())
    return lambda x: _map(x, lambda v: (template % v).encode())


@kernel("ReduceJoin")
def build_reduce_join(node: KernelNode) -> Compute:
    """Joins along the given axes, one after the other in their order; no axes at all joins nothing."""
    separator, keep = _bytes_attr(node, "separator"), bool(node.attrs.get("keep_dims", False))

    def compute(x: Array, indices: Array) -> Array:
        axes = [int(d) for d in indices.reshape(-1).tolist()]
        for d in axes:
            if not -x.ndim <= d < x.ndim:
                raise invalid(f"Invalid reduction dimension {d} for input with {x.ndim} dimension(s)")
        axes = [d % x.ndim for d in axes]
        if len(set(axes)) != len(axes):
            raise invalid("Duplicate reduction dimension")
        rest = [d for d in range(x.ndim) if d not in axes]
        moved = x.transpose(rest + axes[::-1])
        lead = [x.shape[d] for d in rest]
        rows = moved.reshape(int(np.prod(lead)), -1) if x.size else np.empty((int(np.prod(lead)), 0), dtype=object)
        out = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows.tolist()):
            out[i] = separator.join(row)
        shape = [1 if d in axes else x.shape[d] for d in range(x.ndim)] if keep else lead
        return as_array(out.reshape(shape))

    return compute


@kernel("StringSplit")
def build_string_split(node: KernelNode) -> Compute:
    """Each byte of the delimiter splits; an empty delimiter splits into single bytes. Gives a sparse matrix."""
    skip_empty = bool(node.attrs.get("skip_empty", True))

    def split(value: bytes, delimiter: bytes) -> list[bytes]:
        if not delimiter:
            return [value[i : i + 1] for i in range(len(value))]
        parts = re.split(b"[" + re.escape(delimiter) + b"]", value)
        return [p for p in parts if p] if skip_empty else parts

    return lambda x, delimiter: _sparse(x, lambda v: split(v, _scalar_bytes(delimiter, "delimiter")))


@kernel("StringSplitV2")
def build_string_split_v2(node: KernelNode) -> Compute:
    """As Python's str.split: the whole separator, or runs of white space where it is empty."""
    most = int(node.attrs.get("maxsplit", -1))
    return lambda x, separator: _sparse(x, lambda v: v.split(_scalar_bytes(separator, "sep") or None, most))


def _sparse(x: Array, split: Callable[[bytes], list[bytes]]) -> tuple[Array, Array, Array]:
    if x.ndim != 1:
        raise invalid(f"input must be a vector, got shape: {shape_text(x.shape)}")
    rows = [split(v) for v in x.tolist()]
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.empty(len(indices), dtype=object)
    values[:] = [part for row in rows for part in row]
    shape = np.array([len(rows), max((len(row) for row in rows), default=0)], dtype=np.int64)
    return np.array(indices, dtype=np.int64).reshape(-1, 2), values, shape


@kernel("EncodeBase64")
def build_encode_base64(node: KernelNode) -> Compute:
    """The web-safe alphabet; padding only if asked for."""
    pad = bool(node.attrs.get("pad", False))

    def one(value: bytes) -> bytes:
        text = base64.urlsafe_b64encode(value)
        return text if pad else text.rstrip(b"=")

    return lambda x: _map(x, one)


@kernel("DecodeBase64")
def build_decode_base64(node: KernelNode) -> Compute:
    def one(value: bytes) -> bytes:
        try:
            return base64.b64decode(value + b"=" * (-len(value) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise invalid("Invalid character found in base64.") from None

    return lambda x: _map(x, one)


@kernel("StringFormat")
def build_string_format(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu.control_flow import bracketed, summarize

    template, placeholder = text_attr(node, "template", "%s"), text_attr(node, "placeholder", "%s")
    limit = int(node.attrs.get("summarize", 3))

    def compute(*inputs: Array) -> Array:
        pieces = template.split(placeholder)
        if len(pieces) != len(inputs) + 1:
            raise invalid(
                f"num placeholders in template and num inputs must match: {len(pieces) - 1} vs. {len(inputs)}"
            )
        text = pieces[0]
        for piece, x in zip(pieces[1:], inputs, strict=True):
            text += (bracketed(x, limit) if x.ndim else summarize(x, limit)) + piece
        out = np.empty((), dtype=object)
        out[()] = text.encode()
        return out

    return compute
