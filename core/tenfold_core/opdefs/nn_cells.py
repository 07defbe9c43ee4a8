"""Op definitions: cells of recurrent networks as one op, and losses and decoders of CTC.

Loaded by nn.py, rows as there: TensorFlow's registry at 2.21 is the source of every name, order and default.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_cells as x
from tenfold_core.opdefs.table import family

op = family("nn")

op(
    "BlockLSTM",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T",
    "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
    "forget_bias: float = 1.0",
    "cell_clip: float = 3.0",
    "use_peephole: bool = false",
    "T: {half, float}",
    shape=x.block_lstm,
)
op(
    "BlockLSTMV2",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T",
    "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
    "cell_clip: float = 0.0",
    "use_peephole: bool = false",
    "T: {half, float}",
    shape=x.block_lstm,
)
op(
    "BlockLSTMGrad",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T",
    "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T",
    "use_peephole: bool",
    "T: {half, float}",
    shape=x.block_lstm_grad,
)
op(
    "BlockLSTMGradV2",
    "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T",
    "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T",
    "use_peephole: bool",
    "T: {half, float}",
    shape=x.block_lstm_grad,
)
op(
    "LSTMBlockCell",
    "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T",
    "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
    "forget_bias: float = 1.0",
    "cell_clip: float = 3.0",
    "use_peephole: bool = false",
    "T: {half, float}",
    shape=x.cell,
)
op(
    "LSTMBlockCellGrad",
    "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T",
    "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
    "use_peephole: bool",
    "T: {half, float}",
    shape=x.lstm_cell_grad,
)
op(
    "GRUBlockCell",
    "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T",
    "r: T, u: T, c: T, h: T",
    "T: {float}",
    shape=x.cell,
)
op(
    "GRUBlockCellGrad",
    "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T",
    "d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
    "T: {float}",
    shape=x.gru_cell_grad,
)
op(
    "CTCLoss",
    "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32",
    "loss: T, gradient: T",
    "preprocess_collapse_repeated: bool = false",
    "ctc_merge_repeated: bool = true",
    "ignore_longer_outputs_than_inputs: bool = false",
    "T: {float, double} = float",
    shape=x.ctc_loss,
)
op(
    "CTCGreedyDecoder",
    "inputs: T, sequence_length: int32",
    "decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T",
    "merge_repeated: bool = false",
    "blank_index: int = -1",
    "T: {float, double} = float",
    shape=x.ctc_greedy,
)
op(
    "CTCBeamSearchDecoder",
    "inputs: T, sequence_length: int32",
    "decoded_indices: top_paths * int64, decoded_values: top_paths * int64, decoded_shape: top_paths * int64, log_probability: T",
    "beam_width: int >= 1",
    "top_paths: int >= 1",
    "merge_repeated: bool = true",
    "T: {float, double} = float",
    shape=x.ctc_beam,
)
