"""Normal numbers between limits: TensorFlow's for the same seeds by each method, the limits, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.random_figures import NORMALS, TOLERANCE, calls, dims, summaries
from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import random_rejection
from tenfold_kernels.philox import Philox


def normals(ops: Any, shape: Any, *parameters: Any, dtype: str = "float64") -> list[Any]:
    """Means, deviations, lower and upper limits."""
    values = [np.array(parameter, dtype) for parameter in parameters]
    return calls(ops, "ParameterizedTruncatedNormal", dims(*shape), *values, dtype=dtypes.as_dtype(dtype))


@pytest.mark.parametrize(
    ("shape", "means", "deviations", "lows", "highs", "dtype", "expected"),
    [(*case, dtype, expected) for *case, by_type in NORMALS for dtype, expected in by_type.items()],
)
def test_normal_numbers_between_limits(
    ops: Any, shape: Any, means: Any, deviations: Any, lows: Any, highs: Any, dtype: str, expected: list[float]
) -> None:
    found = normals(ops, shape, means, deviations, lows, highs, dtype=dtype)

    assert [(numbers.shape, numbers.dtype) for numbers in found] == [(shape, dtype)] * 2
    np.testing.assert_allclose(summaries(found), expected, rtol=TOLERANCE[dtype])


def test_parameters_may_be_vectors_of_one(ops: Any) -> None:
    scalars = normals(ops, (5, 3), 0.0, 1.0, -1.0, 2.0)
    vectors = normals(ops, (5, 3), [0.0], 1.0, [-1.0], [2.0])
    many = normals(ops, (5, 3), [0.0] * 5, 1.0, [-1.0], [2.0])

    assert [numbers.tolist() for numbers in scalars] == [numbers.tolist() for numbers in vectors]
    assert many[0][0].tolist() == scalars[0][0].tolist()
    assert many[0][1].tolist() != scalars[0][1].tolist(), "each batch has a stretch of its own"


def test_many_numbers_are_drawn_in_pieces_and_end_where_they_end(ops: Any) -> None:
    """The last piece proposes more than are still missing, and what it refuses behind them is nobody's."""
    batches = normals(ops, (2, 4000), [0.0, 0.0], 1.0, -1.4, 0.1)[0]
    assert (batches.min() >= -1.4, batches.max() <= 0.1) == (True, True)
    assert len(set(batches.reshape(-1).tolist())) == 8000, "no number is drawn twice"
    one = normals(ops, (1, 4000), 0.0, 1.0, [-1.4], 0.1)[0]
    assert one[0, :100].tolist() == batches[0, :100].tolist()
    singles = normals(ops, (2, 4000), [0.0, 0.0], 1.0, -3.0, 3.0, dtype="float32")[0]
    assert (singles.min() >= -3, singles.max() <= 3) == (True, True)


def test_limits_themselves_are_among_the_numbers(ops: Any) -> None:
    """Only a type with few numbers meets them."""
    numbers = normals(ops, (20000,), 0.0, 1.0, -2.0, 1.0, dtype="float16")[0]
    assert {-2.0, 1.0} <= set(numbers.tolist())
    assert (numbers.min(), numbers.max()) == (-2.0, 1.0)


def test_far_from_the_mean_what_is_proposed_is_taken() -> None:
    """Where the type cannot tell the rate of the proposals from the limit."""
    blocks = Philox(3, 4 << 64).blocks(np.arange(5000, dtype=np.uint64))
    limits = np.float16(64), np.float16(70)
    with np.errstate(divide="ignore"):
        proposed, taken = random_rejection._candidates("exponential", blocks, np.float16, *limits)
    assert (proposed >= 64).all()
    assert taken.tolist() == (proposed < 70).tolist()


