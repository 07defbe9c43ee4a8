"""A graph as lines of text, one node a line: for the golden stories and the tests of graph passes.

    x = Placeholder() dtype=float @/job:ps/task:0
    y = Add(x, x:0, ^init) T=float

`to_text` writes what `parse_text` reads, save attributes that were worked out from the inputs. Not a file format:
programs ship GraphDefs.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes, opdefs
from tenfold_core.attr_value import to_proto
from tenfold_core.node_attrs import resolve_attrs
from tenfold_core.node_names import parse_tensor_name
from tenfold_core.node_signature import signature
from tenfold_core.tensor_util import make_tensor_proto
from tenfold_protos import graph_pb2, node_def_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import OpDef

_LINE = re.compile(r"(?P<name>\S+)\s*=\s*(?P<op>\w+)\((?P<inputs>[^)]*)\)(?P<attrs>[^@]*)(?:@(?P<device>\S+))?$")
_ATTR = re.compile(r"(\w+)=('[^']*'|\[[^\]]*\]|\S+)")


def parse_text(text: str) -> graph_pb2.GraphDef:
    """Reads a graph. Types and counts that follow from the inputs need not be written.

    Raises ValueError naming the line that cannot be read.
    """
    result = graph_pb2.GraphDef()
    types: dict[str, tuple[DType, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        found = _LINE.match(line)
        if found is None:
            raise ValueError(f"line {number}: cannot read {line!r}; 'name = Op(inputs) attr=value @device' is expected")
        op_def = opdefs.get(found["op"])
        node = result.node.add(name=found["name"], op=found["op"], device=found["device"] or "")
        node.input.extend(piece.strip() for piece in found["inputs"].split(",") if piece.strip())
        for key, value in _ATTR.findall(found["attrs"]):
            _set_attr(node, op_def, key, value)
        _infer_from_inputs(node, op_def, types)
        types[node.name] = signature(op_def, resolve_attrs(op_def, node)).output_types
    return result


def _set_attr(node: node_def_pb2.NodeDef, op_def: OpDef, key: str, text: str) -> None:
    if key == "colocate":
        node.attr["_class"].list.s.append(f"loc:@{text}".encode())
        return
    kind = op_def.attr_by_name[key].type if key in op_def.attr_by_name else "string"
    if kind == "tensor":
        dtype = dtypes.as_dtype(re.search(r"dtype=(\w+)", f"dtype={_dtype_of(node)}")[1])  # type: ignore[index]
        node.attr[key].tensor.CopyFrom(make_tensor_proto(ast.literal_eval(text), dtype))
        return
    node.attr[key].CopyFrom(to_proto(_value(kind, text), kind))


def _dtype_of(node: node_def_pb2.NodeDef) -> str:
    return dtypes.as_dtype(node.attr["dtype"].type).name if "dtype" in node.attr else "float32"


def _value(kind: str, text: str) -> Any:
    if kind == "list(type)":
        return [piece.strip() for piece in text[1:-1].split(",") if piece.strip()]
    if kind == "type":
        return text
    if kind == "bool":
        return text == "true"
    return ast.literal_eval(text)


def _infer_from_inputs(node: node_def_pb2.NodeDef, op_def: OpDef, types: dict[str, tuple[DType, ...]]) -> None:
    tensors = [parse_tensor_name(text) for text in node.input if not text.startswith("^")]
    given = [types[t.node][t.output].base_dtype if t.node in types else None for t in tensors]
    position = 0
    for arg in op_def.inputs:
        count = 1
        if arg.number_attr:
            others = sum(1 for other in op_def.inputs if not other.is_list)
            count = node.attr[arg.number_attr].i if arg.number_attr in node.attr else len(given) - others
            _default(node, arg.number_attr, "int", count)
        elif arg.type_list_attr:
            count = len(given) - position
            _default(node, arg.type_list_attr, "list(type)", given[position:])
        first = given[position] if position < len(given) else None
        if arg.type_attr and first is not None:
            _default(node, arg.type_attr, "type", first)
        position += count


def _default(node: node_def_pb2.NodeDef, key: str, kind: str, value: Any) -> None:
    if key not in node.attr:
        node.attr[key].CopyFrom(to_proto(value, kind))


#: Attributes whose value is plain from the rest of the line.
_QUIET = frozenset(("T", "N", "value", "send_device_incarnation", "shape"))


def to_text(nodes: Iterable[node_def_pb2.NodeDef], *, quiet: frozenset[str] = _QUIET) -> str:
    """One line a node, in the order given. Attributes in `quiet` and those at their default are left out."""
    return "\n".join(_line(node, quiet) for node in nodes)


def _line(node: node_def_pb2.NodeDef, quiet: frozenset[str]) -> str:
    attrs = [f"{key}={_show(node.attr[key])}" for key in sorted(node.attr) if key not in quiet]
    pieces = [f"{node.name} = {node.op}({', '.join(node.input)})", *(a for a in attrs if not a.endswith("=false"))]
    if node.device:
        pieces.append(f"@{node.device}")
    return " ".join(pieces)


def _show(value: Any) -> str:
    kind = value.WhichOneof("value")
    if kind == "type":
        return dtypes.as_dtype(value.type).op_name
    if kind == "s":
        return repr(value.s.decode(errors="replace"))
    if kind == "b":
        return "true" if value.b else "false"
    if kind in ("i", "f"):
        return str(getattr(value, kind))
    if kind == "list" and value.list.s:
        return "[" + ", ".join(item.decode(errors="replace") for item in value.list.s) + "]"
    return f"<{kind}>"
