"""word2vec as one op for its examples and one for a step of its training, as graphs of 2016 have it.

Skipgram reads a text and gives pairs of words that stand near each other; its numbers are TensorFlow's own, one stream
from the seed 0. NegTrain moves both tables of vectors in place and draws anywhere, as TensorFlow's does. Follows
word2vec_kernels.cc.
"""

from __future__ import annotations

import threading
from array import array
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.memory_limits import allow
from tenfold_kernels import philox
from tenfold_kernels.arrays import Array, contiguous, freeze, invalid, shape_text
from tenfold_kernels.cpu._variables import variable_of
from tenfold_kernels.cpu.array_gather import index_error
from tenfold_kernels.cpu.random import blocks
from tenfold_kernels.cpu.random_candidates import FixedUnigramSampler, Words
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Pairs that are made at a time, and words that are read before they are made into pairs.
_PAIRS, _SENTENCE = 3000, 1000
#: Bytes of the text that are taken apart at a time.
_PIECE = 1 << 20
#: A sentence is to be found within so many words, on average: with less kept of them a step would take seconds.
_MOST_SKIPPED = 1 << 12


def _words_of(text: bytes) -> Iterator[list[bytes]]:
    """The words of a text, some at a time: a list of all of them would take many times its memory."""
    begin = 0
    while begin < len(text):
        end = begin + _PIECE
        while end < len(text) and not text[end : end + 1].isspace():
            end += 1
        yield text[begin:end].split()
        begin = end


class _Corpus:
    """A text as numbers of words, and its vocabulary: the most frequent word first, behind "UNK" for the rare ones."""

    def __init__(self, path: str, window: int, least: int) -> None:
        with os_errors(path):
            text = graph_files().read_whole(path)
        counts: Counter[bytes] = Counter()
        for piece in _words_of(text):
            counts.update(piece)
        size = counts.total()
        if size < window * 10:
            raise invalid(f"The text file {path} contains too little data: {size} words")
        # equals in the order of the text; TensorFlow's order of them is that of its hash table
        frequent = [(word, count) for word, count in counts.most_common() if count >= least]
        numbers = {word: number for number, (word, _) in enumerate(frequent, 1)}
        self.numbers = array("i")
        for piece in _words_of(text):
            self.numbers.extend([numbers.get(word, 0) for word in piece])
        self.words = np.empty(len(frequent) + 1, object)
        self.words[:] = [b"UNK", *(word for word, _ in frequent)]
        known = [count for _, count in frequent]
        self.counts = np.array([size - sum(known), *known], np.int32)
        freeze(self.words)
        freeze(self.counts)


class _Pairs:
    """The stream of examples and labels. Not thread-safe."""

    def __init__(self, corpus: _Corpus, window: int, subsample: float) -> None:
        self._numbers, self._window = corpus.numbers, window
        self._words = Words(philox.Philox(0, 0), lambda position, offset, count: blocks(position.behind(offset), count))
        #: Word → the share of its occurrences that is kept; None keeps all.
        self._kept = self._shares(corpus, subsample) if subsample > 0 else None
        self.epoch, self.words_processed = -1, 0
        self._at = len(corpus.numbers)
        self._sentence: list[int] = []
        self._center, self._other, self._end = _SENTENCE, 0, 0
        self._made: list[tuple[int, int]] = []
        self._next = 0
        self._refill()

    @staticmethod
    def _shares(corpus: _Corpus, subsample: float) -> list[float]:
        # in float, as TensorFlow computes them: equation 5 of http://arxiv.org/abs/1310.4546
        rate = np.float32(subsample) * np.float32(len(corpus.numbers))
        counts = corpus.counts.astype(np.float32)
        with np.errstate(all="ignore"):
            shares = (np.sqrt(counts / rate) + np.float32(1)) * rate / counts
        kept = float(np.sum(np.minimum(shares, 1) * counts, where=counts > 0)) / len(corpus.numbers)
        if not kept * _MOST_SKIPPED >= 1:
            raise invalid(f"subsample = {subsample} keeps {kept:.1e} of the words, fewer than one in {_MOST_SKIPPED}")
        return shares.tolist()  # type: ignore[no-any-return]

    def take(self, count: int) -> list[tuple[int, int]]:
        """The next pairs of (example, label)."""
        found: list[tuple[int, int]] = []
        while len(found) < count:
            piece = self._made[self._next : self._next + count - len(found)]
            found += piece
            self._next += len(piece)
            if self._next == _PAIRS:
                self._refill()
        return found

    def _refill(self) -> None:
        self._made = [self._pair() for _ in range(_PAIRS)]
        self._next = 0

    def _pair(self) -> tuple[int, int]:
        while True:
            if self._other >= self._end:
                self.words_processed += 1
                self._center += 1
                if self._center >= _SENTENCE:
                    self._center = 0
                    self._read_sentence()
                reach = 1 + self._words.below(self._window)
                self._other = max(0, self._center - reach)
                self._end = min(_SENTENCE, self._center + reach + 1)
            if self._other != self._center:
                break
            self._other += 1
        self._other += 1
        return self._sentence[self._center], self._sentence[self._other - 1]

    def _read_sentence(self) -> None:
        sentence: list[int] = []
        while len(sentence) < _SENTENCE:
            if self._at >= len(self._numbers):
                self.epoch += 1
                self._at = 0
            word = self._numbers[self._at]
            if self._kept is None or self._words.fraction() <= self._kept[word]:
                sentence.append(word)
            self._at += 1
        self._sentence = sentence


