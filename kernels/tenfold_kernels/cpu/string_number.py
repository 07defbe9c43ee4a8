"""Numbers to strings and back. Outputs are fresh.

Follows as_string_op.cc (printf's formats) and string_to_number_op.cc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, output_type, text_attr
from tenfold_kernels.cpu._strings import elementwise, printable
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTEGER = re.compile(rb"[ \t\n\v\f\r]*[+-]?[0-9]+[ \t\n\v\f\r]*")
# a row of digits can be read in one way only, or long ones would take time with the square of their length
_FLOAT = re.compile(
    rb"[ \t\n\v\f\r]*[+-]?(inf(inity)?|nan|([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?)[ \t\n\v\f\r]*", re.IGNORECASE
)
_HEXADECIMAL = re.compile(rb"[ \t\n\v\f\r]*[+-]?0[xX][0-9a-fA-F]{1,32}[ \t\n\v\f\r]*")


def parser(dtype: Any) -> Callable[[bytes], Any]:
    """The function of a string that gives the number of the NumPy type `dtype`, or raises ValueError.

    White space around it is skipped; a float out of range is infinite, an integer out of range an error.
    """
    kind = np.dtype(dtype)
    if kind.kind == "f":

        def to_float(value: bytes) -> Any:
            if _FLOAT.fullmatch(value):
                return kind.type(value)
            if _HEXADECIMAL.fullmatch(value):
                return kind.type(float(int(value, 16)))
            raise ValueError(value)

        return to_float
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)

    def to_int(value: bytes) -> Any:
        if len(value) < 19 and value.isdigit() and (number := int(value)) <= most:
            return kind.type(number)
        # A longer one is out of range, and would take Python long to read.
        if not _INTEGER.fullmatch(value) or len(value.strip(b" \t\n\v\f\r+-").lstrip(b"0")) > 20:
            raise ValueError(value)
        number = int(value)
        if not least <= number <= most or (not least and b"-" in value):
            raise ValueError(value)
        return kind.type(number)

    return to_int


#: Characters of a number: what writes it keeps the interpreter, and so the whole task, until it is done.
_LONGEST = 1 << 20
#: Numbers that Python's own functions read alike, separated by commas: they fit in an int64, and in a float32.
_PLAIN_INTEGERS = re.compile(rb"[+-]?[0-9]{1,18}(?:,[+-]?[0-9]{1,18})*")
_PLAIN_FLOATS = re.compile(rb"[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?(?:,[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?)*")


def numbers_of(values: Sequence[bytes], dtype: Any) -> Array:
    """What `parser` gives for each, as an array; faster for many. Raises ValueError."""
    kind, joined = np.dtype(dtype), b",".join(values)
    if kind.kind == "f" and kind.itemsize >= 4 and _PLAIN_FLOATS.fullmatch(joined):
        return np.array([float(value) for value in values], np.float64).astype(kind)
    if kind.kind == "i" and _PLAIN_INTEGERS.fullmatch(joined):
        whole = np.array([int(value) for value in values], np.int64)
        limits = np.iinfo(kind)
        if limits.min <= whole.min() and whole.max() <= limits.max:
            return whole.astype(kind)
    parse = parser(kind)
    return np.array([parse(value) for value in values], kind)


@kernel("StringToNumber")
def build_string_to_number(node: KernelNode) -> Compute:
    dtype = output_type(node)
    parse = parser(dtype)

    def one(value: bytes) -> Any:
        try:
            return parse(value)
        except ValueError:
            raise invalid(f"StringToNumberOp could not correctly convert string: {printable(value)}") from None

    return lambda x: elementwise(x, one, dtype)


@kernel("AsString")
def build_as_string(node: KernelNode) -> Compute:
    """printf's formats: %d, %f, %e, %g, with width, precision and fill."""
    asked = {name: int(node.attrs[name]) for name in ("width", "precision")}
    for name, length in asked.items():
        if length > _LONGEST:
            raise invalid(f"AsString's {name} is {length}; it can be {_LONGEST} at most.")
    write = _as_string(node)
    longest = sum(max(0, length) for length in asked.values()) * (2 if node.input_types[0].is_complex else 1)

    def compute(x: Array) -> Any:
        allow((x.size, longest), np.uint8)
        return write(x)

    return compute


def _as_string(node: KernelNode) -> Compute:
    precision, width = int(node.attrs["precision"]), int(node.attrs["width"])
    scientific, shortest = bool(node.attrs["scientific"]), bool(node.attrs["shortest"])
    fill, kind = text_attr(node, "fill"), node.input_types[0].base_dtype
    is_real = kind.is_floating or kind.is_complex
    if not is_real and kind.name != "string":
        if scientific or shortest:
            raise invalid(f"scientific and shortest format not supported for datatype {kind.op_name}")
        if precision >= 0:
            raise invalid(f"precision not supported for datatype {kind.op_name}")
    if len(fill) > 1:
        raise invalid("Fill string must be one or fewer characters")
    if scientific and shortest:
        raise invalid("Cannot select both scientific and shortest notation")
    if fill and fill not in " +-0#":
        raise invalid(f'Fill argument not supported: "{fill}"')
    if kind.is_bool:
        return lambda x: elementwise(x, lambda v: b"true" if v else b"false")
    head = f"%{fill}{width if width >= 0 else ''}{f'.{precision}' if precision >= 0 else ''}"
    if kind.name == "string":
        if width <= 0:
            return lambda x: x.copy()
        template = head.replace("+", "").encode() + b"s"
        return lambda x: elementwise(x, lambda v: template % v)
    if not is_real:
        text = head + "d"
        if kind.is_unsigned:
            text = text.replace("+", "").replace(" ", "")
        return lambda x: elementwise(x, lambda v: (text % v).encode())
    number = head + ("g" if shortest else "e" if scientific else "f")
    if kind.is_complex:
        return lambda x: elementwise(x, lambda v: f"({_real(number, v.real)},{_real(number, v.imag)})".encode())
    return lambda x: elementwise(x, lambda v: _real(number, v).encode())


def _real(template: str, value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        template = template.replace("%0", "%", 1)  # C does not fill these up with zeros
    return template % value