def test_the_upper_limit_of_a_tail_is_not_in_it() -> None:
    blocks = Philox(3, 4 << 64).blocks(np.arange(500, dtype=np.uint64))
    with np.errstate(divide="ignore"):
        proposed, taken = random_rejection._candidates("exponential", blocks, np.float16, np.float16(2), np.float16(9))
        limit = proposed[taken][0]
        _, now_taken = random_rejection._candidates("exponential", blocks, np.float16, np.float16(2), limit)
    assert now_taken.tolist() == (taken & (proposed < limit)).tolist()


@pytest.mark.parametrize(
    ("mean", "deviation", "low", "high"),
    [
        (0.0, 0.0, -1.0, 1.0),
        (0.0, -1.0, -1.0, 1.0),
        (0.0, np.nan, -1.0, 1.0),
        (0.0, 1.0, 1.0, 1.0),
        (0.0, 1.0, 2.0, 1.0),
        (0.0, 1.0, np.nan, 1.0),
        (0.0, 1.0, -np.inf, np.inf),
    ],
)
def test_parameters_without_a_distribution(ops: Any, mean: float, deviation: float, low: float, high: float) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid parameters$"):
        normals(ops, (2,), mean, deviation, low, high)


@pytest.mark.parametrize(
    ("shape", "parameters", "text"),
    [
        ((), [0.0, 1.0, 0.0, 1.0], r"^Shape tensor must not be empty, got \[\]"),
        ((1,), [[[0.0]], 1.0, 0.0, 1.0], "^Input means, stddevs, minvals and maxvals should be scalars or vectors"),
        ((1,), [0.0, 1.0, 0.0, [[1.0]]], "^Input means, stddevs, minvals and maxvals should be scalars or vectors"),
        (
            (3, 2),
            [0.0, [1.0, 1.0], 0.0, 1.0],
            r"^Parameters must have length 1 or shape\[0\], got lengths 2; shape\[0\] is 3",
        ),
    ],
)
def test_parameters_that_do_not_fit(ops: Any, shape: Any, parameters: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        normals(ops, shape, *parameters)


def test_no_normals_need_no_distribution(ops: Any) -> None:
    for numbers in normals(ops, (3, 0), [0.0, 1.0, 2.0], -1.0, 5.0, 1.0, dtype="float32"):
        assert (numbers.shape, numbers.dtype) == ((3, 0), np.float32)


def test_a_search_without_an_end_is_given_up(ops: Any) -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=r"failed to accept a sample: of a mean of nan and a dev.* 2 "
    ):
        normals(ops, (2,), np.nan, 2.0, -1.0, 1.0)


@pytest.mark.parametrize("before", [0, 1, 37])
@pytest.mark.parametrize("refused", [999, 1000])
def test_how_many_proposals_in_a_row_may_be_refused(before: int, refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they come in several pieces."""
    answers = iter([True] * before + [False] * refused + [True] * 1000)
    monkeypatch.setattr(
        random_rejection,
        "_candidates",
        lambda kind, blocks, *rest: (
            np.zeros(4 * len(blocks)),
            np.array([next(answers) for _ in range(4 * len(blocks))]),
        ),
    )
    stream, limits = random_rejection._Stream(Philox(1, 2)), (0.0, 1.0, -2.0, 2.0)
    if refused < 1000:
        assert random_rejection._cut_normals(stream, before + 1, np.float64, *limits).size == before + 1
    else:
        with pytest.raises(errors.InvalidArgumentError, match="failed to accept a sample"):
            random_rejection._cut_normals(stream, before + 1, np.float64, *limits)


def test_blocks_that_were_not_needed_go_back() -> None:
    position = Philox(3, 4 << 64)
    stream = random_rejection._Stream(position)
    taken = [stream.take(3), stream.take(2)]
    stream.back(4)
    blocks = position.blocks(np.arange(5, dtype=np.uint64))
    np.testing.assert_array_equal(np.concatenate(taken), blocks)
    np.testing.assert_array_equal(stream.take(4), blocks[1:])
