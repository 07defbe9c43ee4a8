"""word2vec's operations of 2016: what Skipgram reads, counts and refuses; what NegTrain moves. See test_nn_norm.py."""

from __future__ import annotations

import math
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_kernels import philox
from tenfold_kernels.cpu import nn_words
from tenfold_kernels.cpu._compiled import word_vectors
from tenfold_kernels.cpu.random import blocks
from tenfold_kernels.cpu.random_candidates import Words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def text(folder: Path, words: str = "a b c a b a " * 20) -> str:
    path = folder / "text"
    path.write_text(words)
    return str(path)


def skipgram(ops: SimpleNamespace, path: str, **attrs: Any) -> Any:
    values = {"batch_size": 8, "window_size": 2, "min_count": 1, "subsample": 0.0, **attrs}
    return ops.build("Skipgram", [], {"filename": path.encode(), **values})[0]


def test_the_vocabulary_is_in_order_of_frequency_behind_the_rare_words(ops: SimpleNamespace, tmp_path: Path) -> None:
    words, counts, size, epoch, processed, examples, labels = skipgram(ops, text(tmp_path), min_count=30)()

    assert words.tolist() == [b"UNK", b"a", b"b"]
    assert counts.tolist() == [20, 60, 40]
    assert size == 120
    assert epoch >= 1
    assert processed > 0
    assert examples.shape == labels.shape == (8,)
    assert {*examples.tolist(), *labels.tolist()} <= {0, 1, 2}


def test_pairs_stand_within_the_window_of_each_other(ops: SimpleNamespace, tmp_path: Path) -> None:
    path = text(tmp_path, " ".join(f"w{i:04d}" for i in range(1000)))
    *_, examples, labels = skipgram(ops, path, batch_size=900, window_size=3)()

    # equally frequent words have numbers in the order of the text
    apart = np.abs(examples - labels)
    assert (apart > 0).all()
    assert (apart <= 3).all()
    assert set(apart.tolist()) == {1, 2, 3}


