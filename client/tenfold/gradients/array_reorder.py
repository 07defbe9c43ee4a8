"""Gradient rows of ops that reorder elements: reverses, rolls, the adjoint. Each rule is the inverse op.

Definitions in tenfold_core/opdefs/array.py. Follows TensorFlow's ops/array_grad.py and ops/manip_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("Reverse")
def _reverse(op: Operation, g: Tensor) -> Any:
    return apply_op("Reverse", tensor=g, dims=op.inputs[1]), None


@gradient("ReverseSequence")
def _reverse_sequence(op: Operation, g: Tensor) -> Any:
    attrs = {name: op.get_attr(name) for name in ("seq_dim", "batch_dim")}
    return apply_op("ReverseSequence", input=g, seq_lengths=op.inputs[1], **attrs), None


@gradient("ConjugateTranspose")
def _conjugate_transpose(op: Operation, g: Tensor) -> Any:
    perm = op.inputs[1]
    return apply_op("ConjugateTranspose", x=g, perm=apply_op("InvertPermutation", x=perm)), None


@gradient("Roll")
def _roll(op: Operation, g: Tensor) -> Any:
    _, shift, axis = op.inputs
    return apply_op("Roll", input=g, shift=apply_op("Neg", x=shift), axis=axis), None, None
