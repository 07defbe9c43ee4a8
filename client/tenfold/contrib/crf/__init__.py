"""`tf.contrib.crf`: linear chain conditional random fields; their likelihood and their best sequences.

A table of names; each is loaded from its module at its first use.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.lazy import lazy_names

__getattr__: Any
__dir__: Any
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tenfold.contrib.crf.decoding": """
            CrfDecodeBackwardRnnCell CrfDecodeForwardRnnCell crf_decode viterbi_decode
        """,
        "tenfold.contrib.crf.likelihood": """
            CrfForwardRnnCell crf_binary_score crf_log_likelihood crf_log_norm crf_multitag_sequence_score
            crf_sequence_score crf_unary_score
        """,
    },
)
