"""Attribute values: Python on one side, AttrValue messages on the other, and an op's defaults between them.

Python forms: bytes, int, float, bool, DType, TensorShape, numpy array (`tensor`), NameAttrList message (`func`), and
lists of them. Used by the client when it makes a node and by the runtime when it reads one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.dtypes import DType
from tenfold_core.node_names import at_node
from tenfold_core.tensor_shape import TensorShape, as_shape
from tenfold_protos import attr_value_pb2, tensor_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_core.op_def import AttrDef, OpDef
    from tenfold_protos import node_def_pb2

AttrValue = attr_value_pb2.AttrValue
NameAttrList = attr_value_pb2.NameAttrList

_FIELDS = {
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
    if kind.startswith("list("):
        inner = kind[5:-1]
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise TypeError(f"expected a list of {inner}, got {value!r}")
        field = getattr(result.list, _FIELDS[inner])
        field.extend(_encode(item, inner) for item in value)
        if not field:
            result.list.SetInParent()
        return result
    encoded = _encode(value, kind)
    name = _FIELDS[kind]
    if kind in ("shape", "tensor", "func"):
        getattr(result, name).CopyFrom(encoded)
    else:
        setattr(result, name, encoded)
    return result


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


def resolve_attrs(op_def: OpDef, node: node_def_pb2.NodeDef) -> dict[str, Any]:
    """Every attribute of a node in Python form: defaults filled in, types, minima and allowed values checked.

    Attributes that the definition does not know (`_class`, `_output_shapes`, a newer release's) are kept as they are.
    Raises InvalidArgumentError naming node, attribute, what was given and what would have been right.
    """
    result: dict[str, Any] = {}
    for name, proto in node.attr.items():
        try:
            result[name] = from_proto(proto)
        except (TypeError, ValueError) as error:
            raise _wrong(node, name, str(error)) from None
    for attr in op_def.attrs:
        if attr.name not in result:
            if not attr.has_default:
                raise _wrong(node, attr.name, f"is missing; op {op_def.name} needs it, a value of type {attr.type}")
            result[attr.name] = attr.default
            continue
        which = node.attr[attr.name].WhichOneof("value")
        wanted = "list" if attr.type.startswith("list(") else _FIELDS.get(attr.type)
        if which == "placeholder" or (which is None and attr.type.startswith("list(")):
            result[attr.name] = [] if which is None else result[attr.name]
            continue
        if which != wanted:
            raise _wrong(node, attr.name, f"holds a value of kind {which}; op {op_def.name} wants {attr.type}")
        if which == "list" and not _is_list_of(node.attr[attr.name].list, _FIELDS[attr.type[5:-1]]):
            raise _wrong(node, attr.name, f"holds a list of another kind; op {op_def.name} wants {attr.type}")
        problem = check_value(attr, result[attr.name])
        if problem:
            raise _wrong(node, attr.name, problem)
    return result


def _is_list_of(items: AttrValue.ListValue, field: str) -> bool:
    """Whether there is nothing in the list but what that field holds."""
    return all(found.name == field for found, _ in items.ListFields())


def refuse_placeholders(attrs: Mapping[str, Any]) -> None:
    """Raises TypeError for a value that stands for an attribute of a function: only the body of one may have it."""
    for name, value in attrs.items():
        # The one str there is: string attributes are bytes.
        if isinstance(value, str):
            raise TypeError(f"attr '{name}' is the placeholder '{value}', which only the body of a function may have")


def check_value(attr: AttrDef, value: Any) -> str | None:
    """What is wrong with a value in the light of the attribute's minimum and allowed values; None if nothing is."""
    if attr.minimum is not None:
        number = len(value) if attr.type.startswith("list(") else value
        if number < attr.minimum:
            what = "length" if attr.type.startswith("list(") else "value"
            return f"{what} {number} is below the minimum of {attr.minimum}"
    if attr.allowed:
        for item in value if attr.type.startswith("list(") else (value,):
            if item not in attr.allowed:
                return f"value {_show(item)} is not one of {', '.join(_show(a) for a in attr.allowed)}"
    return None


def _show(value: Any) -> str:
    if isinstance(value, DType):
        return value.op_name
    return repr(value.decode(errors="replace")) if isinstance(value, bytes) else str(value)


def _wrong(node: node_def_pb2.NodeDef, attr: str, problem: str) -> errors.OpError:
    return at_node(node, f"NodeDef '{node.name}' (op {node.op}): attr '{attr}' {problem}.")
