"""Op definitions: word2vec as TensorFlow had it in 2016, its examples and its training step as one op each.

Loaded by nn.py, rows as there: TensorFlow's registry at 2.21 is the source of every name, order and default.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_nn as w
from tenfold_core.opdefs.table import family

op = family("nn")

op(
    "NegTrain",
    "w_in: Ref(float), w_out: Ref(float), examples: int32, labels: int32, lr: float",
    "",
    "vocab_count: list(int)",
    "num_negative_samples: int",
    stateful=True,
    shape=w.nothing,
)
op(
    "Skipgram",
    "",
    "vocab_word: string, vocab_freq: int32, words_per_epoch: int64, current_epoch: int32, total_words_processed: int64, examples: int32, labels: int32",
    "filename: string",
    "batch_size: int",
    "window_size: int = 5",
    "min_count: int = 5",
    "subsample: float = 0.001",
    stateful=True,
    sized_by="*",
    shape=w.skipgram,
)
