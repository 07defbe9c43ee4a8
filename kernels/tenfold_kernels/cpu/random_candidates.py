"""Candidate samplers: classes to compare the true ones with, and how often each is to be expected.

A sampler is a distribution over [0, range_max); the op draws with or without repetition. Outputs are fresh; the learned
samplers hold what they have seen. Follows candidate_sampler_ops.cc, range_sampler.cc, weighted_picker.cc,
distribution_sampler.cc.
"""

from __future__ import annotations

import io
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tenfold_core.file_errors import os_errors
from tenfold_core.graph_files import graph_files
from tenfold_core.memory_limits import allow
from tenfold_kernels import philox
from tenfold_kernels.arrays import Array, contiguous, invalid, text_attr
from tenfold_kernels.cpu._compiled.candidates import MOST_TRIES
from tenfold_kernels.cpu.random import generator_of
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_INT32 = (1 << 31) - 1


#: (position, offset, blocks) → so many blocks from there on, uint32 [blocks, 4].
Blocks = Callable[[philox.Philox, int, int], Array]


def _compiled_blocks() -> Blocks:
    """For a builder: it compiles."""
    from tenfold_kernels.cpu._compiled import philox as compiled

    fill = compiled.fill()

    def blocks(position: philox.Philox, offset: int, count: int) -> Array:
        out = np.empty((count, 4), np.uint32)
        fill(*position.behind(offset).as_signed(), out)
        return out

    return blocks


class Words:
    """TensorFlow's SimplePhilox: numbers of several kinds from one stream of 32-bit words."""

    #: Blocks that are made at a time.
    _CHUNK = 64

    def __init__(self, position: philox.Philox, blocks: Blocks) -> None:
        self._position, self._blocks = position, blocks
        #: Words that were made last, the place of the next one, and how many blocks they and those before them were.
        self._made: list[int] = []
        self._at = self._offset = 0

    def word(self) -> int:
        if self._at == len(self._made):
            self._made = self._blocks(self._position, self._offset, self._CHUNK).reshape(-1).tolist()
            self._at, self._offset = 0, self._offset + self._CHUNK
        self._at += 1
        return self._made[self._at - 1]

    def long(self) -> int:
        return self.word() | self.word() << 32

    def fraction(self) -> float:
        """In [0, 1), of 23 bits."""
        return (self.word() & 0x7FFFFF) / (1 << 23)

    def below(self, limit: int, bits: int = 32) -> int:
        """A number in [0, limit), every one as likely as any other."""
        draw = self.word if bits == 32 else self.long
        if limit & (limit - 1) == 0:
            return draw() & max(limit - 1, 0)
        rest = ((1 << bits) - 1) % limit + 1
        while (number := draw()) < rest:
            pass
        return number % limit


#: Candidates, and the expected counts of the true classes and of the candidates.
Found = tuple[Array, Array, Array]


#: Tries in a row that find nothing new: what is left is never drawn, or nearly so. Each takes more than a microsecond.
_MOST_MISSES = 1 << 19


class Sampler(Protocol):
    """A distribution over [0, range)."""

    def sample(self, position: philox.Philox, true_classes: Array, wanted: int, unique: bool) -> Found:
        """Draws so many candidates, int64; how often each class is to be expected is float32.

        Raises InvalidArgumentError for true classes out of range.
        """
        ...