@kernel("Skipgram", files=True)
def build_skipgram(node: KernelNode) -> Compute:
    """→ words, counts, words an epoch, epoch, words processed, examples [batch], labels [batch].

    Reads the text in its first step, and blocks while it does.
    """
    path = file_path(node.attrs["filename"])
    batch, window = int(node.attrs["batch_size"]), int(node.attrs["window_size"])
    least, subsample = int(node.attrs["min_count"]), float(node.attrs["subsample"])
    if batch < 0 or window < 1:
        raise invalid(f"batch_size must be at least 0 and window_size at least 1, got {batch} and {window}")
    allow((batch,), np.int32, 32)
    lock = threading.Lock()
    state: tuple[_Corpus, _Pairs] | None = None

    def compute() -> tuple[Any, ...]:
        nonlocal state
        with lock:
            if state is None:
                corpus = _Corpus(path, window, least)
                state = corpus, _Pairs(corpus, window, subsample)
            corpus, pairs = state
            taken = np.array(pairs.take(batch), np.int32).reshape(batch, 2)
            epoch, processed = pairs.epoch, pairs.words_processed
        return (
            corpus.words,
            corpus.counts,
            np.array(len(corpus.numbers), np.int64),
            np.array(epoch, np.int32),
            np.array(processed, np.int64),
            taken[:, 0].copy(),
            taken[:, 1].copy(),
        )

    return compute


@kernel("NegTrain")
def build_neg_train(node: KernelNode) -> Compute:
    """(w_in and w_out, references of [vocabulary, dims], examples [B], labels [B], lr): moves both tables in place."""
    from tenfold_kernels.cpu._compiled import word_vectors

    counts = np.array(node.attrs["vocab_count"], np.float32)
    each = max(int(node.attrs["num_negative_samples"]), 0)
    if each and not ((counts >= 0).all() and counts.any()):
        raise invalid("vocab_count must have no negative number, and one above 0")
    sampler = FixedUnigramSampler(counts ** np.float32(0.75)) if each else None
    generator, train = philox.Generator(0, 0), word_vectors.negative_sampling()

    def compute(w_in: Any, w_out: Any, examples: Array, labels: Array, rate: Array) -> None:
        inner, outer = variable_of(node, w_in), variable_of(node, w_out)
        if examples.ndim != 1:
            raise invalid(f"examples must be a vector, got shape {shape_text(examples.shape)}")
        if labels.shape != examples.shape:
            raise invalid(
                f"examples.shape == labels.shape, got {shape_text(examples.shape)} and {shape_text(labels.shape)}"
            )
        if rate.ndim:
            raise invalid(f"lr must be a scalar, got shape {shape_text(rate.shape)}")
        samples = np.empty(0, np.int32)
        if sampler is not None:
            allow((examples.size, each), np.int64, 8)
            samples = sampler.many(generator.reserve(examples.size * each), examples.size * each).astype(np.int32)
        with ExitStack() as held:
            # in one order, whichever of them is named first
            for variable in sorted({inner, outer}, key=id):
                held.enter_context(variable.lock)
            tables = inner.buffer(), outer.buffer()
            if tables[0].ndim != 2 or tables[1].shape != tables[0].shape:
                shapes = " and ".join(shape_text(table.shape) for table in tables)
                raise invalid(f"w_in and w_out must be matrices of one shape, got {shapes}")
            if tables[0].shape[0] != counts.size:
                raise invalid(f"vocab_size mismatches: {tables[0].shape[0]} vs. {counts.size}")
            room = np.empty(tables[0].shape[1], np.float32)
            bad = train(*tables, contiguous(examples), contiguous(labels), samples, np.float32(rate), room)
        if bad >= 0:
            limit = counts.size
            wrong = examples if not 0 <= examples[bad] < limit else labels
            raise index_error(wrong, bad, limit)

    return compute
