"""The types of a node's inputs and outputs, worked out from its op definition and its attributes.

`Add` with T=float takes two floats; `Split` with num_split=3 gives three tensors; `SaveV2` takes what `dtypes` lists.
The client checks a new node with it, the runtime every edge. Follows NameRangesForNode and InOutTypesForNode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import ArgDef, OpDef

#: No node has more inputs or outputs than this; a number attribute from a peer must not make us allocate more.
MAX_ARGS = 1 << 20


class Signature(NamedTuple):
    """Flat types of inputs and outputs (reference types for a Ref), and how many of them each argument has."""

    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    input_counts: tuple[int, ...]
    output_counts: tuple[int, ...]


def signature(op_def: OpDef, attrs: Mapping[str, Any]) -> Signature:
    """Types and counts for a node with these (resolved) attributes.

    Raises InvalidArgumentError naming op and argument.
    """
    input_types, input_counts = _expand(op_def, op_def.inputs, attrs)
    output_types, output_counts = _expand(op_def, op_def.outputs, attrs)
    return Signature(input_types, output_types, input_counts, output_counts)


def _expand(
    op_def: OpDef, args: tuple[ArgDef, ...], attrs: Mapping[str, Any]
) -> tuple[tuple[DType, ...], tuple[int, ...]]:
    flat: list[DType] = []
    counts: list[int] = []
    for arg in args:
        types = _arg_types(op_def, arg, attrs)
        if len(flat) + len(types) > MAX_ARGS:
            raise errors.InvalidArgumentError(None, None, f"Op {op_def.name}: more than {MAX_ARGS} arguments")
        flat.extend(t.as_ref for t in types) if arg.is_ref else flat.extend(types)
        counts.append(len(types))
    return tuple(flat), tuple(counts)


def _arg_types(op_def: OpDef, arg: ArgDef, attrs: Mapping[str, Any]) -> list[DType]:
    if arg.type_list_attr:
        return list(_attr(op_def, arg, arg.type_list_attr, attrs))
    one: DType = arg.type if arg.type is not None else _attr(op_def, arg, arg.type_attr, attrs)
    if not arg.number_attr:
        return [one]
    count = _attr(op_def, arg, arg.number_attr, attrs)
    if not 0 <= count <= MAX_ARGS:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Op {op_def.name}: attr '{arg.number_attr}' of '{arg.name}' is {count}; 0 to {MAX_ARGS} fit",
        )
    return [one] * count


def _attr(op_def: OpDef, arg: ArgDef, name: str, attrs: Mapping[str, Any]) -> Any:
    value = attrs.get(name)
    if value is None:
        raise errors.InvalidArgumentError(
            None, None, f"Op {op_def.name}: argument '{arg.name}' needs attr '{name}', which is not set"
        )
    return value