class _WordByWord(ABC):
    """Draws one candidate after the other."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._blocks = _compiled_blocks()

    def sample(self, position: philox.Philox, true_classes: Array, wanted: int, unique: bool) -> Found:
        wrong = true_classes[(true_classes < 0) | (true_classes >= self._limit)]
        if wrong.size:
            raise _out_of_range(wrong[0], self._limit)
        candidates, tries = self.draw(position, wanted, unique)
        found = (
            candidates,
            _expected(self.probability(true_classes), wanted, tries),
            _expected(self.probability(candidates), wanted, tries),
        )
        self.update(true_classes.reshape(-1).tolist())
        return found

    @abstractmethod
    def probability(self, values: Array) -> Array:
        """float32, one for each value."""

    def update(self, values: Sequence[int]) -> None:  # noqa: B027 # no sampler has to learn
        """Takes note of true classes. Most samplers learn nothing."""

    @abstractmethod
    def _sample(self, words: Words) -> int:
        """The next candidate."""

    def draw(self, position: philox.Philox, wanted: int, unique: bool) -> tuple[Array, int]:
        """So many candidates, int64, and after how many tries they were found."""
        words = Words(position, self._blocks)
        if not unique:
            return np.array([self._sample(words) for _ in range(wanted)], np.int64), wanted
        used: dict[int, None] = {}
        tries = missed = 0
        while len(used) < wanted:
            known = len(used)
            used[self._sample(words)] = None
            tries += 1
            missed = missed + 1 if len(used) == known else 0
            if tries > MOST_TRIES or missed > _MOST_MISSES:
                raise _too_many_tries(wanted, tries)
        return np.array(list(used), np.int64), tries


def _too_many_tries(wanted: int, tries: int = MOST_TRIES) -> Exception:
    return invalid(f"{wanted} different candidates were not found in {tries} tries")


def _out_of_range(value: int, limit: int) -> Exception:
    return invalid(f"`true_candidate` out of range [0, {limit}), received {value}")


class UniformSampler(_WordByWord):
    def _sample(self, words: Words) -> int:
        return words.below(self._limit, 64)

    def probability(self, values: Array) -> Array:
        return np.full(values.shape, 1.0 / self._limit, np.float32)


class LogUniformSampler:
    """P(v) = log((v + 2) / (v + 1)) / log(range + 1). What word2vec draws in every step: all of it is compiled."""

    def __init__(self, limit: int) -> None:
        from tenfold_kernels.cpu._compiled import candidates

        self._limit, self._missed = limit, candidates.log_of_misses(limit)
        self._log_uniform = candidates.log_uniform()

    def sample(self, position: philox.Philox, true_classes: Array, wanted: int, unique: bool) -> Found:
        found, expected = np.empty(wanted, np.int64), np.empty(wanted)
        table = np.full(1 << (2 * wanted).bit_length() if unique else 0, -1, np.int64)
        true_B = contiguous(true_classes).reshape(-1)
        true_expected = np.empty(true_B.size)
        key, low, high = position.as_signed()
        classes = self._limit, self._missed, table, true_B
        tries = self._log_uniform(key, low, high, *classes, found, true_expected, expected)
        if tries < 0:
            raise _out_of_range(true_B[-1 - tries], self._limit)
        if tries > MOST_TRIES:
            raise _too_many_tries(wanted)
        return found, true_expected.astype(np.float32).reshape(true_classes.shape), expected.astype(np.float32)


class LearnedSampler(_WordByWord):
    """As often as it was seen, and once. A binary tree of sums finds the class of a number."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        if limit >= _MAX_INT32:
            raise invalid(f"range_max must be less than {_MAX_INT32}, got {limit}")
        allow((limit,), np.int64, 4)
        depth = max(limit - 1, 0).bit_length()
        leaves = np.zeros(1 << depth, np.int64)
        leaves[:limit] = 1
        self._levels = [leaves]
        while self._levels[-1].size > 1:
            self._levels.append(self._levels[-1].reshape(-1, 2).sum(axis=1))

    @property
    def _total(self) -> int:
        return int(self._levels[-1][0])

    def _sample(self, words: Words) -> int:
        position, index = words.below(self._total), 0
        for level in reversed(self._levels[:-1]):
            left = int(level[2 * index])
            index *= 2
            if position >= left:
                index += 1
                position -= left
        return index

    def probability(self, values: Array) -> Array:
        return self._levels[0][values].astype(np.float32) / np.float32(self._total)

    def update(self, values: Sequence[int]) -> None:
        for value in itertools.islice(values, max(_MAX_INT32 - self._total, 0)):
            for level in self._levels:
                level[value] += 1
                value >>= 1


class FixedUnigramSampler(_WordByWord):
    """By given weights, in constant time: each class shares a slot with one heavier class."""

    def __init__(self, weights: Array) -> None:
        super().__init__(weights.size)
        count = weights.size
        self._weights = weights
        self._total = np.float32(0)
        for weight in weights:
            self._total += weight
        share = (weights * np.float32(count)).astype(np.float64) / float(weights.astype(np.float64).sum())
        self._other = np.arange(count)
        high = [i for i in range(count) if share[i] >= 1]
        low = [i for i in range(count) if share[i] < 1]
        while high and low:
            small, large = low.pop(), high.pop()
            self._other[small] = large
            share[large] -= 1.0 - share[small]
            (low if share[large] < 1 else high).append(large)
        self._share = share.astype(np.float32)
        self._share[high + low] = 1

    def _sample(self, words: Words) -> int:
        at = words.fraction()
        slot = words.below(self._weights.size)
        return slot if at < self._share[slot] else int(self._other[slot])

    def many(self, position: philox.Philox, wanted: int) -> Array:
        """So many classes, with repetition, int64: a block of the stream each, not the words that `draw` takes."""
        words = self._blocks(position, 0, wanted).astype(np.uint64)
        at = (words[:, 0] & np.uint64(0x7FFFFF)) / np.float32(1 << 23)
        slots = ((words[:, 1] | words[:, 2] << np.uint64(32)) % np.uint64(self._weights.size)).astype(np.int64)
        return np.where(at < self._share[slots], slots, self._other[slots])

    def probability(self, values: Array) -> Array:
        return self._weights[values] / self._total


def _expected(probability: Array, wanted: int, tries: int) -> Array:
    """How often a class is among the candidates."""
    if tries == wanted:
        return (probability * np.float32(wanted)).astype(np.float32)
    return -np.expm1(np.float32(tries) * np.log1p(-probability)).astype(np.float32)


_SAMPLERS: dict[str, Callable[[int], Sampler]] = {
    "UniformCandidateSampler": UniformSampler,
    "LogUniformCandidateSampler": LogUniformSampler,
    "LearnedUnigramCandidateSampler": LearnedSampler,
    "ThreadUnsafeUnigramCandidateSampler": LearnedSampler,
}


