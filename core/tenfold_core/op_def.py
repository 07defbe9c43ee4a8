"""Op definitions: what an operation takes, gives and is told.

A row of a table in `opdefs/` is text in TensorFlow's own notation ("x: T", "output: N * T", "ref: Ref(T)",
"transpose_a: bool = false", "T: {float, double}", "N: int >= 1") and is parsed at the first look-up, so that a table of
hundreds of rows costs nothing to import. Follows op_def_builder.cc; `OpDef.to_proto` gives the wire's message.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold_core.dtypes import DType
    from tenfold_protos import op_def_pb2

#: Named sets of types for rows: `T: {numeric}`. The order is the one of TensorFlow's registry.
TYPE_SETS: dict[str, tuple[str, ...]] = {
    "index": ("int32", "int64"),
    "floats": ("bfloat16", "half", "float", "double"),
    "half_floats": ("half", "bfloat16", "float", "double"),
    "floats_complex": ("bfloat16", "half", "float", "double", "complex64", "complex128"),
    "real": (
        *("float", "double", "int32", "uint8", "int16", "int8", "int64"),
        *("bfloat16", "uint16", "half", "uint32", "uint64"),
    ),
    "numeric": (
        *("float", "double", "int32", "uint8", "int16", "int8", "complex64", "int64", "qint8", "quint8", "qint32"),
        *("bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "uint32", "uint64"),
    ),
}


@dataclass(frozen=True, slots=True)
class ArgDef:
    """One input or output: a tensor, `number_attr` tensors of one type, or a list of types (`type_list_attr`)."""

    name: str
    type: DType | None = None
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        return bool(self.number_attr or self.type_list_attr)


@dataclass(frozen=True, slots=True)
class AttrDef:
    """One attribute: its type in TensorFlow's words (`type`, `int`, `list(shape)`, `func`, …), default and limits."""

    name: str
    type: str
    default: Any = None
    has_default: bool = False
    minimum: int | None = None
    allowed: tuple[Any, ...] = ()


@dataclass(frozen=True)
class OpDef:
    """The definition of one operation. `shape_fn` infers static output shapes; None means unknown shapes."""

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: tuple[AttrDef, ...]
    is_stateful: bool = False
    is_commutative: bool = False
    is_aggregate: bool = False
    allows_uninitialized_input: bool = False
    is_distributed_communication: bool = False
    control_output: tuple[str, ...] = ()
    #: The inputs whose values, not only their shapes, settle how much work the op is or how large its outputs are; "*"
    #: alone for work that no input bounds (a file, a script's function). () says that the values which the shape
    #: function reads settle neither, None that it reads none.
    sized_by: tuple[str, ...] | None = None
    shape_fn: Callable[..., Any] | None = None
    #: Made for a node whose operation is not here (stand_ins.py): nothing can run it.
    is_stand_in: bool = False
    #: Name → AttrDef, derived from attrs.
    attr_by_name: dict[str, AttrDef] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        self.attr_by_name.update((a.name, a) for a in self.attrs)

    @classmethod
    def from_proto(cls, proto: op_def_pb2.OpDef) -> OpDef:
        """The definition that a message holds, e.g. the signature of a function.

        Raises TypeError or ValueError for types that there are not.
        """
        from tenfold_core.attr_value import from_proto

        def args(items: Iterable[op_def_pb2.OpDef.ArgDef]) -> tuple[ArgDef, ...]:
            return tuple(
                ArgDef(
                    name=item.name,
                    type=dtypes.as_dtype(int(item.type)) if item.type else None,
                    type_attr=item.type_attr,
                    number_attr=item.number_attr,
                    type_list_attr=item.type_list_attr,
                    is_ref=item.is_ref,
                )
                for item in items
            )

        return cls(
            name=proto.name,
            inputs=args(proto.input_arg),
            outputs=args(proto.output_arg),
            attrs=tuple(
                AttrDef(
                    name=item.name,
                    type=item.type,
                    default=from_proto(item.default_value) if item.HasField("default_value") else None,
                    has_default=item.HasField("default_value"),
                    minimum=item.minimum if item.has_minimum else None,
                    allowed=tuple(from_proto(item.allowed_values) or ()) if item.HasField("allowed_values") else (),
                )
                for item in proto.attr
            ),
            is_stateful=proto.is_stateful,
            is_commutative=proto.is_commutative,
            is_aggregate=proto.is_aggregate,
            allows_uninitialized_input=proto.allows_uninitialized_input,
            is_distributed_communication=proto.is_distributed_communication,
            control_output=tuple(proto.control_output),
        )

    def to_proto(self) -> op_def_pb2.OpDef:
        """The OpDef message of the wire."""
        from tenfold_core.attr_value import to_proto
        from tenfold_protos import op_def_pb2

        proto = op_def_pb2.OpDef(
            name=self.name,
            is_stateful=self.is_stateful,
            is_commutative=self.is_commutative,
            is_aggregate=self.is_aggregate,
            allows_uninitialized_input=self.allows_uninitialized_input,
            is_distributed_communication=self.is_distributed_communication,
        )
        for args, target in ((self.inputs, proto.input_arg), (self.outputs, proto.output_arg)):
            for arg in args:
                target.add(
                    name=arg.name,
                    type=arg.type.as_datatype_enum if arg.type is not None else 0,
                    type_attr=arg.type_attr,
                    number_attr=arg.number_attr,
                    type_list_attr=arg.type_list_attr,
                    is_ref=arg.is_ref,
                )
        for attr in self.attrs:
            item = proto.attr.add(name=attr.name, type=attr.type)
            if attr.has_default:
                item.default_value.CopyFrom(to_proto(attr.default, attr.type))
            if attr.minimum is not None:
                item.has_minimum, item.minimum = True, attr.minimum
            if attr.allowed:
                kind = "list(type)" if attr.type in ("type", "list(type)") else "list(string)"
                item.allowed_values.CopyFrom(to_proto(list(attr.allowed), kind))
        return proto


