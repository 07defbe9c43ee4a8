"""Random numbers: TensorFlow's own stream, from published Philox vectors up; and what the distributions look like."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu._compiled import picking
from tenfold_kernels.cpu.random import _pick_in_numpy, multinomial
from tenfold_kernels.cpu.random_candidates import _compiled_blocks
from tenfold_kernels.philox import Generator, Philox

#: Known answers of Philox 4x32-10 (Random123's kat_vectors): counter words, key words, result words.
VECTORS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def _number(words: list[int]) -> int:
    return sum(word << 32 * i for i, word in enumerate(words))


@pytest.mark.parametrize(("counter", "key", "result"), VECTORS)
def test_known_answers(counter: list[int], key: list[int], result: list[int]) -> None:
    position = Philox(_number(key), _number(counter))

    assert position.blocks(np.zeros(1, np.uint64))[0].tolist() == result


def test_the_counter_carries_into_all_four_words() -> None:
    low = (1 << 64) - 1
    position = Philox(5, low)

    assert (
        position.blocks(np.array([1], np.uint64)).tolist() == Philox(5, low + 1).blocks(np.zeros(1, np.uint64)).tolist()
    )


def test_single_values_are_the_blocks_in_order() -> None:
    position = Philox(3, 4)

    assert (
        list(itertools.islice(position.single(), 300))
        == position.blocks(np.arange(75, dtype=np.uint64)).ravel().tolist()
    )


def test_reservations_do_not_overlap() -> None:
    generator = Generator(1, 2)

    first, second = generator.reserve_outputs(3), generator.reserve_outputs(1)

    assert second.counter - first.counter == 3 * 256


#: What TensorFlow 2.21 gives for seed=1, seed2=2, twice five values of float32.
TENSORFLOW = {
    "RandomUniform": [0.40639675, 0.8575996, 0.05539584, 0.08587229, 0.4121536],
    "RandomStandardNormal": [-1.0467793, 0.8397046, 1.2358364, 2.0637853, 0.3037427],
    "TruncatedNormal": [-1.0467793, 0.8397046, 1.2358364, 0.3037427, 0.38869092],
}


@pytest.mark.parametrize("op", TENSORFLOW)
def test_tensorflows_numbers(ops: Any, op: str) -> None:
    result = ops.run(op, [[5]], dtype=dtypes.float32, seed=1, seed2=2)

    np.testing.assert_allclose(result, TENSORFLOW[op], rtol=2e-7)


def test_tensorflows_integers(ops: Any) -> None:
    assert ops.run("RandomUniformInt", [[5], 0, 100], seed=1, seed2=2).tolist() == [99, 15, 2, 9, 31]


@pytest.mark.parametrize("op", TENSORFLOW)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64])
def test_moments_and_bounds(ops: Any, op: str, dtype: dtypes.DType) -> None:
    x = ops.run(op, [[200, 100]], dtype=dtype, seed=7).astype(np.float64)
    mean, deviation, bound = {
        "RandomUniform": (0.5, 0.2887, 1),
        "RandomStandardNormal": (0, 1, 6),
        "TruncatedNormal": (0, 0.8796, 2),
    }[op]

    assert x.shape == (200, 100)
    assert abs(x.mean() - mean) < 0.03
    assert abs(x.std() - deviation) < 0.03
    assert np.abs(x).max() <= bound


def test_each_call_goes_on_in_the_stream(ops: Any) -> None:
    attrs = {"dtype": dtypes.float32, "seed": 3, "seed2": 4}
    compute, _ = ops.build("RandomUniform", [[4]], attrs)
    again, _ = ops.build("RandomUniform", [[4]], attrs)
    shape = np.array([4], np.int32)

    first, second = compute(shape), compute(shape)

    assert not np.array_equal(first, second)
    assert np.array_equal(again(shape), first)
    assert np.array_equal(again(shape), second)


def test_without_seeds_two_nodes_differ(ops: Any) -> None:
    one, two = (ops.run("RandomUniform", [[8]], dtype=dtypes.float32) for _ in range(2))

    assert not np.array_equal(one, two)


@pytest.mark.parametrize("shape", [[], [0], [2, 0, 3], [1], [3]])
def test_shapes(ops: Any, shape: list[int]) -> None:
    for op, dtype in itertools.product(TENSORFLOW, (dtypes.float32, dtypes.float64)):
        assert ops.run(op, [np.array(shape, np.int32)], dtype=dtype, seed=1).shape == tuple(shape)


def test_integers_stay_in_range(ops: Any) -> None:
    for dtype, low, high in ((np.int32, -(2**31), 2**31 - 1), (np.int64, -(2**63), 2**63 - 1), (np.int64, -5, -2)):
        x = ops.run("RandomUniformInt", [[1000], np.array(low, dtype), np.array(high, dtype)], seed=1)
        assert low <= x.min() <= x.max() < high


def test_shuffle_is_a_permutation_of_rows(ops: Any) -> None:
    x = np.arange(40).reshape(20, 2)

    result = ops.run("RandomShuffle", [x], seed=1)

    assert sorted(result.tolist()) == x.tolist()
    assert result.tolist() != x.tolist()


def test_multinomial_follows_the_logits(ops: Any) -> None:
    logits = np.array([[np.log(0.7), -np.inf, np.log(0.3)], [-np.inf, 0.0, -np.inf]], np.float32)

    result = ops.run("Multinomial", [logits, 2000], seed=1)

    shares = np.bincount(result[0], minlength=3) / 2000
    assert result.shape == (2, 2000)
    assert abs(shares[0] - 0.7) < 0.05
    assert shares[1] == 0
    assert set(result[1].tolist()) == {1}


@pytest.mark.parametrize(("rows", "count"), [(1, 1), (3, 1), (2, 7)])
def test_few_logits_are_picked_as_many_are(rows: int, count: int) -> None:
    rng = np.random.default_rng(rows)
    logits, samples = rng.normal(size=(rows, 40)).astype(np.float32), np.array(count)
    few, many = Generator(3, 4), Generator(3, 4)
    for _ in range(20):
        picked = multinomial(logits, samples, np.int32, few.reserve_outputs, picking.pick(_pick_in_numpy))
        assert picked.dtype == np.int32
        assert picked.tolist() == multinomial(logits, samples, np.int32, many.reserve_outputs).tolist()


def test_log_uniform_candidates_are_unique(ops: Any) -> None:
    attrs = {"num_true": 1, "num_sampled": 20, "unique": True, "range_max": 50, "seed": 1}

    candidates, true_count, sampled_count = ops.run("LogUniformCandidateSampler", [np.array([[0], [49]])], **attrs)

    assert len(set(candidates.tolist())) == 20
    assert 0 <= candidates.min() <= candidates.max() < 50
    assert true_count.shape == (2, 1)
    assert true_count[0, 0] > true_count[1, 0]
    assert sampled_count.shape == (20,)


@pytest.mark.parametrize("counter", [0, 5, (1 << 64) - 3, (1 << 128) - 2])
def test_compiled_blocks_are_those_of_numpy(counter: int) -> None:
    position = Philox(0xFEDCBA9876543210, counter)

    blocks = _compiled_blocks()(position, 2, 9)

    np.testing.assert_array_equal(blocks, position.blocks(np.arange(2, 11, dtype=np.uint64)))


@pytest.mark.parametrize("op", ["LogUniformCandidateSampler", "UniformCandidateSampler"])
@pytest.mark.parametrize("unique", [True, False])
def test_candidates_come_from_one_stream_of_words(ops: Any, op: str, unique: bool) -> None:
    """As SimplePhilox reads them: more words than are made at a time, and some drawn twice."""
    limit, wanted = 700, 600
    attrs = {"num_true": 1, "num_sampled": wanted, "unique": unique, "range_max": limit, "seed": 3, "seed2": 4}
    words = Philox(3, 4 << 64).single()
    drawn: list[int] = []
    while len(set(drawn) if unique else drawn) < wanted:
        if op == "UniformCandidateSampler":
            number = next(words) | next(words) << 32
            drawn.append(number % limit)  # no draw of a test falls into the few that are drawn again
        else:
            high, low = next(words) & 0xFFFFF, next(words)
            drawn.append((int(math.exp((high << 32 | low) / (1 << 52) * math.log1p(limit))) - 1) % limit)

    candidates, _, expected = ops.run(op, [np.int64([[1]])], **attrs)

    assert candidates.tolist() == (list(dict.fromkeys(drawn)) if unique else drawn)
    if unique and op == "UniformCandidateSampler":
        np.testing.assert_allclose(expected, 1 - (1 - 1 / limit) ** len(drawn), rtol=1e-5)


def test_accidental_hits(ops: Any) -> None:
    true, sampled = np.int64([[1, 2], [3, 4], [2, 9]]), np.int64([2, 5, 9, 2])

    rows, ids, weights = ops.run("ComputeAccidentalHits", [true, sampled], num_true=2)

    assert rows.tolist() == [0, 2, 2]
    assert ids.tolist() == [3, 3, 2]
    assert weights.tolist() == [-np.finfo(np.float32).max] * 3


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "text"),
    [
        ("TruncatedNormal", [[-1]], {"dtype": dtypes.float32}, "^Dimension -1 must be >= 0"),
        (
            "RandomUniform",
            [[[1, 1]]],
            {"dtype": dtypes.float32},
            r"must be a vector of \{int32,int64\}, got shape \[1,2\]$",
        ),
        ("RandomUniformInt", [[1], 3, 3], {}, "^Need minval < maxval, got 3 >= 3$"),
        ("RandomUniformInt", [[1], [3], 3], {}, r"^minval must be 0-D, got shape \[1\]$"),
    ],
)
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **attrs)
