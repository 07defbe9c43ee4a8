"""Static shapes of a node's outputs, from its op definition's shape function.

Called by the client for every new operation. `ShapeContext` is what a shape function sees; the functions themselves are
in `opdefs/shape_fns.py` and named in the rows of the tables. Follows shape_inference.h in spirit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import graph_versions
from tenfold_core.opdefs.input_ranks import check_rank, needed_ranks
from tenfold_core.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from tenfold_core.op_def import OpDef


class ShapeContext:
    """A node's attributes, its inputs' static shapes and, where they are known, its inputs' values.

    `constant(i)` gives the array of input i or None; `partial(i)` gives the shape that an integer vector input
    describes, with None for the elements that are not known, or a shape of unknown rank. `producer` is the version of
    the graph (graph_versions.py).
    """

    def __init__(
        self,
        op_def: OpDef,
        attrs: Mapping[str, Any],
        inputs: Sequence[TensorShape],
        constant: Callable[[int], np.ndarray | None],
        partial: Callable[[int], TensorShape] | None,
        output_count: int,
        producer: int = graph_versions.WRITTEN,
    ) -> None:
        self.op_def = op_def
        self.attrs = attrs
        self.inputs = inputs
        self.constant = constant
        self.output_count = output_count
        self.producer = producer
        self._partial = partial

    def partial(self, index: int) -> TensorShape:
        if self._partial is not None:
            return self._partial(index)
        value, shape = self.constant(index), self.inputs[index]
        if value is None:
            length = shape.as_list()[0] if shape.ndims == 1 else None
            return unknown_shape(length)
        if value.ndim == 0:
            return TensorShape(None)  # -1 stands for a shape of which nothing is known
        return TensorShape([None if d < 0 else int(d) for d in value.reshape(-1)])

    def input(self, index: int) -> TensorShape:
        return self.inputs[index]


def _check_ranks(op_def: OpDef, attrs: Mapping[str, Any], inputs: Sequence[TensorShape], producer: int) -> None:
    """Raises ValueError for an input with more or fewer dimensions than the op can take."""
    at = 0
    axes_of_any_rank = producer < graph_versions.FIRST_WITH_FLAT_AXES
    for arg, bounds in zip(op_def.inputs, needed_ranks(op_def.name), strict=False):
        if axes_of_any_rank and arg.name == "reduction_indices":
            bounds = None
        count = 1
        if arg.number_attr or arg.type_list_attr:
            length = attrs.get(arg.number_attr or arg.type_list_attr)
            if length is None:
                return  # asked without the node's attrs: which tensor is whose is not known
            count = length if arg.number_attr else len(length)
        if bounds is not None:
            for shape in inputs[at : at + count]:
                if shape.ndims is not None:
                    check_rank(bounds, shape.ndims)
        at += count


def infer_shapes(
    op_def: OpDef,
    attrs: Mapping[str, Any],
    inputs: Sequence[TensorShape],
    constant: Callable[[int], np.ndarray | None],
    output_count: int,
    partial: Callable[[int], TensorShape] | None = None,
    producer: int = graph_versions.WRITTEN,
) -> list[TensorShape]:
    """The static shape of each output, in a graph of version `producer`; unknown where the op has no shape function.

    Raises ValueError, naming the op, where the inputs' shapes cannot go together.
    """
    _check_ranks(op_def, attrs, inputs, producer)
    if op_def.shape_fn is None:
        return [TensorShape(None)] * output_count
    context = ShapeContext(op_def, attrs, inputs, constant, partial, output_count, producer)
    shapes: list[TensorShape] = op_def.shape_fn(context)
    if len(shapes) != output_count:
        raise AssertionError(f"shape function of {op_def.name} gave {len(shapes)} shapes for {output_count} outputs")
    return shapes