_ARG = re.compile(r"\s*(\w+)\s*:\s*(Ref\(\s*)?(?:(\w+)\s*\*\s*)?(\w+)\s*\)?\s*$")


def parse(name: str, inputs: str, outputs: str, attrs: tuple[str, ...], **flags: Any) -> OpDef:
    """Parses a row. Raises ValueError naming the op and the piece that cannot be read."""
    attr_defs = tuple(_parse_attr(name, text) for text in attrs)
    kinds = {a.name: a.type for a in attr_defs}
    definition = OpDef(
        name=name,
        inputs=tuple(_parse_arg(name, text, kinds) for text in inputs.split(",") if text.strip()),
        outputs=tuple(_parse_arg(name, text, kinds) for text in outputs.split(",") if text.strip()),
        attrs=attr_defs,
        **flags,
    )
    unknown = set(definition.sized_by or ()) - {arg.name for arg in definition.inputs} - {"*"}
    if unknown:
        raise ValueError(f"op definition {name}: sized_by names {', '.join(sorted(unknown))}, which is no input")
    return definition


def _parse_arg(op: str, text: str, kinds: dict[str, str]) -> ArgDef:
    found = _ARG.match(text)
    if not found:
        raise ValueError(f"op definition {op}: cannot read the argument {text!r}; write 'name: T' or 'name: N * T'")
    name, ref, number, kind = found.groups()
    is_ref = ref is not None
    if kinds.get(kind) == "list(type)":
        return ArgDef(name, type_list_attr=kind, is_ref=is_ref)
    if kind in kinds:
        return ArgDef(name, type_attr=kind, number_attr=number or "", is_ref=is_ref)
    return ArgDef(name, type=dtypes.as_dtype(kind), number_attr=number or "", is_ref=is_ref)


_ATTR = re.compile(r"(\w+)\s*:\s*(list\([^)]*\)|\{[^}]*\}|[a-z]+)\s*(?:>=\s*(-?\d+))?\s*(?:=\s*(.*))?$", re.DOTALL)


def _parse_attr(op: str, text: str) -> AttrDef:
    found = _ATTR.match(text.strip())
    if not found:
        raise ValueError(f"op definition {op}: cannot read the attribute {text!r}; 'name: type = default' is expected")
    name, kind, minimum, default = found.groups()
    allowed: tuple[Any, ...] = ()
    is_list = kind.startswith("list(")
    inner = kind[5:-1].strip() if is_list else kind
    if inner.startswith("{"):
        names = [piece.strip() for piece in inner[1:-1].split(",") if piece.strip()]
        if names and names[0][0] in "'\"":
            inner = "string"
            allowed = tuple(ast.literal_eval(piece).encode() for piece in names)
        else:
            inner = "type"
            allowed = tuple(dtypes.as_dtype(t) for piece in names for t in TYPE_SETS.get(piece, (piece,)))
    kind = f"list({inner})" if is_list else inner
    return AttrDef(
        name=name,
        type=kind,
        default=None if default is None else _parse_default(kind, default.strip()),
        has_default=default is not None,
        minimum=None if minimum is None else int(minimum),
        allowed=allowed,
    )


def _parse_default(kind: str, text: str) -> Any:
    if kind.startswith("list("):
        items = text[1:-1].strip()
        return [_parse_default(kind[5:-1], piece.strip()) for piece in items.split(",") if piece.strip()]
    match kind:
        case "bool":
            return {"true": True, "false": False}[text]
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "string":
            value = ast.literal_eval(text)
            return value if isinstance(value, bytes) else value.encode()
        case "type":
            return dtypes.as_dtype(text)
        case "tensor":
            kind_name, _, values = text.partition("[")
            return np.array(ast.literal_eval("[" + values), dtypes.as_dtype(kind_name).as_numpy_dtype)
        case "shape":
            return TensorShape(None if text == "unknown" else ast.literal_eval(text))
    raise ValueError(f"no default can be written for an attribute of type {kind}")
