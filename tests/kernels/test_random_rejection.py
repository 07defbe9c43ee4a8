"""Gamma and Poisson numbers by rejection: TensorFlow's for the same seeds, the ends of every range, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.random_figures import (
    GAMMA,
    GAMMA_NEAR_ONE,
    GAMMA_OF_A_COLUMN,
    MANY_POISSON,
    POISSON,
    POISSON_OF_LARGE_RATES,
    POISSON_OF_THE_LARGEST_RATE,
    SEEDS,
    TOLERANCE,
    calls,
    dims,
    summaries,
)
from tenfold_core import dtypes, errors

# ---- gamma -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "expected"), GAMMA)
def test_gamma_numbers(ops: Any, dtype: str, expected: list[float]) -> None:
    found = calls(ops, "RandomGamma", dims(400), np.array([0.3, 1.0, 4.5, 20.0], dtype))

    assert [(numbers.shape, numbers.dtype) for numbers in found] == [((400, 4), dtype)] * 2
    np.testing.assert_allclose(summaries(found), expected, rtol=TOLERANCE[dtype])


def test_gamma_numbers_of_a_column(ops: Any) -> None:
    found = calls(ops, "RandomGamma", dims(2, 3), np.array([[0.5], [2.0]], np.float32))

    assert [numbers.shape for numbers in found] == [(2, 3, 2, 1)] * 2
    np.testing.assert_allclose(summaries(found), GAMMA_OF_A_COLUMN, rtol=1e-6)


def test_gamma_numbers_on_both_sides_of_one(ops: Any) -> None:
    found = calls(ops, "RandomGamma", dims(400), np.array([1.5, 0.999, 1.001]))

    np.testing.assert_allclose(summaries(found), GAMMA_NEAR_ONE, rtol=1e-8)


def test_a_gamma_distribution_that_there_is_not_has_no_numbers(ops: Any) -> None:
    alphas = np.array([np.nan, -2 / 3, -1.0, 0.0, 2.0])
    for numbers in calls(ops, "RandomGamma", dims(5), alphas):
        assert np.isnan(numbers[:, :3]).all()
        assert (numbers[:, 3] == 0).all()
        assert (numbers[:, 4] > 0).all()


# ---- Poisson ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_poisson_numbers(ops: Any, dtype: str) -> None:
    rates = np.array([0.0, 0.7, 5.0, 9.9, 10.0, 60.0, 1000.0])
    found = calls(ops, "RandomPoissonV2", dims(300), rates, dtype=dtypes.as_dtype(dtype))

    assert [(numbers.shape, numbers.dtype) for numbers in found] == [((300, 7), dtype)] * 2
    assert summaries(found) == pytest.approx(POISSON, rel=1e-9)


def test_numbers_that_the_type_does_not_hold_are_drawn_again(ops: Any) -> None:
    found = calls(ops, "RandomPoissonV2", dims(300), np.array([65400.0]), dtype=dtypes.float16)
    assert summaries(found) == pytest.approx(POISSON_OF_LARGE_RATES, rel=1e-9)
    found = calls(ops, "RandomPoissonV2", dims(4000), np.array([65504.0]), dtype=dtypes.float16)
    assert summaries(found) == pytest.approx(POISSON_OF_THE_LARGEST_RATE, rel=1e-9)
    assert [numbers.max() for numbers in found] == [65504] * 2, "the largest of the type is one of them"


def test_what_is_seldom_refused_is_refused_in_the_right_places(ops: Any) -> None:
    found = calls(ops, "RandomPoissonV2", dims(30000), np.array([12.0]), dtype=dtypes.int32)
    assert summaries(found) == pytest.approx(MANY_POISSON, rel=1e-9)


@pytest.mark.parametrize(
    ("dtype", "infinite", "no_rate"), [("float16", np.inf, np.nan), ("float64", np.inf, np.nan), ("int32", 0, 0)]
)
def test_rates_that_are_no_numbers(ops: Any, dtype: str, infinite: float, no_rate: float) -> None:
    rates = np.array([[np.inf, np.nan], [2.0, 20.0]])
    for numbers in calls(ops, "RandomPoissonV2", dims(40), rates, dtype=dtypes.as_dtype(dtype)):
        np.testing.assert_array_equal(numbers[:, 0], np.full((40, 2), [infinite, no_rate], dtype))
        assert 1 < numbers[:, 1, 0].mean() < 3
        assert 18 < numbers[:, 1, 1].mean() < 22


@pytest.mark.parametrize(
    ("dtype", "rate", "text"), [("float16", 65536.0, "65536"), ("int32", 2147483648.0, "2.14748e+09")]
)
def test_a_rate_beyond_the_type_is_refused(ops: Any, dtype: str, rate: float, text: str) -> None:
    rates = np.array([np.inf, 3.0, rate])
    with pytest.raises(errors.InvalidArgumentError) as refused:
        calls(ops, "RandomPoissonV2", dims(2), rates, dtype=dtypes.as_dtype(dtype))
    assert refused.value.message == f"a rate of {text} gives samples that {dtype} does not hold"


# ---- sizes of both ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["RandomGamma", "RandomPoissonV2"])
def test_nothing_is_drawn_where_nothing_is_asked_for(ops: Any, op: str) -> None:
    attrs = {} if op == "RandomGamma" else {"dtype": dtypes.float32}
    for shape, parameters in ((dims(0, 2), [1.0, 20.0]), (dims(3), [])):
        compute, _ = ops.build(op, [shape, np.array(parameters, np.float32)], {**SEEDS, **attrs})
        found = compute(shape, np.array(parameters, np.float32))
        assert (found.shape, found.dtype) == ((*shape, len(parameters)), np.float32)
        one, values = dims(1), np.array([5.0], np.float32)
        again, _ = ops.build(op, [one, values], {**SEEDS, **attrs})
        assert compute(one, values).tolist() == again(one, values).tolist(), "nor is the stream moved"


def test_a_shape_is_a_vector(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^shape must be a vector of .*, got shape: \[1,1\]"):
        calls(ops, "RandomGamma", np.ones((1, 1), np.int32), np.array([1.0]))
    values = [np.array(value) for value in (0.0, 1.0, 0.0, 1.0)]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input shape should be a vector, got shape: \[1,1\]"):
        calls(ops, "ParameterizedTruncatedNormal", np.ones((1, 1), np.int32), *values, dtype=dtypes.float64)


@pytest.mark.parametrize(
    ("op", "parameters"),
    [("RandomGamma", [[1.0]]), ("RandomPoissonV2", [[1.0]]), ("ParameterizedTruncatedNormal", [0.0, 1.0, 0.0, 1.0])],
)
def test_what_would_take_too_much_memory_is_refused(ops: Any, op: str, parameters: Any) -> None:
    attrs = {} if op == "RandomGamma" else {"dtype": dtypes.float64}
    with pytest.raises(errors.ResourceExhaustedError):
        calls(ops, op, np.array([1 << 40], np.int64), *(np.array(value) for value in parameters), **attrs)
