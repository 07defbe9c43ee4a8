"""The element types of tensors: one table, a row each.

Names and numbers are those of TensorFlow's types.proto. Everything else in Tenfold asks this table:
the tensor codec for the protobuf field, the kernels for the NumPy type, the op definitions for names.
bfloat16, the floats of 8 bits and less and the small integers are NumPy types of the library ml_dtypes.
A type and its reference twin (`float32` and `float32_ref`, number + 100) are two `DType` objects.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

_REF_OFFSET = 100


class _Row(NamedTuple):
    """One type: TensorFlow's number, name, name in op definitions, NumPy type, proto field."""

    enum: int
    name: str
    op_name: str
    np_type: Any
    field: str
    kind: str  # f floating, i signed, u unsigned, c complex, b bool, q quantised, s string, o opaque


def _carried(name: str, bits: Any) -> np.dtype[Any]:
    """A quantised type as TensorFlow's client has it, of one field: NumPy moves such elements and computes nothing."""
    return np.dtype([(name, bits)])


_ROWS = (
    _Row(1, "float32", "float", np.float32, "float_val", "f"),
    _Row(2, "float64", "double", np.float64, "double_val", "f"),
    _Row(3, "int32", "int32", np.int32, "int_val", "i"),
    _Row(4, "uint8", "uint8", np.uint8, "int_val", "u"),
    _Row(5, "int16", "int16", np.int16, "int_val", "i"),
    _Row(6, "int8", "int8", np.int8, "int_val", "i"),
    _Row(7, "string", "string", np.object_, "string_val", "s"),
    _Row(8, "complex64", "complex64", np.complex64, "scomplex_val", "c"),
    _Row(9, "int64", "int64", np.int64, "int64_val", "i"),
    _Row(10, "bool", "bool", np.bool_, "bool_val", "b"),
    _Row(11, "qint8", "qint8", _carried("qint8", np.int8), "int_val", "q"),
    _Row(12, "quint8", "quint8", _carried("quint8", np.uint8), "int_val", "q"),
    _Row(13, "qint32", "qint32", _carried("qint32", np.int32), "int_val", "q"),
    _Row(14, "bfloat16", "bfloat16", ml_dtypes.bfloat16, "half_val", "f"),
    _Row(15, "qint16", "qint16", _carried("qint16", np.int16), "int_val", "q"),
    _Row(16, "quint16", "quint16", _carried("quint16", np.uint16), "int_val", "q"),
    _Row(17, "uint16", "uint16", np.uint16, "int_val", "u"),
    _Row(18, "complex128", "complex128", np.complex128, "dcomplex_val", "c"),
    _Row(19, "float16", "half", np.float16, "half_val", "f"),
    _Row(20, "resource", "resource", np.object_, "resource_handle_val", "o"),
    _Row(21, "variant", "variant", np.object_, "variant_val", "o"),
    _Row(22, "uint32", "uint32", np.uint32, "uint32_val", "u"),
    _Row(23, "uint64", "uint64", np.uint64, "uint64_val", "u"),
    _Row(24, "float8_e5m2", "float8_e5m2", ml_dtypes.float8_e5m2, "float8_val", "f"),
    _Row(25, "float8_e4m3fn", "float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float8_val", "f"),
    _Row(26, "float8_e4m3fnuz", "float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "float8_val", "f"),
    _Row(27, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz, "float8_val", "f"),
    _Row(28, "float8_e5m2fnuz", "float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "float8_val", "f"),
    _Row(29, "int4", "int4", ml_dtypes.int4, "int_val", "i"),
    _Row(30, "uint4", "uint4", ml_dtypes.uint4, "int_val", "u"),
    _Row(31, "int2", "int2", ml_dtypes.int2, "int_val", "i"),
    _Row(32, "uint2", "uint2", ml_dtypes.uint2, "int_val", "u"),
    _Row(33, "float4_e2m1fn", "float4_e2m1fn", ml_dtypes.float4_e2m1fn, "float8_val", "f"),
)


class DType:
    """The type of a tensor's elements. Compared by identity of type: `tf.float32 == "float32" == np.float32`."""

    __slots__ = ("_is_ref", "_row", "is_ref_dtype")

    def __init__(self, row: _Row, is_ref: bool) -> None:
        self._row = row
        #: Whether this is a reference type. No property: a first step asks it some ten times of each node.
        self.is_ref_dtype = self._is_ref = is_ref

    @property
    def name(self) -> str:
        """TensorFlow's Python name, `float32` or `float32_ref`."""
        return self._row.name + ("_ref" if self._is_ref else "")

    @property
    def op_name(self) -> str:
        """The name that op definitions and error texts use: `float`, `half`, `int32`."""
        return self._row.op_name + ("_ref" if self._is_ref else "")

    @property
    def as_datatype_enum(self) -> int:
        """The number in types.proto; a reference type's is 100 more than its base type's."""
        return self._row.enum + (_REF_OFFSET if self._is_ref else 0)

    @property
    def proto_field(self) -> str:
        """The repeated field of TensorProto that holds elements of this type."""
        return self._row.field

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type; for a quantised type, the structure of one field that carries it."""
        return self._row.np_type

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy holds the elements and computes with them."""
        return self._row.kind != "o" and not self.is_carried

    @property
    def is_carried(self) -> bool:
        """NumPy holds the elements' bits but cannot compute with them: the quantised types."""
        return isinstance(self._row.np_type, np.dtype)

    @property
    def base_dtype(self) -> DType:
        """The non-reference type."""
        return _BY_ENUM[self._row.enum] if self._is_ref else self

    @property
    def real_dtype(self) -> DType:
        """The type of a complex type's real part, else the base type itself."""
        return {"complex64": float32, "complex128": float64}.get(self._row.name, self.base_dtype)

    @property
    def as_ref(self) -> DType:
        """The reference type."""
        return self if self._is_ref else _BY_ENUM[self._row.enum + _REF_OFFSET]

    # TensorFlow 1.x's spelling of the two above, which programs written for it use.
    _as_ref = as_ref

    @property
    def _is_ref_dtype(self) -> bool:
        return self._is_ref

    @property
    def is_floating(self) -> bool:
        return self._row.kind == "f"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers; quantised types do not count."""
        return self._row.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self._row.kind == "u"

    @property
    def is_complex(self) -> bool:
        return self._row.kind == "c"

    @property
    def is_bool(self) -> bool:
        return self._row.kind == "b"

    @property
    def is_quantized(self) -> bool:
        return self._row.kind == "q"

    @property
    def size(self) -> int:
        """Bytes of one element; 1 for strings and opaque types, as in TensorFlow."""
        if self._row.kind in "so":
            return 1
        return int(np.dtype(self._row.np_type).itemsize)

    @property
    def min(self) -> Any:
        """The lowest finite value. Raises TypeError for a type without one."""
        return self._limit("min")

    @property
    def max(self) -> Any:
        """The highest finite value. Raises TypeError for a type without one."""
        return self._limit("max")

    def _limit(self, which: str) -> Any:
        if self._row.kind in "fiu":
            return _limits(self._row.enum)[which]
        if self._row.kind == "b":
            return which == "max"
        raise TypeError(f"Cannot find {which}imum value of {self!r}.")

    def is_compatible_with(self, other: Any) -> bool:
        """True if a tensor of type `other` may be used where this type is asked for: references decay."""
        other = as_dtype(other)
        return self.as_datatype_enum in (other.as_datatype_enum, other.base_dtype.as_datatype_enum)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        if other is None:
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


@functools.cache
def _limits(enum: int) -> dict[str, Any]:
    """The lowest and the highest finite value of a type of numbers."""
    row = _BY_ENUM[enum]._row
    of = ml_dtypes.finfo if row.kind == "f" else ml_dtypes.iinfo
    limits = of(row.np_type)
    return {"min": limits.min, "max": limits.max}


_BY_ENUM: dict[int, DType] = {}
_BY_NAME: dict[str, DType] = {}
_BY_NUMPY: dict[Any, DType] = {}

for _row in _ROWS:
    for _is_ref in (False, True):
        _dtype = DType(_row, _is_ref)
        _BY_ENUM[_dtype.as_datatype_enum] = _dtype
        _BY_NAME[_dtype.name] = _BY_NAME[_dtype.op_name] = _dtype
    if _row.kind not in "so":
        _BY_NUMPY[np.dtype(_row.np_type)] = _BY_ENUM[_row.enum]

float16 = half = _BY_NAME["float16"]
float32 = _BY_NAME["float32"]
float64 = double = _BY_NAME["float64"]
bfloat16 = _BY_NAME["bfloat16"]
float8_e5m2 = _BY_NAME["float8_e5m2"]
float8_e4m3fn = _BY_NAME["float8_e4m3fn"]
int4 = _BY_NAME["int4"]
uint4 = _BY_NAME["uint4"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
uint64 = _BY_NAME["uint64"]
complex64 = _BY_NAME["complex64"]
complex128 = _BY_NAME["complex128"]
bool_ = _BY_NAME["bool"]
string = _BY_NAME["string"]
resource = _BY_NAME["resource"]
variant = _BY_NAME["variant"]
qint8 = _BY_NAME["qint8"]
quint8 = _BY_NAME["quint8"]
qint16 = _BY_NAME["qint16"]
quint16 = _BY_NAME["quint16"]
qint32 = _BY_NAME["qint32"]
#: Every quantized type, and its reference.
QUANTIZED_DTYPES = frozenset(dtype for dtype in _BY_ENUM.values() if dtype.is_quantized)

#: Every non-reference type, in the order of the numbers.
ALL_TYPES: tuple[DType, ...] = tuple(_BY_ENUM[row.enum] for row in _ROWS)

#: Number → NumPy type, of the types whose elements lie side by side in memory: those bytes are a tensor's content.
FIXED_SIZE: dict[int, np.dtype[Any]] = {dtype.as_datatype_enum: kind for kind, dtype in _BY_NUMPY.items()}

_PYTHON_TYPES: dict[Any, DType] = {
    float: float32,
    int: int32,
    bool: bool_,
    complex: complex128,
    str: string,
    bytes: string,
    object: string,
}


def _numpy_names() -> str:
    return ", ".join(row.name for row in _ROWS if row.kind != "o")


def as_dtype(value: Any) -> DType:
    """Turns a DType, its number, its name, a NumPy type or a Python type into the DType.

    The number may be any that equals it, as 1.0 does, which reaches a `dtype` where a value was meant.
    Raises TypeError naming the value where it stands for no type.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, int | float | np.integer) and not isinstance(value, bool):
        if value in _BY_ENUM:  # 1.0, too: TensorFlow looks numbers up in a dict
            return _BY_ENUM[int(value)]
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType: types.proto has no such number.")
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    if value is None:  # which NumPy would take for float64
        raise TypeError("Cannot convert value None to a TensorFlow DType.")
    try:
        np_dtype = np.dtype(value)
    except (TypeError, ValueError):
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.") from None
    if np_dtype.kind in "SUO":
        return string
    if np_dtype in _BY_NUMPY:
        return _BY_NUMPY[np_dtype]
    raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType; NumPy types known: {_numpy_names()}.")
