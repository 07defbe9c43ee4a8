"""Gradient rows of CTC; the op definitions are in tenfold_core/opdefs/nn_cells.py. Follows TensorFlow's ctc_ops.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("CTCLoss")
def _ctc_loss(op: Operation, of_loss: Tensor, _: Any) -> Any:
    """The second output is the derivative, which has none of its own: second derivatives are refused."""
    message = (
        "Currently there is no way to take the second  derivative of ctc_loss due to the fused implementation's "
        "interaction with tf.gradients()"
    )
    derivative = apply_op("PreventGradient", input=op.outputs[1], message=message)
    scale = array_ops.expand_dims(array_ops.expand_dims(of_loss, 0), -1)
    return scale * derivative, None, None, None


not_differentiable("CTCGreedyDecoder", "CTCBeamSearchDecoder")
