"""Which nodes could be fused, and in a loop of which shape each of them fits.

Fusible nodes are pure elementwise ops with a row in tenfold_kernels/fusion/expressions.py, reductions at the end of a
loop, and sums of a gradient to an operand's shape that had it already. Used by the other files of this package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tenfold_compiler.part.node_facts import Constants, is_pure
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, METADATA_OPS
from tenfold_kernels.fusion import expressions
from tenfold_kernels.fusion.runs import REDUCTIONS, Role

if TYPE_CHECKING:
    from tenfold_compiler.part.part_graph import PartGraph, PartNode

Shape: TypeAlias = tuple[int, ...]
#: Node → shapes of its inputs, and of its one output, as a step had them.
Shapes: TypeAlias = Mapping[int, tuple[tuple[Shape, ...], Shape]]

#: Fewer ops than this are not worth a call: of scalars, of arrays.
MIN_SCALAR_OPS, MIN_ARRAY_OPS = 3, 2
#: Up to so many elements the C library's functions, one by one, beat NumPy's vectorised ones and their call.
MAX_LIBM_ELEMENTS = 32


def fusible_nodes(part: PartGraph, constants: Constants) -> list[PartNode]:
    """The nodes that could be fused if their shapes allow it."""
    return [
        node
        for node in part.nodes
        if node.index not in constants
        and node.inputs
        and len(node.output_types) == 1
        and not any(node.deref)
        and is_pure(node)
        and (_has_expression if node.memory is None else _has_gpu_expression)(node, constants)
    ]


def worth_fusing(nodes: Sequence[PartNode]) -> bool:
    """Whether some group could be large enough, whatever the shapes."""
    fusible = {node.index for node in nodes}
    return len(nodes) >= MIN_SCALAR_OPS or any(source in fusible for node in nodes for source, _ in node.inputs)


def is_alias(node: PartNode, constants: Constants) -> bool:
    """Whether the node is its input under another name; codegen.py looks through it.

    One that was folded is a constant, and has no input any more.
    """
    return node.op in ALIAS_OPS and node.index not in constants and not node.deref[0]


def nodes_of_shapes(part: PartGraph, constants: Constants) -> frozenset[int]:
    """The nodes whose values depend on constants and on shapes alone: the sizes in a mean's gradient, the axes of a
    broadcast's. A run of them is a group of which nothing is compiled: what it computes is kept by shapes
    (tenfold_kernels/fusion/remembered.py).

        Shape(x) ─► Prod ─► Cast ─► RealDiv ─► Tile        one look-up by x.shape, as long as the shapes come again
    """
    found: set[int] = set()
    for node in part.nodes:
        if node.index in constants or not node.inputs or any(node.deref):
            continue
        if (node.memory is not None and node.op not in METADATA_OPS) or node.copy_of is not None:
            continue
        known = all(source in constants or source in found for source, _ in node.inputs)
        if (known or node.op in METADATA_OPS) and (is_alias(node, constants) or (is_pure(node) and node.output_types)):
            found.add(node.index)
    return frozenset(index for index in found if not is_alias(part.nodes[index], constants))


def sums_to_shape(node: PartNode) -> bool:
    """Whether the node is a Reshape of optimize/reductions.py: (gradient, the operand's shape, the other's),
    which is its first input where that has the operand's shape.
    """
    return node.op == "Reshape" and len(node.inputs) == 3


def np_types(node: PartNode) -> tuple[list[np.dtype[Any]], np.dtype[Any]]:
    """The types of the inputs and of the first output."""
    inputs = [np.dtype(t.base_dtype.as_numpy_dtype) for t in node.input_types]
    return inputs, np.dtype(node.output_types[0].as_numpy_dtype)


def _has_expression(node: PartNode, constants: Constants) -> bool:
    inputs, output = np_types(node)
    if node.op in REDUCTIONS:
        return output.kind == "f" and output.itemsize >= 4 and _is_whole(node) and _is_sum(node, constants)
    if sums_to_shape(node):
        return expressions.row_of("Cast", [output], output) is not None
    return _is_whole(node) and expressions.row_of(node.op, inputs, output) is not None


def _has_gpu_expression(node: PartNode, constants: Constants) -> bool:
    """Whether a GPU's loop can do the node: all of it is on the GPU, but for the axes of a sum."""
    # not where there is no GPU
    from tenfold_kernels.cuda.loop_text import has_expression
    from tenfold_kernels.cuda.narrow_text import wide

    assert node.memory is not None
    inputs, output = np_types(node)
    read = 1 if node.op in REDUCTIONS else len(node.inputs)
    if not (_is_whole(node) and all((*node.memory[0][:read], *node.memory[1]))):
        return False
    if node.op in REDUCTIONS:
        return wide(output).kind == "f" and _is_sum(node, constants)
    return has_expression(node.op, inputs, output)


