"""A GPU draws the CPU's random numbers: the same words, and call after call the same stream."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support import gpu_runs, kernel_runs
from tenfold_core import dtypes, errors
from tenfold_kernels import registry
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from types import SimpleNamespace

SHAPES = ((), (0,), (1,), (7,), (3, 5), (2, 0), (33,))
SEEDS = {"seed": 87654321, "seed2": 2}
FLOATS = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
STATELESS = ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
SHAPE = np.array([2], np.int32)
SEED = np.array([5, -7])
KEY = [np.array([1 << 63 | 5], np.uint64), np.array([(1 << 64) - 2, 3], np.uint64), np.array(1, np.int32)]


def check(op: str, ours: Any, theirs: Any) -> None:
    if "Uniform" in op:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=2e-7 if ours.dtype == np.float32 else 1e-13, atol=1e-14)


def both(op: str, dtype: str) -> list[Any]:
    """The kernels of a node on the CPU and on a GPU."""
    attrs = {**SEEDS, "dtype": dtypes.as_dtype(dtype)}
    nodes = [
        kernel_runs.make_node(op, [np.array([3], np.int32)], attrs, ResourceManager(), op, device)
        for device in (kernel_runs.DEVICE, gpu_runs.GPU)
    ]
    return [registry.lookup(node, kind)(node) for node, kind in zip(nodes, ("CPU", "GPU"), strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", FLOATS)
def test_a_recording_draws_on_in_each_launch(op: str, dtype: str) -> None:
    on_cpu, on_gpu = both(op, dtype)
    gpu = runtime_of(gpu_runs.GPU)
    for dims in ((3, 3), (2, 0)):
        shape = np.array(dims, np.int32)
        drawn, recording = gpu.record(partial(on_gpu, shape))
        for _ in range(2):
            for numbers, place in recording.numbers_of_a_launch():
                gpu.copy(numbers, place)
            recording.launch()

            check(op, drawn.to_host(), on_cpu(shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", FLOATS)
def test_a_node_draws_on(op: str, dtype: str) -> None:
    on_cpu, on_gpu = both(op, dtype)
    for dims in SHAPES:
        shape = np.array(dims, np.int32)

        ours, theirs = on_gpu(shape).to_host(), on_cpu(shape)

        assert ours.shape == dims
        check(op, ours, theirs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", STATELESS)
def test_without_a_state(gpu: SimpleNamespace, op: str, dtype: str) -> None:
    for dims in SHAPES:
        shape = np.array(dims, np.int32)
        for name, begin in ((op, [SEED]), (f"{op}V2", KEY)):
            inputs, attrs = [shape, *begin], {"dtype": dtypes.as_dtype(dtype)}
            check(op, gpu.run(name, inputs, **attrs), kernel_runs.run_op(name, inputs, **attrs))


LIMITS = ((0, 10), (-5, 3), (-(1 << 63), (1 << 63) - 1), ((1 << 62), (1 << 62) + 1))


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_integers(gpu: SimpleNamespace, limits: tuple[int, int]) -> None:
    for dims in SHAPES:
        shape, given = np.array(dims, np.int32), [np.array(limit, np.int64) for limit in limits]
        gpu.same("RandomUniformInt", [shape, *given], **SEEDS)
        gpu.same("StatelessRandomUniformInt", [shape, SEED, *given])
        gpu.same("StatelessRandomUniformIntV2", [shape, *KEY, *given])


def test_integers_of_the_whole_range(gpu: SimpleNamespace) -> None:
    for name in ("int64", "int32", "uint64"):
        attrs = {"dtype": dtypes.as_dtype(name)}
        gpu.same("StatelessRandomUniformFullInt", [np.array([5], np.int32), SEED], **attrs)
        gpu.same("StatelessRandomUniformFullIntV2", [np.array([5], np.int32), *KEY], **attrs)


def test_int32_stays_on_the_host(gpu: SimpleNamespace) -> None:
    shape, limits = np.array([5], np.int32), [np.array(0, np.int32), np.array(9, np.int32)]

    gpu.same("RandomUniformInt", [shape, *limits], **SEEDS)

    assert registry.memory_of("RandomUniformInt", {"Tout": dtypes.int32}, "GPU") is None


@pytest.mark.parametrize("output", [dtypes.int32, dtypes.int64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_classes_by_their_logits(gpu: SimpleNamespace, dtype: str, output: dtypes.DType) -> None:
    for rows, classes, samples in ((1, 1, 1), (3, 5, 1), (2, 7, 6), (0, 2, 3), (2, 3, 0)):
        logits = np.random.default_rng(classes).uniform(-2, 2, (rows, classes)).astype(dtype)
        if classes > 4 and rows:
            logits[0, 1:4] = (-np.inf, np.nan, np.inf)
        inputs: list[Any] = [logits, np.array(samples, np.int32)]
        gpu.same("Multinomial", inputs, output_dtype=output, **SEEDS)
        gpu.same("StatelessMultinomial", [*inputs, SEED], output_dtype=output)


ERRORS = [
    ("RandomUniform", [np.array([-1], np.int32)], {"dtype": dtypes.float32}, "must be >= 0"),
    ("RandomUniformInt", [SHAPE, np.array(4), np.array(4)], {}, r"^Need minval < maxval, got 4 >= 4$"),
    ("StatelessRandomUniform", [SHAPE, np.array([1])], {}, r"^seed must have shape \[2\], not \[1\]$"),
    ("Multinomial", [np.ones((2, 0)), np.array(1, np.int32)], {}, r"^num_classes should be positive, got 0$"),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "message"), ERRORS, ids=[row[0] for row in ERRORS])
def test_errors_are_the_cpus(gpu: SimpleNamespace, op: str, inputs: list[Any], attrs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        gpu.run(op, inputs, **attrs)
