"""`tf.contrib.rnn`: the cells of `tf.nn.rnn_cell` under their old names, and those that only contrib has.

A table of names; each is loaded from its module at its first use. Names and variables are TensorFlow 1.15's
`contrib/rnn`. CompiledWrapper is not here: it marks ops for XLA, which Tenfold does not have; NTMCell neither.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.ops.rnn_cell": """
            BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell
            ResidualWrapper
        """,
        "tenfold.ops.rnn_cell_layer": "LayerRNNCell",
        "tenfold.ops.rnn": "transpose_batch_time best_effort_input_batch_size",
        "tenfold.ops.rnn_static": "static_bidirectional_rnn static_rnn static_state_saving_rnn",
        "tenfold.contrib.rnn.cell_parts": "_Linear=Linear _linear=linear",
        "tenfold.contrib.rnn.blocks": """
            GRUBlockCell GRUBlockCellV2 LSTMBlockCell LSTMBlockFusedCell LSTMBlockWrapper
        """,
        "tenfold.contrib.rnn.convolutional": "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell",
        "tenfold.contrib.rnn.frequency": "BidirectionalGridLSTMCell GridLSTMCell TimeFreqLSTMCell",
        "tenfold.contrib.rnn.fused": "FusedRNNCell FusedRNNCellAdaptor TimeReversedFusedRNN",
        "tenfold.contrib.rnn.gated": """
            CFNCell IndRNNCell IndyGRUCell IndyLSTMCell IntersectionRNNCell MinimalRNNCell NASCell SRUCell UGRNNCell
        """,
        "tenfold.contrib.rnn.lstm": """
            CoupledInputForgetGateLSTMCell GLSTMCell LayerNormBasicLSTMCell LayerNormLSTMCell WeightNormLSTMCell
        """,
        "tenfold.contrib.rnn.phased": "PhasedLSTMCell",
        "tenfold.contrib.rnn.stacks": "stack_bidirectional_dynamic_rnn stack_bidirectional_rnn",
        "tenfold.contrib.rnn.wrappers": """
            AttentionCellWrapper EmbeddingWrapper HighwayWrapper InputProjectionWrapper OutputProjectionWrapper
        """,
    },
    {
        "CompiledWrapper": "it marks the ops of a cell for XLA, which Tenfold does not have; use the cell itself",
        "NTMCell": "no public program was found that uses it; copy the cell from TensorFlow 1.15 into the program",
    },
)
