"""Candidate samplers: what each draws, how often a class is to be expected, what they learn, read and refuse."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import random_candidates
from tenfold_kernels.cpu._compiled import candidates as compiled
from tenfold_kernels.cpu.random_candidates import (
    FixedUnigramSampler,
    LearnedSampler,
    LogUniformSampler,
    UniformSampler,
    Words,
)
from tenfold_kernels.philox import Philox

if TYPE_CHECKING:
    from pathlib import Path

#: Where numbers of a test are drawn.
POSITION = Philox(3, 4 << 64)


def words_of(values: list[int]) -> Words:
    """A stream that begins with these words of 32 bits, and goes on with them."""
    row = np.array((values * 256)[:256], np.uint32).reshape(64, 4)
    return Words(POSITION, lambda position, offset, count: row[:count])


def sampled(op: str, ops: Any, true: Any = ((1,),), **attrs: Any) -> Any:
    given = {
        "num_true": len(true[0]),
        "num_sampled": 4,
        "unique": False,
        "range_max": 10,
        "seed": 3,
        "seed2": 4,
        **attrs,
    }
    return ops.run(op, [np.array(true, np.int64)], **given)


# ---- words -----------------------------------------------------------------------------------------------------------


def test_words_are_those_of_the_stream_in_order() -> None:
    asked = []

    def blocks(position: Philox, offset: int, count: int) -> Any:
        asked.append((offset, count))
        return position.blocks(np.arange(offset, offset + count, dtype=np.uint64))

    words = Words(POSITION, blocks)
    expected = list(itertools.islice(POSITION.single(), 600))
    assert [words.word() for _ in range(600)] == expected
    assert asked == [(0, 64), (64, 64), (128, 64)]


def test_kinds_of_numbers() -> None:
    assert words_of([5, 6]).long() == 5 | 6 << 32
    assert words_of([0xFF800000 | 3 << 20]).fraction() == 3 / 8
    assert words_of([0x7FFFFF]).fraction() == 1 - 2**-23
    assert words_of([0b1101]).below(8) == 5
    assert words_of([77]).below(1) == 0
    assert words_of([77]).below(0) == 0
    assert words_of([3, 5]).below(1 << 33, 64) == 3 | (5 & 1) << 32
    assert words_of([29]).below(10) == 9
    assert words_of([9, 6]).below(7, 64) == (9 | 6 << 32) % 7


def test_numbers_that_would_make_some_likelier_are_drawn_again() -> None:
    """2³² is 4 and a multiple of 6, and 2⁶⁴ is 6 and a multiple of 10: of the least so many are left out."""
    assert words_of([3, 4]).below(6) == 4
    assert words_of([0, 1, 2, 3, 5]).below(6) == 5
    assert words_of([5, 0, 6, 0]).below(10, 64) == 6
    assert words_of([5, 1, 6, 0]).below(10, 64) == (5 | 1 << 32) % 10


# ---- samplers --------------------------------------------------------------------------------------------------------


def test_uniform_ones() -> None:
    sampler = UniformSampler(8)
    found, true, drawn = sampler.sample(POSITION, np.int64([[0, 7]]), 3, unique=False)
    stream = POSITION.single()
    assert found.tolist() == [(next(stream) | next(stream) << 32) % 8 for _ in range(3)]
    np.testing.assert_allclose(true, [[3 / 8, 3 / 8]])
    np.testing.assert_allclose(drawn, [3 / 8] * 3)
    assert {found.dtype, true.dtype, drawn.dtype} == {np.dtype(np.int64), np.dtype(np.float32)}


@pytest.mark.parametrize("unique", [True, False])
def test_log_uniform_ones_are_expected_by_their_own_formula(unique: bool) -> None:
    limit, wanted = 20, 15
    found, true, drawn = LogUniformSampler(limit).sample(POSITION, np.int64([[0], [19]]), wanted, unique)
    chance = {v: math.log((v + 2) / (v + 1)) / math.log(limit + 1) for v in range(limit)}
    assert len(set(found.tolist())) == wanted or not unique
    # which of the tries was the last one is what the counts of all have in common
    tries = round(math.log1p(-true[1, 0]) / math.log1p(-chance[19])) if unique else wanted
    expected = {v: 1 - (1 - p) ** tries if unique else p * wanted for v, p in chance.items()}
    assert tries > wanted or not unique
    np.testing.assert_allclose(true, [[expected[0]], [expected[19]]], rtol=1e-6)
    np.testing.assert_allclose(drawn, [expected[v] for v in found.tolist()], rtol=1e-6)


def test_the_learned_one_draws_what_it_saw() -> None:
    sampler = LearnedSampler(5)
    assert sampler._total == 5
    before = sampler.sample(POSITION, np.int64([[2, 2], [4, 2]]), 3, unique=False)
    np.testing.assert_allclose(before[1], np.full((2, 2), 3 / 5))
    np.testing.assert_allclose(before[2], [3 / 5] * 3)
    # seen: 0 once, 1 once, 2 four times, 3 once, 4 twice
    found, true, drawn = sampler.sample(POSITION, np.int64([[2], [4], [0]]), 3, unique=False)
    np.testing.assert_allclose(true[:, 0], [3 * 4 / 9, 3 * 2 / 9, 3 / 9], rtol=1e-6)
    np.testing.assert_allclose(drawn, sampler.probability(found) * 0 + [3 * [1, 1, 4, 1, 2][v] / 9 for v in found])
    places = [0, 1, 2, 2, 2, 2, 3, 4, 4]
    fresh = LearnedSampler(5)
    fresh.update([2, 2, 4, 2])
    assert [fresh._sample(words_of([16 * 9 + at])) for at in range(9)] == [places[(16 * 9 + at) % 9] for at in range(9)]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 8, 9])
def test_the_learned_one_finds_every_class(limit: int) -> None:
    sampler = LearnedSampler(limit)
    base = 16 * limit
    assert [sampler._sample(words_of([base + at])) for at in range(limit)] == list(range(limit))


def test_the_learned_one_stops_learning_before_its_sum_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_candidates, "_MAX_INT32", 8)
    sampler = LearnedSampler(5)
    sampler.update([4, 4, 4, 4, 4])
    assert sampler._total == 8
    sampler.update([0])
    assert sampler._levels[0].tolist()[:5] == [1, 1, 1, 1, 4]
    with pytest.raises(errors.InvalidArgumentError, match="range_max must be less than 8, got 8"):
        LearnedSampler(8)
    assert LearnedSampler(7)._total == 7


WEIGHTS = np.float32([4, 0, 1, 3])


def test_fixed_ones_by_their_weights() -> None:
    """A slot for each class, shared between it and another one: each has its share of all of them."""
    sampler = FixedUnigramSampler(WEIGHTS)
    share = np.zeros(4)
    for slot in range(4):
        kept = float(sampler._share[slot])
        share[slot] += kept / 4
        share[int(sampler._other[slot])] += (1 - kept) / 4
    np.testing.assert_allclose(share, WEIGHTS / 8, atol=1e-6)
    np.testing.assert_allclose(sampler.probability(np.int64([[0, 1], [2, 3]])), [[0.5, 0], [0.125, 0.375]])
    # the first word says which part of the slot, the second one which slot; 2³² is a multiple of four
    low, high = 0, 0x7FFFFF
    for slot in range(4):
        assert sampler._sample(words_of([low, slot])) == (slot if sampler._share[slot] > 0 else sampler._other[slot])
        assert sampler._sample(words_of([high, slot])) == (slot if sampler._share[slot] == 1 else sampler._other[slot])


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS[:3]])
def test_many_fixed_ones_at_once(weights: Any) -> None:
    """Three classes, too: of 2³² a power of two leaves nothing of the upper word."""
    sampler = FixedUnigramSampler(weights)
    block = np.array([[0x800000 | 0x7FFFFF, 1, 1, 9], [1, 3, 0, 9], [0x7FFFFF, 2, 5, 9], [0, 1, 1, 9]], np.uint32)
    sampler._blocks = lambda position, offset, count: block[offset:count]
    expected = []
    for word, low, high, _ in block.tolist():
        slot = (low | high << 32) % len(weights)
        expected.append(slot if (word & 0x7FFFFF) / (1 << 23) < sampler._share[slot] else int(sampler._other[slot]))
    assert sampler.many(POSITION, 4).tolist() == expected


def test_many_fixed_ones_are_drawn_by_their_weights() -> None:
    many = FixedUnigramSampler(WEIGHTS).many(POSITION, 4000)
    np.testing.assert_allclose(np.bincount(many, minlength=4) / 4000, WEIGHTS / 8, atol=0.03)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_fixed_ones_of_equal_weights_share_nothing(count: int) -> None:
    sampler = FixedUnigramSampler(np.full(count, 2.5, np.float32))
    np.testing.assert_allclose(sampler._share, 1)


def test_what_is_drawn_until_there_are_enough() -> None:
    found, tries = FixedUnigramSampler(WEIGHTS).draw(POSITION, 3, unique=True)
    assert sorted(found.tolist()) == [0, 2, 3]
    assert tries >= 3
    repeated, count = FixedUnigramSampler(WEIGHTS).draw(POSITION, tries, unique=False)
    assert count == tries
    assert list(dict.fromkeys(repeated.tolist())) == found.tolist()
    assert len(set(repeated[:-1].tolist())) == 2


def test_a_class_that_is_never_drawn_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_candidates, "_MOST_MISSES", 50)
    with pytest.raises(errors.InvalidArgumentError, match=r"^4 different candidates were not found in (\d+) tries"):
        FixedUnigramSampler(WEIGHTS).draw(POSITION, 4, unique=True)
    monkeypatch.setattr(random_candidates, "_MOST_MISSES", 1 << 20)
    monkeypatch.setattr(random_candidates, "MOST_TRIES", 30)
    with pytest.raises(errors.InvalidArgumentError, match=r"^4 different candidates were not found in 31 tries"):
        FixedUnigramSampler(WEIGHTS).draw(POSITION, 4, unique=True)


def test_misses_count_in_a_row_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two misses in a row are the most: what comes is new, old, old, new, old, old, new."""
    monkeypatch.setattr(random_candidates, "_MOST_MISSES", 2)
    sampler = UniformSampler(8)
    drawn = iter([1, 1, 1, 2, 1, 1, 3])
    monkeypatch.setattr(sampler, "_sample", lambda words: next(drawn))
    found, tries = sampler.draw(POSITION, 3, unique=True)
    assert (found.tolist(), tries) == ([1, 2, 3], 7)
    drawn = iter([1, 1, 1, 1, 2])
    with pytest.raises(errors.InvalidArgumentError, match="2 different candidates were not found in 4 tries"):
        sampler.draw(POSITION, 2, unique=True)


