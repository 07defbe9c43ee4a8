"""Numbers of every kind and type against the stream that they are made of, by one call and by many calls at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels import philox
from tenfold_kernels.cpu import random
from tenfold_kernels.philox import Generator, Philox

#: The stream of seed 3 and seed2 4.
STREAM = Philox(3, 4 << 64)
BFLOAT16 = dtypes.bfloat16.as_numpy_dtype
TYPES = (np.float16, np.float32, np.float64, BFLOAT16)


def stream(count: int, behind: int = 0) -> Any:
    """The words of so many blocks: uint32 [count, 4]."""
    return STREAM.blocks(np.arange(behind, behind + count, dtype=np.uint64))


def uniforms(words: Any, kind: Any) -> Any:
    """What words mean, in [0, 1): by the bits of a mantissa each, two words for a wide one."""
    flat = words.reshape(-1).astype(np.uint64)
    if kind == np.float64:
        return ((flat[0::2] & np.uint64(0xFFFFF)) * 2.0**32 + flat[1::2]) / 2.0**52
    bits = {np.dtype(np.float16): 10, np.dtype(np.float32): 23}.get(np.dtype(kind), 7)
    return ((flat & np.uint64((1 << bits) - 1)) / 2.0**bits).astype(kind)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 9, 4 * philox.PIECE + 3])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_uniform_numbers_of_every_type(kind: Any, size: int) -> None:
    found = random.uniform(STREAM, size, kind)
    assert found.dtype == kind
    whole = {np.float64: 2}.get(kind, 4)
    assert found.flags.owndata or size > whole, "a part of a block is no view of the whole"
    np.testing.assert_array_equal(found, uniforms(stream(-(-size // 2)), kind)[:size])


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_normal_numbers_of_every_type(kind: Any) -> None:
    size = 1001
    wide = kind == np.float64
    words = stream(-(-size // (2 if wide else 4)))
    expected = philox.normal_double(words) if wide else philox.normal_float(words)
    found = random.normal(STREAM, size, kind)
    assert (found.dtype, found.shape) == (kind, (size,))
    np.testing.assert_array_equal(found, expected.reshape(-1)[:size].astype(kind))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_truncated_normals_take_the_next_that_is_near(kind: Any) -> None:
    """Group after group: each has 256 blocks a number to itself, and takes normals inside ±2 in their order."""
    group, draw, skip = (2, philox.normal_double, 128) if kind == np.float64 else (4, philox.normal_float, 256)
    size = 400 * group - 1
    expected: list[float] = []
    for g in range(400):
        inside: list[float] = []
        block = 0
        while len(inside) < group:
            candidates = draw(stream(1, g * skip + block))[0]
            inside += [float(n) for n in candidates if abs(n) < 2]
            block += 1
        expected += inside[:group]
    found = random.truncated_normal(STREAM, size, kind)
    assert (found.dtype, found.shape) == (kind, (size,))
    np.testing.assert_array_equal(found, np.array(expected[:size]).astype(kind))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 9])
def test_integers_are_words_or_pairs_of_them(size: int) -> None:
    words = stream(6).reshape(-1)
    for kind in (np.int32, np.uint32):
        assert random.full_ints(STREAM, size, kind).tolist() == words[:size].view(kind).tolist()
    for kind in (np.int64, np.uint64):
        assert random.full_ints(STREAM, size, kind).tolist() == words.view(kind)[:size].tolist()
    assert random.ints(STREAM, size, np.int32, -3, 4).tolist() == [int(w) % 7 - 3 for w in words[:size]]
    longs = words.view(np.uint64)[:size]
    low, high = -(1 << 63), (1 << 63) - 1
    assert random.ints(STREAM, size, np.int64, low, high).tolist() == [int(w) % (high - low) + low for w in longs]
    assert random.ints(STREAM, size, np.int64, 1 << 40, (1 << 40) + 5).tolist() == [
        int(w) % 5 + (1 << 40) for w in longs
    ]


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("shape", [[2, 3], [], [5], [0, 2], [1025]], ids=str)
@pytest.mark.parametrize("op", ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"])
def test_rows_are_the_next_calls(ops: Any, op: str, shape: list[int], kind: Any) -> None:
    attrs = {"dtype": dtypes.as_dtype(kind), "seed": 3, "seed2": 4}
    given = np.array(shape, np.int32)
    one, many = (ops.build(op, [given], attrs)[0] for _ in range(2))
    calls = [one(given) for _ in range(6)]
    found = [many(given), *many.rows(3, [given], [False])[0], many(given), *many.rows(1, [given], [False])[0]]
    for ours, expected in zip(found, calls, strict=True):
        assert ours.shape == tuple(shape)
        assert ours.dtype == expected.dtype == kind
        np.testing.assert_array_equal(ours, expected)
    assert many.rows(2, [given], [True]) is None


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [[2, 3], [], [0], [1, 1, 7]], ids=str)
def test_rows_of_integers_are_the_next_calls(ops: Any, shape: list[int], kind: Any) -> None:
    given = [np.array(shape, np.int32), np.array(-5, kind), np.array(1000, kind)]
    one, many = (ops.build("RandomUniformInt", given, {"seed": 3, "seed2": 4})[0] for _ in range(2))
    calls = [one(*given) for _ in range(9)]
    found = [many(*given)]
    for count in (4, 1, 2):
        found += [*many.rows(count, given, [False] * 3)[0]]
    found.append(many(*given))
    for ours, expected in zip(found, calls, strict=True):
        assert ours.dtype == expected.dtype == kind
        assert ours.shape == tuple(shape)
        assert ours.tolist() == expected.tolist()
    assert many.rows(2, given, [False, True, False]) is None


def test_limits_are_looked_at_only_where_numbers_are_asked_for(ops: Any) -> None:
    def run(shape: list[int], low: Any, high: Any) -> Any:
        return ops.run("RandomUniformInt", [np.array(shape, np.int32), np.int32(low), np.int32(high)], seed=1)

    assert run([0, 3], 5, 5).shape == (0, 3)
    assert run([2], 5, 6).tolist() == [5, 5]
    for low, high in ((5, 5), (6, 5)):
        with pytest.raises(errors.InvalidArgumentError, match=f"^Need minval < maxval, got {low} >= {high}$"):
            run([1], low, high)
    with pytest.raises(errors.InvalidArgumentError, match=r"^maxval must be 0-D, got shape \[1\]$"):
        run([0], 1, [2])


def test_what_would_take_too_much_memory_is_refused(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(dims: Any, dtype: Any, times: int = 1) -> None:
        asked.append((*dims, times))

    monkeypatch.setattr(random, "allow", ask)
    given = np.array([2, 3], np.int32)
    for op in ("RandomUniform", "RandomUniformInt"):
        values = [given] if op == "RandomUniform" else [given, np.int32(0), np.int32(9)]
        attrs = {"seed": 1} if op != "RandomUniform" else {"seed": 1, "dtype": dtypes.float32}
        compute, _ = ops.build(op, values, attrs)
        asked.clear()
        compute.rows(5, values, [False] * len(values))
        assert asked == [(5, 2, 3, random.WORK)], op
    random.multinomial(np.zeros((2, 3)), np.array(7), np.int64, Generator(1, 2).reserve_outputs)
    random.shuffled(np.zeros((5, 2)), Generator(1, 2).reserve)
    assert asked[1:] == [(2, 7, random.WORK), (5, random.WORK)]
    monkeypatch.undo()
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("RandomUniform", [np.array([1 << 40], np.int64)], dtype=dtypes.float32)


# ---- classes ---------------------------------------------------------------------------------------------------------


def classes_of(logits: Any, count: int) -> Any:
    """Number by number: the first class whose sum of weights is beyond the draw."""
    words = stream(2 * len(logits) * count).reshape(-1)
    drawn = uniforms(words, np.float64)[: len(logits) * count].reshape(len(logits), count)
    out = []
    for row, draws in zip(logits, drawn, strict=True):
        weights = [np.exp(n - max(m for m in row if np.isfinite(m))) if np.isfinite(n) else 0.0 for n in row]
        sums = np.cumsum(weights)
        out.append([int(np.sum(sums <= draw * sums[-1])) for draw in draws])
    return out


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_classes_are_drawn_by_their_weights(count: int, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(3, 6)) * 2
    logits[0, 2], logits[1, 0], logits[2, 5] = -np.inf, np.nan, np.inf
    found = random.multinomial(logits, np.array(count), dtype, lambda outputs: STREAM)
    assert found.dtype == dtype
    assert found.tolist() == classes_of(logits, count)
    plain = rng.normal(size=(2, 4)).astype(np.float32) + 50
    assert random.multinomial(plain, np.array(count), dtype, lambda outputs: STREAM).tolist() == classes_of(
        plain, count
    )


def test_a_row_without_weights_gives_what_is_behind_the_last_class() -> None:
    nothing = np.full((1, 3), -np.inf)
    for count in (1, 2):
        assert random.multinomial(nothing, np.array(count), np.int64, lambda outputs: STREAM).tolist() == [[3] * count]


def test_room_for_classes_as_tensorflow_sets_it_aside() -> None:
    asked: list[int] = []

    def reserve(outputs: int) -> Philox:
        asked.append(outputs)
        return STREAM

    for rows, count in ((1, 1), (3, 4), (2, 5), (0, 4), (2, 0)):
        found = random.multinomial(np.zeros((rows, 3)), np.array(count), np.int32, reserve)
        assert (found.shape, found.dtype) == ((rows, count), np.int32)
    assert asked == [8, 24, 32]


def test_few_logits_go_to_the_loop_and_many_to_numpy() -> None:
    given: list[Any] = []

    def pick(key: int, low: int, high: int, logits: Any, out: Any) -> None:
        given.append((key, low, high, logits.dtype, logits.flags.c_contiguous, logits.flags.writeable))
        out[:] = 9

    for width, picked in ((1024, True), (1025, False)):
        logits = np.zeros((1, width), np.float32)
        found = random.multinomial(logits, np.array(2), np.int32, lambda outputs: STREAM, pick)
        assert (found.tolist() == [[9, 9]]) is picked
        assert found.dtype == np.int32
    assert given == [(3, 0, 4, np.float64, True, True)]


@pytest.mark.parametrize(
    ("logits", "count", "text"),
    [
        (np.zeros(3), 1, r"^logits should be a matrix, got shape \[3\]"),
        (np.zeros((2, 3)), [1], r"^num_samples should be a scalar, got shape \[1\]"),
        (np.zeros((2, 3)), -1, "^num_samples should be non-negative, got -1"),
        (np.zeros((2, 0)), 1, "^num_classes should be positive, got 0"),
    ],
)
def test_classes_that_are_refused(ops: Any, logits: Any, count: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("Multinomial", [logits, np.array(count, np.int32)], seed=1)


# ---- rows in another order -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4, 5, 9])
def test_a_shuffle_swaps_from_the_front(size: int) -> None:
    words = stream(3).reshape(-1).tolist()
    order = list(range(size))
    for i in range(size - 1):
        other = i + words[i] % (size - i)
        order[i], order[other] = order[other], order[i]
    asked: list[int] = []

    def reserve(blocks: int) -> Philox:
        asked.append(blocks)
        return STREAM

    rows = np.arange(2 * size).reshape(size, 2)
    assert random.shuffled(rows, reserve).tolist() == rows[order].tolist()
    assert asked == [(size + 3) // 4]


def test_nothing_to_shuffle() -> None:
    def never(blocks: int) -> Philox:
        raise AssertionError(blocks)

    for x in (np.array(5), np.zeros(0), np.array([[1, 2]])):
        found = random.shuffled(x, never)
        assert found.tolist() == x.tolist()
        assert not np.may_share_memory(found, x)


# ---- windows ---------------------------------------------------------------------------------------------------------


def test_a_window_lies_where_the_words_say(ops: Any) -> None:
    image = np.arange(5 * 7 * 2).reshape(5, 7, 2).astype(np.int64)
    words = stream(1)[0].tolist()

    def crop(height: int, width: int) -> Any:
        return ops.run("RandomCrop", [image, np.array([height, width], np.int64)], seed=3, seed2=4)

    left, top = words[0] % 5, words[1] % 4
    assert crop(2, 3).tolist() == image[top : top + 2, left : left + 3].tolist()
    # a side that stays whole takes no word
    left = words[0] % 3
    assert crop(5, 5).tolist() == image[:, left : left + 5].tolist()
    top = words[0] % 4
    assert crop(2, 7).tolist() == image[top : top + 2].tolist()
    assert crop(5, 7).tolist() == image.tolist()


def test_each_window_has_a_block_of_the_stream(ops: Any) -> None:
    image, size = np.arange(1000).reshape(1, 1000, 1), np.array([1, 1], np.int64)
    compute, _ = ops.build("RandomCrop", [image, size], {"seed": 3, "seed2": 4})
    assert [compute(image, size).item() for _ in range(4)] == [int(word) % 1000 for word in stream(4)[:, 0]]


@pytest.mark.parametrize(
    ("shape", "size", "error", "text"),
    [
        ((5, 7), [2, 2], errors.InvalidArgumentError, r"^image must be 3-dimensional, got shape \[5,7\]"),
        ((5, 7, 1), [2], errors.InvalidArgumentError, r"^size must be a vector of size 2, got shape \[1\]"),
        ((5, 7, 1), [2, 2, 2], errors.InvalidArgumentError, r"^size must be a vector of size 2, got shape \[3\]"),
        (
            (5, 7, 1),
            [6, 2],
            errors.FailedPreconditionError,
            "height must be >= target_height: height = 5, target_height = 6",
        ),
        (
            (5, 7, 1),
            [5, 8],
            errors.FailedPreconditionError,
            "width must be >= target_width: width = 7, target_width = 8",
        ),
    ],
)
def test_windows_that_are_refused(ops: Any, shape: Any, size: list[int], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ops.run("RandomCrop", [np.zeros(shape, np.float32), np.array(size, np.int64)], seed=1)


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("RandomShuffle", [np.arange(50)]),
        ("Multinomial", [np.zeros((1, 5)), np.array(20, np.int32)]),
        ("RandomCrop", [np.zeros((90, 90, 1)), np.array([2, 2], np.int64)]),
        ("RandomUniformInt", [np.array([9], np.int32), np.int32(0), np.int32(999)]),
    ],
)
def test_seeds_start_a_stream_and_calls_go_on_in_it(ops: Any, op: str, values: list[Any]) -> None:
    if op == "RandomCrop":
        values = [RNG_IMAGE, values[1]]

    def calls(**seeds: int) -> list[Any]:
        compute, _ = ops.build(op, values, seeds)
        return [compute(*values).tolist() for _ in range(2)]

    first = calls(seed=1, seed2=2)
    assert first == calls(seed=1, seed2=2)
    assert first[0] != first[1]
    assert calls(seed=2, seed2=2) != first
    assert calls(seed=1, seed2=3) != first
    assert calls() != calls()


RNG_IMAGE = np.random.default_rng(3).normal(size=(90, 90, 1))


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_single_floats_and_words_may_come_of_machine_code(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole blocks are asked for; where no block fits NumPy draws, as it always does for other types."""
    asked: list[Any] = []

    def draw(what: str, position: Philox, blocks: int) -> Any:
        asked.append((what, position, blocks))
        return np.full((blocks, 4), 7, np.uint32 if what == philox.WORDS else np.float32)

    def draw_truncated(position: Philox, groups: int, skip: int) -> Any:
        asked.append(("truncated", position, groups, skip))
        return np.full((groups, 4), 7, np.float32)

    monkeypatch.setattr(random.philox_draws, "draw", draw)
    monkeypatch.setattr(random.philox_draws, "draw_truncated", draw_truncated)
    for made in (random.uniform, random.normal, random.truncated_normal):
        found = made(STREAM, 9, kind)
        assert (found.shape, found.dtype) == ((9,), kind)
        assert (found == 7).all() == (kind is np.float32)
    expected = [(philox.UNIFORM, STREAM, 3), (philox.NORMAL, STREAM, 3), ("truncated", STREAM, 3, 256)]
    assert asked == (expected if kind is np.float32 else [])
    asked.clear()
    assert random.blocks(STREAM, 5).tolist() == [[7] * 4] * 5
    assert asked == [(philox.WORDS, STREAM, 5)]