def _true_classes(value: Array, num_true: int) -> None:
    if value.ndim != 2:
        raise invalid("true_classes must be a matrix")
    if value.shape[1] != num_true:
        raise invalid(f"true_classes must have num_true columns, expected: {value.shape[1]} was: {num_true}")


@kernel(*_SAMPLERS, "FixedUnigramCandidateSampler")
def build_candidate_sampler(node: KernelNode) -> Compute:
    """true_classes [B, num_true] → candidates [num_sampled], expected counts of the true ones and of the candidates."""
    generator = generator_of(node)
    wanted, unique, limit = int(node.attrs["num_sampled"]), bool(node.attrs["unique"]), int(node.attrs["range_max"])
    allow((wanted,), np.int64, 8)
    sampler: Sampler = _SAMPLERS[node.op](limit) if node.op in _SAMPLERS else _fixed_unigram(node, limit)
    num_true = int(node.attrs["num_true"])
    lock = threading.Lock()

    def compute(true_classes: Array) -> Found:
        _true_classes(true_classes, num_true)
        if unique and wanted > limit:
            raise invalid("Sampler's range is too small.")
        position = generator.reserve(2048 * wanted // 4)
        with lock:
            return sampler.sample(position, true_classes, wanted, unique)

    return compute


def _fixed_unigram(node: KernelNode, limit: int) -> FixedUnigramSampler:
    path, unigrams = text_attr(node, "vocab_file"), list(node.attrs["unigrams"])
    if not path and not unigrams:
        raise invalid("Must provide either vocab_file or unigrams.")
    if path and unigrams:
        raise invalid("Must only provide one of vocab_file and unigrams.")
    shards, shard = int(node.attrs["num_shards"]), int(node.attrs["shard"])
    reserved = int(node.attrs["num_reserved_ids"])
    if not 0 <= reserved <= limit * shards:
        raise invalid(f"num_reserved_ids is {reserved}; range_max is {limit}")
    weights = [0.0] * len(range(shard, reserved, shards))
    raw = np.array(_vocabulary(path) if path else unigrams, np.float32)
    first = len(weights)
    mine = [w for i, w in enumerate(raw, start=first) if i % shards == shard]
    distortion = np.float32(node.attrs["distortion"])
    all_weights = np.concatenate((np.array(weights, np.float32), np.array(mine, np.float32) ** distortion))
    if all_weights.size != limit:
        raise invalid(f"range is {limit} must be equal to weights size  {all_weights.size}")
    if not (np.isfinite(all_weights).all() and (all_weights >= 0).all() and all_weights.sum() > 0):
        raise invalid("the weights of a FixedUnigramCandidateSampler must be finite, >= 0 and not all 0")
    return FixedUnigramSampler(all_weights)


def _vocabulary(path: str) -> list[float]:
    """The weights in a file of lines whose last comma-separated field is one."""
    weights = []
    with os_errors(path):
        text = graph_files().read_whole(path).decode("utf-8", "surrogateescape")
        for line in io.StringIO(text, newline=None):
            try:
                weights.append(float(line.rstrip("\n").rsplit(",", 1)[-1]))
            except ValueError:
                raise invalid(f"Wrong vocabulary format at line: {line.rstrip()}") from None
    return weights


@kernel("AllCandidateSampler")
def build_all_candidate_sampler(node: KernelNode) -> Compute:
    """Every class, once."""
    count, num_true = int(node.attrs["num_sampled"]), int(node.attrs["num_true"])
    allow((count,), np.int64, 2)

    def compute(true_classes: Array) -> Found:
        _true_classes(true_classes, num_true)
        wrong = true_classes[(true_classes < 0) | (true_classes >= count)]
        if wrong.size:
            raise _out_of_range(wrong[0], count)
        return np.arange(count, dtype=np.int64), np.ones(true_classes.shape, np.float32), np.ones(count, np.float32)

    return compute


@kernel("ComputeAccidentalHits")
def build_accidental_hits(node: KernelNode) -> Compute:
    """(true_classes [B, num_true], sampled [S]) → rows, places in sampled, and the lowest float as weights."""
    count = int(node.attrs["num_true"])
    lowest = -np.finfo(np.float32).max

    def compute(true_classes: Array, sampled: Array) -> tuple[Array, Array, Array]:
        if true_classes.ndim != 2 or true_classes.shape[1] != count:
            raise invalid("true_candidates must be a batch_size * num_true matrix")
        if sampled.ndim != 1:
            raise invalid("sampled_candidates must be a vector, which is typically an output from CandidateSampler")
        # Of a class that was sampled several times, TensorFlow keeps the last place.
        places = {value: i for i, value in enumerate(sampled.tolist())}
        # Most steps have few hits: those are looked up one by one.
        flat = true_classes.reshape(-1).tolist()
        at = [i for i, value in enumerate(flat) if value in places]
        rows = np.array([i // count for i in at], np.int32)
        ids = np.array([places[flat[i]] for i in at], np.int64)
        return rows, ids, np.full(len(at), lowest, np.float32)

    return compute
