"""`tf.contrib.legacy_seq2seq`: sequence models that are unrolled over lists of inputs, one tensor a time step.

A table of names; each is loaded from its module at its first use. New programs use `tf.contrib.seq2seq`.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.contrib.legacy_seq2seq.attention": """
            attention_decoder embedding_attention_decoder embedding_attention_seq2seq
        """,
        "tenfold.contrib.legacy_seq2seq.losses": "model_with_buckets sequence_loss sequence_loss_by_example",
        "tenfold.contrib.legacy_seq2seq.models": """
            basic_rnn_seq2seq embedding_rnn_decoder embedding_rnn_seq2seq embedding_tied_rnn_seq2seq
            one2many_rnn_seq2seq rnn_decoder tied_rnn_seq2seq
        """,
    },
)