def _is_whole(node: PartNode) -> bool:
    """Whether the loop has the channels where the op has them, and an addition something to add."""
    if node.op in ("BiasAdd", "BiasAddV1", "BiasAddGrad"):
        return node.attrs.get("data_format", b"NHWC") in (b"NHWC", "NHWC")
    return node.op not in expressions.SUMS_OF_MANY or len(node.inputs) > 1


def _is_sum(node: PartNode, constants: Constants) -> bool:
    """Whether one of REDUCTIONS is one that a loop may end in, whatever its type."""
    if node.attrs.get("keep_dims", False):
        return False
    # one of five inputs sums products of rows (optimize/reductions.py)
    return len(node.inputs) == 1 or (len(node.inputs) == 2 and node.inputs[1][0] in constants)


def loop_shape(node: PartNode, observed: tuple[tuple[Shape, ...], Shape] | None, constants: Constants) -> Shape | None:
    """The shape of the loop that the node fits in, or None when it fits in none."""
    if observed is None:
        return None
    given, out = observed
    if node.op in REDUCTIONS:
        return given[0] if reduction_of(node, given[0], constants) else None
    if sums_to_shape(node):
        return out if out and given[0] == out and given[1] == (len(out),) else None
    inputs, output = np_types(node)
    if node.memory is None:
        row = expressions.row_of(node.op, inputs, output)
        if row is None:
            return None
        if out and row.libm and math.prod(out) > MAX_LIBM_ELEMENTS and not _only_multiplies(node, constants):
            return None
    if node.op in expressions.NO_BROADCAST and any(shape != out for shape in given):
        return None
    if node.op in ("BiasAdd", "BiasAddV1") and (len(out) < 2 or given[0] != out or given[1] != out[-1:]):
        return None
    if node.op == "Select" and (given[1] != out or given[2] != out or given[0] not in ((), out)):
        return None
    if not out:
        return out if not any(given) else None
    roles = [role_of(shape, out) for shape in given]
    return out if None not in roles and "full" in roles else None


def _only_multiplies(node: PartNode, constants: Constants) -> bool:
    """Whether the node is a power that its row and its kernel write as multiplications."""
    if node.op != "Pow" or node.inputs[1][0] not in constants:
        return False
    source, port = node.inputs[1]
    exponent = constants[source][port]
    return not exponent.ndim and float(exponent) in expressions.MULTIPLIED_POWERS


def role_of(shape: Shape, loop: Shape) -> Role | None:
    """What an array of this shape is to a loop of that shape, or None when it does not fit."""
    if shape == loop:
        return "full"
    if not shape:
        return "scalar"
    if len(loop) < 2:
        return None
    if shape == loop[-1:]:
        return "row"
    return "column" if shape == (*loop[:-1], 1) else None


def reduction_of(node: PartNode, given: Shape, constants: Constants) -> Literal["all", "rows"] | None:
    """ "all", "rows", or None for a reduction that no loop does."""
    rank = len(given)
    if not rank or 0 in given:
        return None
    if node.op == "L2Loss":
        return "all"
    if node.op == "BiasAddGrad":
        return "rows" if rank > 1 else None
    source, port = node.inputs[1]
    axes = {int(axis) % rank for axis in constants[source][port].reshape(-1).tolist() if -rank <= axis < rank}
    if len(axes) == rank:
        return "all"
    return "rows" if node.op == "Sum" and rank == 2 and axes == {0} else None