def test_a_text_is_taken_apart_in_pieces(ops: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = text(tmp_path)
    whole = skipgram(ops, path)()
    monkeypatch.setattr(nn_words, "_PIECE", 7)

    pieces = skipgram(ops, path)()

    assert [np.asarray(value).tolist() for value in pieces] == [np.asarray(value).tolist() for value in whole]


def test_frequent_words_are_left_out_more_often(ops: SimpleNamespace, tmp_path: Path) -> None:
    path = text(tmp_path, " ".join(["the"] * 900 + [f"w{i}" for i in range(100)]))
    every = skipgram(ops, path, batch_size=3000)()[5]
    some = skipgram(ops, path, batch_size=3000, subsample=1e-2)()[5]

    assert np.mean(every == 1) > 0.7
    assert np.mean(some == 1) < 0.6


def test_a_batch_of_more_pairs_than_are_made_at_a_time(ops: SimpleNamespace, tmp_path: Path) -> None:
    path = text(tmp_path)
    at_once = skipgram(ops, path, batch_size=7000)()[5]
    step = skipgram(ops, path, batch_size=1000)
    in_steps = np.concatenate([step()[5] for _ in range(7)])

    assert at_once.tolist() == in_steps.tolist()


@pytest.mark.parametrize(
    ("attrs", "words"),
    [
        ({"window_size": 13}, "contains too little data: 120 words"),
        ({"window_size": 0}, "window_size at least 1, got 8 and 0"),
        ({"window_size": -(1 << 63)}, "window_size at least 1"),
        ({"window_size": (1 << 63) - 1}, "too little data"),
        ({"batch_size": -1}, "batch_size must be at least 0"),
        ({"subsample": 1e-30}, "fewer than one in 4096"),
    ],
)
def test_attributes_that_nothing_can_be_made_of(
    ops: SimpleNamespace, tmp_path: Path, attrs: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=words):
        skipgram(ops, text(tmp_path), **attrs)()


def test_a_batch_that_no_memory_holds(ops: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises((errors.ResourceExhaustedError, errors.InvalidArgumentError)):
        skipgram(ops, text(tmp_path), batch_size=1 << 50)


def test_a_text_that_is_not_there(ops: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="nowhere"):
        skipgram(ops, str(tmp_path / "nowhere"))()


def moved(tables: list[Any], pairs: list[tuple[int, int]], samples: list[list[int]], rate: float) -> list[Any]:
    """By the formulas, in double."""
    inner, outer = (table.astype(np.float64) for table in tables)
    for (word, label), row in zip(pairs, samples, strict=True):
        change = np.zeros(inner.shape[1])
        for other, wanted in [(label, 1.0), *((sample, 0.0) for sample in row if sample != label)]:
            slope = rate * (wanted - 1 / (1 + math.exp(-float(inner[word] @ outer[other]))))
            change += slope * outer[other]
            outer[other] += slope * inner[word]
        inner[word] += change
    return [inner, outer]


@pytest.mark.parametrize("loop", ["compiled", "stand-in"])
def test_the_loop_and_its_stand_in_follow_the_formulas(loop: str) -> None:
    rng = np.random.default_rng(1)
    tables = [rng.standard_normal((6, 5)).astype(np.float32) for _ in range(2)]
    pairs = rng.integers(0, 6, (10, 2)).astype(np.int32)
    samples = rng.integers(0, 6, (10, 4)).astype(np.int32)
    wanted = moved(tables, pairs.tolist(), samples.tolist(), 0.2)
    run = word_vectors.negative_sampling() if loop == "compiled" else word_vectors._in_python
    examples, labels = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    bad = run(*tables, examples, labels, samples.reshape(-1), np.float32(0.2), np.empty(5, np.float32))

    assert bad == -1
    np.testing.assert_allclose(tables[0], wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tables[1], wanted[1], rtol=1e-5, atol=1e-6)


def neg_train(ops: SimpleNamespace, counts: list[int], samples: int, inner: Any, outer: Any) -> Any:
    tables = ops.variable(inner, dtypes.float32), ops.variable(outer, dtypes.float32)
    empty = np.zeros(0, np.int32)
    attrs = {"vocab_count": counts, "num_negative_samples": samples}
    step = ops.build("NegTrain", [*tables, empty, empty, np.array(0, np.float32)], attrs)[0]
    return tables, lambda examples, labels, rate=0.5: step(
        *tables, np.array(examples, np.int32), np.array(labels, np.int32), np.asarray(rate, np.float32)
    )


def test_training_brings_the_vectors_of_a_pair_together(ops: SimpleNamespace) -> None:
    rng = np.random.default_rng(2)
    (inner, outer), step = neg_train(
        ops, [5, 4, 3, 2], 3, rng.standard_normal((4, 8)).astype(np.float32), np.zeros((4, 8), np.float32)
    )

    for _ in range(50):
        step([0, 1], [1, 0])

    products = inner.buffer() @ outer.buffer().T
    assert products[0, 1] > 1
    assert products[0, 2] < 0


def test_samples_come_as_often_as_their_words_to_the_power_of_three_quarters() -> None:
    from tenfold_kernels import philox
    from tenfold_kernels.cpu.random_candidates import FixedUnigramSampler

    weights = np.array([16, 1, 0, 81], np.float32) ** np.float32(0.75)

    drawn = FixedUnigramSampler(weights).many(philox.Philox(3, 4), 40_000)

    shares = np.bincount(drawn, minlength=4) / 40_000
    np.testing.assert_allclose(shares, [8 / 36, 1 / 36, 0, 27 / 36], atol=0.01)


@pytest.mark.parametrize(
    ("counts", "samples", "given", "words"),
    [
        ([1, 1, 1], 1, ([0], [0]), "vocab_size mismatches: 2 vs. 3"),
        ([1, 1], 1, ([2], [0]), r"indices\[0\] = 2 is not in \[0, 2\)"),
        ([1, 1], 1, ([0, 1], [0, -1]), r"indices\[1\] = -1 is not in \[0, 2\)"),
        ([1, 1], 1, ([0, 1], [0]), "examples.shape == labels.shape"),
        ([1, 1], 1, ([[0]], [[0]]), "examples must be a vector"),
        ([1, 1], 1, ([0], [0], [0.5]), "lr must be a scalar"),
    ],
)
def test_what_a_step_refuses_leaves_the_tables_as_they_were(
    ops: SimpleNamespace, counts: list[int], samples: int, given: Any, words: str
) -> None:
    ones = np.ones((2, 3), np.float32)
    tables, step = neg_train(ops, counts, samples, ones.copy(), ones.copy())

    with pytest.raises(errors.InvalidArgumentError, match=words):
        step(*given)

    assert all((table.buffer() == 1).all() for table in tables)


@pytest.mark.parametrize("counts", [[0, 0], [-1, 5]])
def test_counts_of_words_that_nothing_can_be_drawn_by(ops: SimpleNamespace, counts: list[int]) -> None:
    ones = np.ones((2, 3), np.float32)
    with pytest.raises(errors.InvalidArgumentError, match="vocab_count must have"):
        neg_train(ops, counts, 1, ones, ones)


def test_steps_of_two_threads_on_the_same_tables_end(ops: SimpleNamespace) -> None:
    """… in whichever order the tables are named."""
    ones = np.ones((2, 3), np.float32)
    (inner, outer), step = neg_train(ops, [1, 1], 1, ones.copy(), ones.copy())
    empty = np.zeros(0, np.int32)
    attrs = {"vocab_count": [1, 1], "num_negative_samples": 1}
    turned = ops.build("NegTrain", [outer, inner, empty, empty, np.array(0, np.float32)], attrs)[0]
    pair, rate = np.array([0], np.int32), np.array(0.01, np.float32)

    def many() -> None:
        for _ in range(500):
            turned(outer, inner, pair, pair, rate)

    thread = threading.Thread(target=many)
    thread.start()
    for _ in range(500):
        step([0], [0], 0.01)
    thread.join(60)

    assert not thread.is_alive()
    assert np.isfinite(inner.buffer()).all()


#: A text of rare and frequent words, some of them equally frequent.
TEXT = [f"w{n}" for n in np.random.default_rng(8).geometric(0.12, 700).tolist()]


def vocabulary(least: int) -> tuple[list[str], list[int], list[int]]:
    """The words behind UNK, how often all of them come, and the text as numbers."""
    often = {word: TEXT.count(word) for word in dict.fromkeys(TEXT)}
    known = [word for word in sorted(often, key=lambda word: -often[word]) if often[word] >= least]
    numbers = [known.index(word) + 1 if word in known else 0 for word in TEXT]
    return known, [numbers.count(n) for n in range(len(known) + 1)], numbers


def pairs(numbers: list[int], window: int, kept: list[float] | None) -> Iterator[tuple[int, int, int, int]]:
    """Example, label, epoch and the number of words so far, one pair after the other, from TensorFlow's stream."""
    words = Words(philox.Philox(0, 0), lambda position, offset, count: blocks(position.behind(offset), count))
    epoch, at, processed = -1, len(numbers), 0
    while True:
        sentence: list[int] = []
        while len(sentence) < 1000:
            if at == len(numbers):
                epoch, at = epoch + 1, 0
            if kept is None or words.fraction() <= kept[numbers[at]]:
                sentence.append(numbers[at])
            at += 1
        for center, word in enumerate(sentence):
            processed += 1
            reach = 1 + words.below(window)
            for other in range(max(center - reach, 0), min(center + reach + 1, 1000)):
                if other != center:
                    yield word, sentence[other], epoch, processed


@pytest.mark.parametrize(
    ("window", "least", "subsample", "batch"), [(1, 1, 0.0, 500), (4, 9, 0.01, 1100), (70, 5, 0.5, 3000)]
)
def test_the_stream_of_pairs(
    ops: SimpleNamespace, tmp_path: Path, window: int, least: int, subsample: float, batch: int
) -> None:
    known, counts, numbers = vocabulary(least)
    rate = subsample * len(numbers)
    kept = [(math.sqrt(n / rate) + 1) * rate / n if n else 9.0 for n in counts] if subsample else None
    path = text(tmp_path, " ".join(TEXT))
    step = skipgram(ops, path, window_size=window, min_count=least, subsample=subsample, batch_size=batch)
    stream, taken = pairs(numbers, window, kept), 0
    made = [next(stream) for _ in range(3000)]

    for _ in range(7):
        words, frequencies, size, epoch, processed, examples, labels = step()
        assert words.tolist() == [b"UNK", *(word.encode() for word in known)]
        assert (frequencies.tolist(), size.tolist()) == (counts, len(TEXT))
        taken += batch
        while len(made) < taken // 3000 * 3000 + 3000:
            made.append(next(stream))
        expected = made[taken - batch : taken]
        assert list(zip(examples.tolist(), labels.tolist(), strict=True)) == [pair[:2] for pair in expected]
        assert (epoch.tolist(), processed.tolist()) == made[-1][2:]
        assert [each.dtype for each in (frequencies, size, epoch, processed, examples, labels)] == [
            np.int32, np.int64, np.int32, np.int64, np.int32, np.int32
        ]  # fmt: skip
        assert not words.flags.writeable
        assert not frequencies.flags.writeable


def test_bounds_of_a_text_and_its_pairs(ops: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = text(tmp_path)
    assert skipgram(ops, path, window_size=12)()[2] == 120
    assert skipgram(ops, path, window_size=1, batch_size=0)()[5].shape == (0,)
    assert skipgram(ops, path, min_count=40)()[0].tolist() == [b"UNK", b"a", b"b"]
    assert skipgram(ops, path, min_count=41)()[0].tolist() == [b"UNK", b"a"]
    usual = ops.build("Skipgram", [], {"filename": path.encode(), "batch_size": 2})[0]()
    assert (usual[0].tolist(), usual[5].size) == ([b"UNK", b"a", b"b", b"c"], 2)
    assert_wants(monkeypatch, 77 * 4 * 32, lambda: skipgram(ops, path, batch_size=77))
    one = SimpleNamespace(numbers=range(1000), counts=np.array([0, 1000], np.int32))
    assert nn_words._Pairs._shares(one, 6.0e-8)[1] == pytest.approx(6.0e-8**0.5, rel=1e-3)
    with pytest.raises(errors.InvalidArgumentError, match="fewer than one in 4096"):
        nn_words._Pairs._shares(one, 5.9e-8)
    for rare, fits in ((12_000, False), (15_000, True)):  # a word is kept once at most, however rare
        counts = np.array([0, 10**8, *[1] * rare], np.int32)
        text_of_them = SimpleNamespace(numbers=range(10**8 + rare), counts=counts)
        if fits:
            assert nn_words._Pairs._shares(text_of_them, 1e-8)[2] == pytest.approx(2, rel=1e-3)
            continue
        with pytest.raises(errors.InvalidArgumentError, match="fewer than one in 4096"):
            nn_words._Pairs._shares(text_of_them, 1e-8)
    assert list(nn_words._words_of(b"")) == []
    monkeypatch.setattr(nn_words, "_PIECE", 4)
    for given in (b"abcd efgh", b"abc defgh i", b"abcdefgh", b"abcd\nefg\t", b"    a", b"a   b    c"):
        assert [word for piece in nn_words._words_of(given) for word in piece] == given.split()
    assert [len(piece) for piece in nn_words._words_of(b"a b c d e f")] == [3, 2, 1]


def test_what_a_step_hands_to_its_loop(ops: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    taken: list[bool] = []

    def loop(*given: Any) -> int:
        calls.append(given)
        for variable in tables:
            thread = threading.Thread(target=lambda held=variable: taken.append(held.lock.acquire(blocking=False)))
            thread.start()
            thread.join()
        return -1

    monkeypatch.setattr(word_vectors, "negative_sampling", lambda: loop)
    ones = np.ones((2, 3), np.float32)
    tables, step = neg_train(ops, [0, 3], 5, ones, 2 * ones)
    step([0, 1, 1], [1, 0, 0], 0.25)
    inner, outer, examples, labels, samples, rate, room = calls.pop()
    assert (inner.tolist(), outer.tolist()) == (ones.tolist(), (2 * ones).tolist())
    assert (examples.tolist(), labels.tolist(), rate, room.shape) == ([0, 1, 1], [1, 0, 0], 0.25, (3,))
    assert (samples.tolist(), samples.dtype, room.dtype) == ([1] * 15, np.int32, np.float32)
    assert taken == [False, False], "both tables are locked meanwhile"
    assert_wants(monkeypatch, 3 * 5 * 8 * 8, lambda: step([0, 1, 1], [1, 0, 0]))
    for none in (0, -2):
        tables, step = neg_train(ops, [0, 0], none, ones, ones)
        step([0], [0])
        assert calls.pop()[4].size == 0
    whole = ops.variable(ones, dtypes.float32)
    pair, half = np.array([1], np.int32), np.array(0.5, np.float32)
    attrs = {"vocab_count": [1, 1], "num_negative_samples": 1}
    ops.build("NegTrain", [whole, whole, pair, pair, half], attrs)[0](whole, whole, pair, pair, half)
    assert np.may_share_memory(*calls.pop()[:2])


@pytest.mark.parametrize(
    ("inner", "outer", "given", "words"),
    [
        ((2,), (2,), ([0], [0]), r"^w_in and w_out must be matrices of one shape, got \[2\] and \[2\]$"),
        ((2, 3), (3, 2), ([0], [0]), r"^w_in and w_out must be matrices of one shape, got \[2,3\] and \[3,2\]$"),
        ((3, 3), (3, 3), ([0], [0]), "^vocab_size mismatches: 3 vs. 2$"),
        ((2, 3), (2, 3), ([-1], [0]), r"indices\[0\] = -1 is not in \[0, 2\)"),
        ((2, 3), (2, 3), ([0], [5]), r"indices\[0\] = 5 is not in \[0, 2\)"),
        ((2, 3), (2, 3), ([1], [2]), r"indices\[0\] = 2 is not in \[0, 2\)"),
    ],
)
def test_tables_and_words_that_do_not_fit(
    ops: SimpleNamespace, inner: tuple[int, ...], outer: tuple[int, ...], given: Any, words: str
) -> None:
    _, step = neg_train(ops, [1, 1], 1, np.ones(inner, np.float32), np.ones(outer, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match=words):
        step(*given)
