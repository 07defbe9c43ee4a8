"""Gradient rows of recurrent cells that are one op; the op definitions are in tenfold_core/opdefs/nn_cells.py.

Follows TensorFlow's ops/rnn_grad.py and contrib/rnn's lstm_ops.py and gru_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

_LSTM_INPUTS = ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
_LSTM_OUTPUTS = ("i", "cs", "f", "o", "ci", "co", "h")


def _product(a: Tensor, b: Tensor, turn_a: bool = False, turn_b: bool = False) -> Tensor:
    result: Tensor = apply_op("MatMul", a=a, b=b, transpose_a=turn_a, transpose_b=turn_b)
    return result


def _bias(g: Tensor) -> Tensor:
    result: Tensor = apply_op("BiasAddGrad", out_backprop=g)
    return result


def _columns(x: Tensor, begin: Any, size: int) -> Tensor:
    result: Tensor = apply_op("Slice", input=x, begin=[0, begin], size=[-1, size])
    return result


def _width(x: Tensor, name: str) -> int:
    """The second size of a matrix. Raises ValueError where it is not known, as TensorFlow's rule does."""
    size = x.get_shape().with_rank(2).as_list()[1]
    if size is None:
        raise ValueError(f"The second dimension of `{name}` should not be None.")
    return int(size)


@gradient("BlockLSTM", "BlockLSTMV2")
def _block_lstm(op: Operation, *grads: Any) -> Any:
    inputs: dict[str, Any] = dict(zip(("seq_len_max", *_LSTM_INPUTS), op.inputs, strict=True))
    outputs: dict[str, Any] = dict(zip(_LSTM_OUTPUTS, op.outputs, strict=True))
    kind = "BlockLSTMGradV2" if op.type == "BlockLSTMV2" else "BlockLSTMGrad"
    of_inputs = apply_op(
        kind, **inputs, **outputs, cs_grad=grads[1], h_grad=grads[6], use_peephole=op.get_attr("use_peephole")
    )
    return None, *of_inputs


@gradient("LSTMBlockCell")
def _lstm_block_cell(op: Operation, *grads: Any) -> Any:
    inputs: dict[str, Any] = dict(zip(_LSTM_INPUTS, op.inputs, strict=True))
    outputs: dict[str, Any] = dict(zip(_LSTM_OUTPUTS[:-1], op.outputs[:-1], strict=True))
    x, h_prev, w = inputs["x"], inputs["h_prev"], inputs["w"]
    size, cells = _width(x, "x"), _width(inputs["cs_prev"], "cs_prev")
    of_cs_prev, gates, of_wci, of_wcf, of_wco = apply_op(
        "LSTMBlockCellGrad",
        **inputs,
        **outputs,
        cs_grad=grads[1],
        h_grad=grads[6],
        use_peephole=op.get_attr("use_peephole"),
    )
    of_xh = _product(gates, w, turn_b=True)
    of_w = _product(array_ops.concat([x, h_prev], 1), gates, turn_a=True)
    of_x, of_h_prev = _columns(of_xh, 0, size), _columns(of_xh, size, cells)
    return of_x, of_cs_prev, of_h_prev, of_w, of_wci, of_wcf, of_wco, _bias(gates)


@gradient("GRUBlockCell")
def _gru_block_cell(op: Operation, *grads: Any) -> Any:
    x, h_prev, w_ru, w_c, b_ru, b_c = op.inputs
    r, u, c, _ = op.outputs
    of_x, of_h_prev, of_c, of_both = apply_op(
        "GRUBlockCellGrad", x=x, h_prev=h_prev, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c, r=r, u=u, c=c, d_h=grads[3]
    )
    of_w_ru = _product(array_ops.concat([x, h_prev], 1), of_both, turn_a=True)
    of_w_c = _product(array_ops.concat([x, h_prev * r], 1), of_c, turn_a=True)
    return of_x, of_h_prev, of_w_ru, of_w_c, _bias(of_both), _bias(of_c)


not_differentiable("BlockLSTMGrad", "BlockLSTMGradV2", "LSTMBlockCellGrad", "GRUBlockCellGrad")
