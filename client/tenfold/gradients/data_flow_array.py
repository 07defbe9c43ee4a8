"""Gradient rows of tensor arrays; the op definitions are in tenfold_core/opdefs/data_flow.py.

Each call of `tf.gradients` has its own gradient array of a tensor array, found by a source name; the gradient of a read
is a write to it, and the gradient of a write is a read from it. Follows TensorFlow 1.15's ops/tensor_array_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable
from tenfold.ops.tensor_array import TensorArray

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

not_differentiable(
    "TensorArray",
    "TensorArrayClose",
    "TensorArrayCloseV2",
    "TensorArrayCloseV3",
    "TensorArrayGrad",
    "TensorArrayGradV2",
    "TensorArrayGradV3",
    "TensorArrayGradWithShape",
    "TensorArraySize",
    "TensorArraySizeV2",
    "TensorArraySizeV3",
    "TensorArrayV2",
    "TensorArrayV3",
    why="the array itself, not its elements",
)


def _gradient_array(op: Operation, flow: Tensor, grad: Tensor, dtype: Any) -> TensorArray:
    """The gradient array of the array of `op`, for the call of `tf.gradients` that `grad` belongs to."""
    there = TensorArray(dtype, handle=op.inputs[0], flow=flow)
    return there.grad(source=gradient_source(grad), flow=flow)


def gradient_source(tensor: Tensor) -> str:
    """The name scope of the innermost call of `tf.gradients` that made `tensor`.

    Raises ValueError if there is none: the call was given a name that does not start with "gradients".
    """
    parts = tensor.name.split("/")
    positions = [index for index, part in enumerate(parts) if part.startswith("gradients")]
    if not positions:
        raise ValueError(
            f"Expected op/tensor name to start with gradients (excluding scope), got: {tensor.name}. This means that a "
            "tf.gradients op with this op in its dependency path has a custom name that does not start with "
            "'gradients'. Please make sure all calls to tf.gradients that have non-empty 'name' arguments use names "
            "that start with 'gradients'."
        )
    return "/".join(parts[: positions[-1] + 1])


@gradient("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3")
def _read(op: Operation, g: Tensor) -> Any:
    _, index, flow = op.inputs
    written = _gradient_array(op, flow, g, op.get_attr("dtype")).write(index, g)
    return None, None, written.flow


@gradient("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3")
def _write(op: Operation, flow: Tensor) -> Any:
    g = _gradient_array(op, flow, flow, op.get_attr("T")).read(op.inputs[1])
    return None, None, g, flow


@gradient("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3")
def _gather(op: Operation, g: Tensor) -> Any:
    _, indices, flow = op.inputs
    scattered = _gradient_array(op, flow, g, op.get_attr("dtype")).scatter(indices, g)
    return None, None, scattered.flow


@gradient("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3")
def _scatter(op: Operation, flow: Tensor) -> Any:
    g = _gradient_array(op, flow, flow, op.get_attr("T")).gather(op.inputs[1])
    return None, None, g, flow


@gradient("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3")
def _concat(op: Operation, g: Tensor, _: Any) -> Any:
    flow = op.inputs[1]
    split = _gradient_array(op, flow, g, op.get_attr("dtype")).split(g, lengths=op.outputs[1])
    return None, split.flow


@gradient("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3")
def _split(op: Operation, flow: Tensor) -> Any:
    g = _gradient_array(op, flow, flow, op.get_attr("T")).concat()
    return None, g, None, flow
