"""Ops of this family that have no kernel on a GPU, and why: one that is placed there runs on the CPU if it may."""

from __future__ import annotations

from tenfold_kernels.registry import no_kernel

no_kernel(
    "BlockLSTM", "BlockLSTMGrad", "BlockLSTMV2", "BlockLSTMGradV2", "LSTMBlockCell", "LSTMBlockCellGrad",
    "GRUBlockCell", "GRUBlockCellGrad", device="GPU",
    why="no program of the op census uses it; a cell of tf.nn.rnn_cell is a product and a fused loop there",
)  # fmt: skip
no_kernel(
    "CTCLoss", "CTCBeamSearchDecoder", "CTCGreedyDecoder", device="GPU",
    why="TensorFlow has none either",
)  # fmt: skip
no_kernel("GatherTree", device="GPU", why="no program of the op census uses it: a search ends on the host")
no_kernel("DataFormatDimMap", "DataFormatVecPermute", device="GPU", why="numbers of dimensions are the host's")
