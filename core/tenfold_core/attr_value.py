"""Attribute values: Python on one side, AttrValue messages on the other, and an op's defaults between them.

Python forms: bytes, int, float, bool, DType, TensorShape, numpy array (`tensor`), NameAttrList message (`func`), and
lists of them. Used by the client when it makes a node and by the runtime when it reads one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape
from tenfold_protos import attr_value_pb2, tensor_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping


AttrValue = attr_value_pb2.AttrValue
NameAttrList = attr_value_pb2.NameAttrList

#: Kind of an attribute → the field of an AttrValue that holds it.
FIELDS = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}


def to_proto(value: Any, kind: str) -> AttrValue:
    """The AttrValue of a Python value. `kind` is the attribute's type (`int`, `list(shape)`, …).

    Raises TypeError naming the value and the type that is wanted.
    """
    result = AttrValue()
    write(result, value, kind)
    return result


def write(into: AttrValue, value: Any, kind: str) -> None:
    """As `to_proto`, into an AttrValue that is empty."""
    if kind.startswith("list("):
        inner = kind[5:-1]
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise TypeError(f"expected a list of {inner}, got {value!r}")
        field = getattr(into.list, FIELDS[inner])
        field.extend(_encode(item, inner) for item in value)
        if not field:
            into.list.SetInParent()
        return
    encoded = _encode(value, kind)
    name = FIELDS[kind]
    if kind in ("shape", "tensor", "func"):
        getattr(into, name).CopyFrom(encoded)
    else:
        setattr(into, name, encoded)


def _encode(value: Any, kind: str) -> Any:
    match kind:
        case "string":
            if isinstance(value, str):
                return value.encode()
            if isinstance(value, bytes):
                return value
        case "int":
            if not isinstance(value, bool) and hasattr(value, "__index__"):
                return int(value)
            if isinstance(value, float) and value.is_integer():
                return int(value)
        case "float":
            if isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool):
                return float(value)
        case "bool":
            if isinstance(value, bool | np.bool_):
                return bool(value)
            if isinstance(value, int) and value in (0, 1):
                return bool(value)
        case "type":
            return dtypes.as_dtype(value).as_datatype_enum
        case "shape":
            return as_shape(value).as_proto()
        case "tensor":
            if isinstance(value, tensor_pb2.TensorProto):
                return value
            from tenfold_core import tensor_util

            return tensor_util.make_tensor_proto(value)
        case "func":
            if isinstance(value, NameAttrList):
                return value
            if isinstance(value, str):
                return NameAttrList(name=value)
    raise TypeError(f"expected {kind}, got {value!r} of type {type(value).__name__}")


def from_proto(proto: AttrValue) -> Any:
    """The Python form of an AttrValue; None where nothing is set.

    A `tensor` stays a TensorProto: a caller that needs the elements decodes them once (`tensor_util.make_ndarray`).
    Raises TypeError for a type number that types.proto does not have, ValueError for a shape with a size below -1.
    """
    which = proto.WhichOneof("value")
    match which:
        case None:
            return None
        case "list":
            for name in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
                items = getattr(proto.list, name)
                if items:
                    return [_decode(item, name) for item in items]
            return []
        case _:
            return _decode(getattr(proto, which), which)


def _decode(value: Any, field: str) -> Any:
    if field == "type":
        return dtypes.as_dtype(int(value))
    if field == "shape":
        return TensorShape(value)
    return value


def refuse_placeholders(attrs: Mapping[str, Any]) -> None:
    """Raises TypeError for a value that stands for an attribute of a function: only the body of one may have it."""
    for name, value in attrs.items():
        # The one str there is: string attributes are bytes.
        if isinstance(value, str):
            raise TypeError(f"attr '{name}' is the placeholder '{value}', which only the body of a function may have")
