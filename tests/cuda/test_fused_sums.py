"""Elementwise runs that end in sums: one launch on a GPU, and few of what the sums leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import fused_programs
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda.fused_runs import DeviceRun
from tenfold_kernels.fusion.cache import FusionCache
from tenfold_kernels.fusion.runs import FusedInput, FusedOp, FusedRun

if TYPE_CHECKING:
    from types import SimpleNamespace

FLOAT = np.dtype(np.float32)
#: One thread, one block, several, several launches; columns fewer and more than threads.
SHAPES = ((1, 1), (2, 3), (1, 67), (67, 1), (70, 2), (9, 23), (3, 2, 5))


def run_of(shape: tuple[int, ...], *sums: tuple[str, str]) -> FusedRun:
    """x · row + 1, that, and sums of its square root's argument: (op, reduce) each."""
    ops = [
        FusedOp("Mul", (), (("input", 0), ("input", 1)), FLOAT),
        FusedOp("Add", (), (("op", 0), ("constant", 0)), FLOAT),
        *(FusedOp(op, (), (("op", 1),), FLOAT, reduce) for op, reduce in sums),  # type: ignore[arg-type]
    ]
    inputs = FusedInput(FLOAT, "full"), FusedInput(FLOAT, "row")
    return FusedRun(len(shape), inputs, tuple(ops), ((1.0, FLOAT),), tuple(range(1, len(ops))))


def called(gpu: SimpleNamespace, run: FusedRun, *inputs: Any) -> list[Any]:
    """What the run gives, in the host's memory; its nodes give nothing."""
    call = DeviceRun(run).build(lambda *given: ("fallback",), FusionCache(None))
    results = call(*(runtime_of(gpu.device).to_device(each) for each in inputs))
    return ["fallback"] if results == ("fallback",) else [each.to_host() for each in results]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_of_all_and_of_rows_in_one_launch(gpu: SimpleNamespace, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x, row = random.normal(1, 1, shape).astype(np.float32), random.normal(1, 1, shape[-1:]).astype(np.float32)
    run = run_of(shape, ("BiasAddGrad", "rows"), ("Sum", "all"), ("Mean", "all"), ("L2Loss", "all"))

    value, rows, total, mean, half = called(gpu, run, x, row)

    wanted = x * row + 1
    np.testing.assert_allclose(value, wanted, rtol=1e-6)
    np.testing.assert_allclose(rows, wanted.reshape(-1, shape[-1]).sum(0), rtol=1e-4)
    np.testing.assert_allclose([total, mean], [wanted.sum(), wanted.mean()], rtol=1e-4)
    np.testing.assert_allclose(half, (wanted * wanted).sum() / 2, rtol=1e-4)
    assert total.shape == mean.shape == half.shape == ()
    again = called(gpu, run, x, row)
    assert all(np.array_equal(one, other) for one, other in zip(again, (value, rows, total, mean, half), strict=True))


@pytest.mark.parametrize("shape", [(3, 5), (9, 23)], ids=str)
def test_sums_of_all_alone(gpu: SimpleNamespace, shape: tuple[int, ...]) -> None:
    x, row = np.full(shape, 2, np.float32), np.arange(shape[-1], dtype=np.float32)

    value, mean = called(gpu, run_of(shape, ("Mean", "all")), x, row)

    np.testing.assert_allclose(value, 2 * row + 1 + 0 * x)
    np.testing.assert_allclose(mean, value.mean(), rtol=1e-5)


def test_a_sum_of_nothing_is_the_nodes_own(gpu: SimpleNamespace) -> None:
    run = run_of((2, 3), ("Mean", "all"))

    assert called(gpu, run, np.zeros((0, 3), np.float32), np.zeros(3, np.float32)) == ["fallback"]
    assert called(gpu, run, np.zeros((2, 3, 3), np.float32), np.zeros(3, np.float32)) == ["fallback"]


def test_a_hot_step_computes_its_sums_where_it_computes_their_elements() -> None:
    random = np.random.default_rng(0)
    with fused_programs() as programs, tf.Graph().as_default():
        with tf.device("/gpu:0"):
            x = tf.placeholder(tf.float32, [None, 3], name="x")
            w = tf.constant([1.0, 2.0, 3.0], name="w")
            value = tf.tanh(x * w) * 2.0
            loss, bias = tf.reduce_mean(tf.square(value)), tf.reduce_sum(value, axis=0)
        with tf.Session() as session:
            for rows in (5, 5, 5, 5, 2, 0):
                fed = random.normal(size=(rows, 3)).astype(np.float32)
                found = session.run([loss, bias], {x: fed})
                wanted = np.tanh(fed * np.float32([1, 2, 3])) * 2
                np.testing.assert_allclose(found[0], np.square(wanted).mean() if rows else np.nan, rtol=1e-5)
                np.testing.assert_allclose(found[1], wanted.sum(0), rtol=1e-5, atol=1e-6)

    (run,) = [g.run.run for program in programs for g in program.groups if isinstance(g.run, DeviceRun)]
    assert sorted((op.op, op.reduce) for op in run.ops if op.reduce) == [("Mean", "all"), ("Sum", "rows")]