@pytest.mark.parametrize("make", [UniformSampler, LogUniformSampler, LearnedSampler])
@pytest.mark.parametrize("wrong", [-1, 10, 11])
def test_classes_out_of_range(make: Any, wrong: int) -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=rf"^`true_candidate` out of range \[0, 10\), received {wrong}$"
    ):
        make(10).sample(POSITION, np.int64([[0, 9], [wrong, 3]]), 2, False)
    make(10).sample(POSITION, np.int64([[0, 9]]), 2, False)


def test_the_log_uniform_one_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = LogUniformSampler(50)
    monkeypatch.setattr(sampler, "_log_uniform", lambda *given: compiled.MOST_TRIES + 1)
    with pytest.raises(errors.InvalidArgumentError, match=f"^5 different candidates .* in {compiled.MOST_TRIES} tries"):
        sampler.sample(POSITION, np.int64([[0]]), 5, True)
    monkeypatch.setattr(sampler, "_log_uniform", lambda *given: compiled.MOST_TRIES)
    sampler.sample(POSITION, np.int64([[0]]), 5, True)


# ---- ops -------------------------------------------------------------------------------------------------------------


def test_the_next_call_goes_on_in_the_stream(ops: Any) -> None:
    attrs = {"num_true": 1, "num_sampled": 4, "unique": False, "range_max": 1 << 30, "seed": 3, "seed2": 4}
    true = np.int64([[1]])
    compute, _ = ops.build("UniformCandidateSampler", [true], attrs)
    first, second = compute(true)[0], compute(true)[0]
    for found, place in ((first, 0), (second, 2048 * 4 // 4)):
        stream = Philox(3, 4 << 64).behind(place).single()
        assert found.tolist() == [(next(stream) | next(stream) << 32) % (1 << 30) for _ in range(4)]


@pytest.mark.parametrize("op", ["LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"])
def test_a_learned_node_remembers(ops: Any, op: str) -> None:
    attrs = {"num_true": 2, "num_sampled": 3, "unique": False, "range_max": 4, "seed": 3, "seed2": 4}
    true = np.int64([[1, 3]])
    compute, _ = ops.build(op, [true], attrs)
    np.testing.assert_allclose(compute(true)[1], [[3 / 4, 3 / 4]])
    np.testing.assert_allclose(compute(true)[1], [[3 * 2 / 6, 3 * 2 / 6]])


def test_given_weights_are_distorted_and_shared_between_nodes(ops: Any) -> None:
    def chances(count: int, **attrs: Any) -> list[float]:
        true = [[i] for i in range(count)]
        found = sampled("FixedUnigramCandidateSampler", ops, true, num_sampled=1, range_max=count, **attrs)
        return [round(float(p), 6) for p in found[1][:, 0]]

    assert chances(2, unigrams=[1.0, 3.0]) == [0.25, 0.75]
    assert chances(2, unigrams=[1.0, 3.0], distortion=2.0) == [0.1, 0.9]
    assert chances(2, unigrams=[1.0, 3.0], distortion=0.0) == [0.5, 0.5]
    assert chances(4, unigrams=[1.0, 3.0], num_reserved_ids=2) == [0, 0, 0.25, 0.75]
    shards = {"unigrams": [1.0, 2.0, 3.0, 4.0, 5.0], "num_shards": 2}
    assert chances(3, **shards, shard=0) == [round(w / 9, 6) for w in (1, 3, 5)]
    assert chances(2, **shards, shard=1) == [round(w / 6, 6) for w in (2, 4)]
    # of three reserved numbers one is of shard 1, and the weights are numbered from 1 on, as in TensorFlow
    assert chances(4, **shards, shard=1, num_reserved_ids=3) == [0, *(round(w / 9, 6) for w in (1, 3, 5))]


def test_weights_of_a_file(ops: Any, tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_bytes(b"the,1\r\na,b,3\n\xff,0.5\n")
    found = sampled(
        "FixedUnigramCandidateSampler", ops, [[0], [1], [2]], range_max=3, num_sampled=1, vocab_file=str(path)
    )
    np.testing.assert_allclose(found[1][:, 0], np.array([1, 3, 0.5]) / 4.5, rtol=1e-6)
    path.write_text("the,1\nof\n")
    with pytest.raises(errors.InvalidArgumentError, match=r"^Wrong vocabulary format at line: of$"):
        sampled("FixedUnigramCandidateSampler", ops, range_max=2, vocab_file=str(path))
    with pytest.raises(errors.NotFoundError, match="missing"):
        sampled("FixedUnigramCandidateSampler", ops, range_max=2, vocab_file=str(tmp_path / "missing"))


FIXED, UNIFORM = "FixedUnigramCandidateSampler", "UniformCandidateSampler"


@pytest.mark.parametrize(
    ("op", "true", "attrs", "text"),
    [
        (FIXED, [[1]], {}, "^Must provide either vocab_file or unigrams"),
        (FIXED, [[1]], {"vocab_file": "x", "unigrams": [1.0]}, "^Must only provide one of vocab_file and unigrams"),
        (FIXED, [[1]], {"unigrams": [1.0, 2.0]}, "^range is 10 must be equal to weights size  2"),
        (FIXED, [[1]], {"unigrams": [1.0], "range_max": 2, "num_reserved_ids": -1}, "num_reserved_ids is -1"),
        (FIXED, [[1]], {"unigrams": [1.0], "range_max": 2, "num_reserved_ids": 3}, "num_reserved_ids is 3; range_max"),
        (FIXED, [[1]], {"unigrams": [1.0, -2.0], "range_max": 2}, "must be finite, >= 0 and not all 0"),
        (FIXED, [[1]], {"unigrams": [0.0, 0.0], "range_max": 2}, "must be finite, >= 0 and not all 0"),
        (FIXED, [[1]], {"unigrams": [1.0, np.inf], "range_max": 2}, "must be finite, >= 0 and not all 0"),
        (FIXED, [[1]], {"range_max": 2, "num_reserved_ids": 2, "unigrams": [1.0]}, "must be equal to weights size  3"),
        (UNIFORM, [[1]], {"unique": True, "num_sampled": 11}, "^Sampler's range is too small"),
        (UNIFORM, [[1]], {"num_true": 2}, "^true_classes must have num_true columns, expected: 1 was: 2"),
        (UNIFORM, [[[1]]], {"num_true": 1}, "^true_classes must be a matrix"),
        ("LearnedUnigramCandidateSampler", [[1]], {"range_max": (1 << 31) - 1}, "range_max must be less than 2147"),
    ],
)  # fmt: skip
def test_what_is_refused(ops: Any, op: str, true: Any, attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        sampled(op, ops, true, **attrs)


def test_as_many_as_there_are_may_be_wanted_once_each(ops: Any) -> None:
    for op in (UNIFORM, "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler"):
        found = sampled(op, ops, unique=True, num_sampled=10)
        assert sorted(found[0].tolist()) == list(range(10))
        assert sampled(op, ops, unique=False, num_sampled=30)[0].shape == (30,)


def test_all_candidates(ops: Any) -> None:
    def run(true: Any, **attrs: Any) -> Any:
        given = {"num_true": 2, "num_sampled": 3, "unique": True, **attrs}
        return ops.run("AllCandidateSampler", [np.array(true, np.int64)], **given)

    found, true, drawn = run([[0, 2]])
    assert (found.tolist(), true.tolist(), drawn.tolist()) == ([0, 1, 2], [[1, 1]], [1, 1, 1])
    for wrong in (3, -1):
        with pytest.raises(errors.InvalidArgumentError, match=rf"out of range \[0, 3\), received {wrong}"):
            run([[0, wrong]])
    with pytest.raises(errors.InvalidArgumentError, match="expected: 2 was: 1"):
        run([[0, 2]], num_true=1)


def test_hits_by_accident(ops: Any) -> None:
    def run(true: Any, drawn: Any, count: int = 2) -> Any:
        return ops.run("ComputeAccidentalHits", [np.array(true, np.int64), np.array(drawn, np.int64)], num_true=count)

    rows, places, weights = run([[5, 1], [2, 5]], [7, 5, 2, 5])
    assert rows.tolist() == [0, 1, 1]
    assert places.tolist() == [3, 2, 3]
    assert weights.tolist() == [-float(np.finfo(np.float32).max)] * 3
    assert [each.shape for each in run([[5, 1]], [])] == [(0,)] * 3
    for true in ([1, 2], [[1], [2]]):
        with pytest.raises(
            errors.InvalidArgumentError, match=r"^true_candidates must be a batch_size \* num_true matrix"
        ):
            run(true, [1])
    with pytest.raises(errors.InvalidArgumentError, match=r"^sampled_candidates must be a vector"):
        run([[1, 2]], [[1]])


def test_slots_are_shared_in_the_order_that_tensorflow_shares_them() -> None:
    """The last heavy class gives to the last light one; one of exactly its share is heavy, and lacks what it gave."""
    sampler = FixedUnigramSampler(np.float32([4, 2, 1, 1]))
    assert sampler._share.tolist() == [1, 0.5, 0.5, 0.5]
    assert sampler._other.tolist() == [0, 0, 0, 1]


def test_memory_is_asked_for_before_it_is_taken(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(random_candidates, "allow", lambda dims, dtype, times: asked.append((*dims, times)))
    sampled("LearnedUnigramCandidateSampler", ops, num_sampled=7)
    ops.run("AllCandidateSampler", [np.int64([[1]])], num_true=1, num_sampled=3, unique=True)
    assert asked == [(7, 8), (10, 4), (3, 2)]
