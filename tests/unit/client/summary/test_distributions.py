"""Histograms in a few numbers, against NumPy's percentiles of the values that they were made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from tenfold.session import observing
from tenfold.summary.distributions import Distribution, distribution_of
from tenfold_protos.histogram_pb2 import HistogramProto
from tenfold_protos.summary_pb2 import Summary

if TYPE_CHECKING:
    from pathlib import Path


def histogram_of(values: np.ndarray) -> HistogramProto:
    """As the op makes it."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = session.run(tf.summary.histogram("w", tf.constant(values)))
    return Summary.FromString(made).value[0].histo


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(2.0, 0.5, 10_000),
        np.full(100, -3.0),
        np.arange(-500.0, 500.0),
    ],
)
def test_percentiles_are_as_exact_as_buckets_are_narrow(values: np.ndarray) -> None:
    found = distribution_of(histogram_of(values))

    assert found is not None
    assert (found.lowest, found.highest) == (values.min(), values.max())
    np.testing.assert_allclose(found.norm, np.linalg.norm(values), rtol=1e-6)
    exact = np.percentile(values, (5, 50, 95))
    # a bucket is a tenth wider than the one before it
    np.testing.assert_allclose((found.p5, found.median, found.p95), exact, rtol=0.1, atol=1.0)


def test_a_histogram_of_nothing_is_none() -> None:
    assert distribution_of(HistogramProto()) is None
    assert distribution_of(HistogramProto(num=1, bucket=[1.0])) is None


def test_a_program_that_writes_histograms_is_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "observer", seen := observing.StepObserver())
    with tf.Graph().as_default(), tf.Session() as session, tf.summary.FileWriter(str(tmp_path)) as writer:
        many = [tf.summary.histogram(f"w{at}", [1.0, 3.0]) for at in range(observing.DISTRIBUTIONS + 1)]
        writer.add_summary(session.run(tf.summary.merge([tf.summary.scalar("loss", 0.5), *many])), 7)

    points = seen.collect().points

    assert [point.step for point in points if point.values] == [7]
    (point,) = (point for point in points if point.distributions)
    assert (point.step, len(point.distributions)) == (7, observing.DISTRIBUTIONS)
    found = point.distributions["w0"]
    assert isinstance(found, Distribution)
    assert (found.lowest, found.highest, found.norm) == (1.0, 3.0, pytest.approx(10**0.5))
