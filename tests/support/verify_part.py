"""Checks a part after a pass: what program.py and the executors rely on. Run by tests after every pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.opdefs.runtime_ops import ORDER_OPS

if TYPE_CHECKING:
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode


def verify(part: PartGraph, constants: Constants, after: str) -> None:
    """Raises InternalError, naming the pass and the node, for the first thing that is wrong."""

    def wrong(node: PartNode, text: str) -> errors.InternalError:
        return errors.internal(f"After {after}, node '{node.name}' ({node.op}) {text}.")

    for index, node in enumerate(part.nodes):
        if node.index != index:
            raise wrong(node, f"has index {node.index} at place {index}")
        if not part.is_dynamic:
            late = [s for s in (*(source for source, _ in node.inputs), *node.controls) if s >= index]
            if late:
                raise wrong(node, f"stands before '{part.nodes[late[0]].name}', which it waits for")
        if not len(node.inputs) == len(node.input_types) == len(node.deref):
            raise wrong(node, f"has {len(node.inputs)} inputs and {len(node.input_types)} input types")
        for (source, port), wanted, deref in zip(node.inputs, node.input_types, node.deref, strict=True):
            producer = part.nodes[source]
            if producer.op in ORDER_OPS:
                raise wrong(node, f"reads '{producer.name}', which is gone")
            given = producer.output_types[port]
            if given.base_dtype is not wanted.base_dtype:
                raise wrong(node, f"wants {wanted.name} and reads {given.name}")
            if deref != (given.is_ref_dtype and not wanted.is_ref_dtype):
                raise wrong(node, f"has a wrong mark for the reference '{producer.name}'")
        _verify_constant(node, constants, wrong)


def _verify_constant(node: PartNode, constants: Constants, wrong: object) -> None:
    values = constants.get(node.index)
    if values is None:
        return
    assert callable(wrong)
    if len(values) != len(node.output_types):
        raise wrong(node, f"has {len(values)} constant outputs")
    for value, dtype in zip(values, node.output_types, strict=True):
        if value.dtype != dtype.as_numpy_dtype:
            raise wrong(node, f"is a constant of {value.dtype} and should be {dtype.name}")
        if value.flags.writeable:
            raise wrong(node, "is a constant that can be written to")
