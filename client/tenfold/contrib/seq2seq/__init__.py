"""`tf.contrib.seq2seq`: decoders that run in a loop, helpers that choose their inputs, attention, beam search, a loss.

A table of names; each is loaded from its module at its first use. The classes with V2 at the end of their names are
layers of Keras and are left out with it.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

_KERAS = "it is a layer of Keras; use the class without V2"

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.contrib.seq2seq.attention": """
            AttentionMechanism BahdanauAttention LuongAttention hardmax
        """,
        "tenfold.contrib.seq2seq.monotonic": """
            BahdanauMonotonicAttention LuongMonotonicAttention monotonic_attention safe_cumprod
        """,
        "tenfold.contrib.seq2seq.attention_wrapper": "AttentionWrapper AttentionWrapperState",
        "tenfold.contrib.seq2seq.basic_decoder": "BasicDecoder BasicDecoderOutput",
        "tenfold.contrib.seq2seq.beam_search_decoder": """
            BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput
        """,
        "tenfold.contrib.seq2seq.beam_tree": "gather_tree gather_tree_from_array tile_batch",
        "tenfold.contrib.seq2seq.decoder": "Decoder dynamic_decode",
        "tenfold.contrib.seq2seq.helper": """
            CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper TrainingHelper
        """,
        "tenfold.contrib.seq2seq.scheduled_helper": """
            ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper
        """,
        "tenfold.contrib.seq2seq.loss": "sequence_loss",
    },
    {
        **dict.fromkeys(
            (
                *("AttentionMechanismV2", "BahdanauAttentionV2", "LuongAttentionV2", "BaseDecoder", "BasicDecoderV2"),
                *("BahdanauMonotonicAttentionV2", "LuongMonotonicAttentionV2", "BeamSearchDecoderV2"),
            ),
            _KERAS,
        ),
        "SequenceLoss": "it is a loss of Keras; use sequence_loss",
    },
)
