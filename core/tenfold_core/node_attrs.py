"""The attributes of a node, checked against its op's definition, defaults filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.attr_value import FIELDS, from_proto
from tenfold_core.dtypes import DType
from tenfold_core.node_names import at_node

if TYPE_CHECKING:
    from tenfold_core import errors
    from tenfold_core.op_def import AttrDef, OpDef
    from tenfold_protos import node_def_pb2
    from tenfold_protos.attr_value_pb2 import AttrValue


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
        wanted = "list" if attr.type.startswith("list(") else FIELDS.get(attr.type)
        if which == "placeholder" or (which is None and attr.type.startswith("list(")):
            result[attr.name] = [] if which is None else result[attr.name]
            continue
        if which != wanted:
            raise _wrong(node, attr.name, f"holds a value of kind {which}; op {op_def.name} wants {attr.type}")
        if which == "list" and not _is_list_of(node.attr[attr.name].list, FIELDS[attr.type[5:-1]]):
            raise _wrong(node, attr.name, f"holds a list of another kind; op {op_def.name} wants {attr.type}")
        problem = check_value(attr, result[attr.name])
        if problem:
            raise _wrong(node, attr.name, problem)
    return result


def _is_list_of(items: AttrValue.ListValue, field: str) -> bool:
    """Whether there is nothing in the list but what that field holds."""
    return all(found.name == field for found, _ in items.ListFields())


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
