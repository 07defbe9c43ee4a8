#!/usr/bin/env python3
"""What a GPU gives: kernels against the bandwidth of a copy, captured steps and whole models against torch, one run.

    python benchmarks/cuda_speed.py [--small] [--json FILE] [--report FOLDER]        (make bench-cuda)

Everything runs on GPU 0 of this machine, both sides in this process, in turns; torch is compared where it is installed.
A time is the median of the rounds; each is taken from a synchronized GPU to a synchronized GPU. `--small` is a look at
whether all of it runs: in Numba's simulator too (NUMBA_ENABLE_CUDASIM=1), where times mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cuda_models
import numpy as np

import tenfold as tf
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.cuda import _runtime
from tenfold_kernels.cuda._variables import maker
from tenfold_kernels.gpus import gpus
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from collections.abc import Callable

DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"


@dataclass
class Row:
    """One comparison."""

    name: str
    #: Seconds of a step, by side.
    seconds: dict[str, float]
    #: Bytes that it must move, or operations that it must do; 0 where neither is asked for.
    nbytes: float = 0.0
    flops: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sizes:
    """How large everything is."""

    copy_bytes: int
    adam: int
    softmax: tuple[int, int]
    chain: int
    vector: int
    matrix: int
    steps: int
    rounds: int
    #: Steps of a graph until it is fused and recorded.
    until_hot: int


LARGE = Sizes(1 << 30, 100_000_000, (8192, 32768), 100, 1024, 8192, 30, 7, 200)
SMALL = Sizes(1 << 10, 64, (3, 8), 5, 8, 6, 1, 1, 2)


def seconds_of(step: Callable[[], Any], synchronize: Callable[[], None], repeat: int, rounds: int = 7) -> float:
    """The median time of one call, of `rounds` of `repeat`."""
    for _ in range(min(rounds, 3)):
        step()
    found = []
    for _ in range(rounds):
        synchronize()
        began = time.perf_counter()
        for _ in range(repeat):
            step()
        synchronize()
        found.append((time.perf_counter() - began) / repeat)
    return statistics.median(found)


def kernel_of(op: str, types: tuple[dtypes.DType, ...], outputs: tuple[dtypes.DType, ...], **attrs: Any) -> Any:
    node = registry.KernelNode(op, op, attrs, types, outputs, DEVICE, ResourceManager())
    return registry.lookup(node, "GPU")(node)


def copying(sizes: Sizes) -> Row:
    """A copy within the GPU's memory, bytes read and bytes written counted."""
    runtime = _runtime.runtime(0)
    source = runtime.to_device(np.ones(sizes.copy_bytes, np.uint8))
    target = runtime.empty(source.shape, source.dtype)
    seconds = seconds_of(lambda: runtime.copy(source, target), runtime.synchronize, sizes.steps, sizes.rounds)
    return Row("copy", {"tenfold": seconds}, nbytes=2.0 * sizes.copy_bytes)


def adam(sizes: Sizes) -> Row:
    """ApplyAdam: reads var, m, v and the gradient, writes the first three."""
    runtime, count = _runtime.runtime(0), sizes.adam
    variables = [maker(DEVICE)(name, dtypes.float32, TensorShape([count])) for name in ("var", "m", "v")]
    for variable in variables:
        variable.adopt(runtime.to_device(np.full(count, 0.1, np.float32)))
    scalars = [runtime.to_device(np.float32(x).reshape(())) for x in (0.9, 0.999, 1e-3, 0.9, 0.999, 1e-8)]
    gradient = runtime.to_device(np.full(count, 0.01, np.float32))
    reference = dtypes.float32.as_ref
    types = (reference,) * 3 + (dtypes.float32,) * 7
    update = kernel_of("ApplyAdam", types, (reference,), T=dtypes.float32, use_locking=False, use_nesterov=False)
    step = lambda: update(*variables, *scalars, gradient)  # noqa: E731
    seconds = seconds_of(step, runtime.synchronize, sizes.steps, sizes.rounds)
    return Row("fused Adam", {"tenfold": seconds}, nbytes=7 * 4.0 * count)


def cross_entropy(sizes: Sizes) -> Row:
    """SoftmaxCrossEntropyWithLogits: reads logits and labels, writes the gradient."""
    runtime = _runtime.runtime(0)
    random = np.random.default_rng(1)
    logits = runtime.to_device(random.standard_normal(sizes.softmax, np.float32))
    labels = runtime.to_device(np.full(sizes.softmax, 1 / sizes.softmax[1], np.float32))
    both = (dtypes.float32,) * 2
    loss = kernel_of("SoftmaxCrossEntropyWithLogits", both, both, T=dtypes.float32)
    seconds = seconds_of(lambda: loss(logits, labels), runtime.synchronize, sizes.steps, sizes.rounds)
    return Row("softmax cross-entropy", {"tenfold": seconds}, nbytes=3 * 4.0 * sizes.softmax[0] * sizes.softmax[1])


def product(sizes: Sizes) -> Row:
    """A product of square float32 matrices, without TF32."""
    runtime, n = _runtime.runtime(0), sizes.matrix
    random = np.random.default_rng(2)
    a, b = (runtime.to_device(random.standard_normal((n, n), np.float32)) for _ in range(2))
    attrs = {"T": dtypes.float32, "transpose_a": False, "transpose_b": False}
    multiply = kernel_of("MatMul", (dtypes.float32,) * 2, (dtypes.float32,), **attrs)
    seconds = seconds_of(lambda: multiply(a, b), runtime.synchronize, max(1, sizes.steps // 10), sizes.rounds)
    return Row("matrix product", {"tenfold": seconds}, flops=2.0 * n**3)


def session_step(build: Callable[[], Any], until_hot: int) -> Callable[[], Any]:
    """A step of a graph on the GPU that feeds and fetches nothing, hot: fused and captured."""
    graph = tf.Graph()
    with graph.as_default(), tf.device("/gpu:0"):
        step = build()
        start = tf.global_variables_initializer()
    session = tf.Session(graph=graph)
    session.run(start)
    call = session.make_callable(step)
    for _ in range(until_hot):
        call()
    return call


def small_kernels(sizes: Sizes) -> Row:
    """A step of many small ops that cannot be one kernel: each is a product of a small matrix and a vector."""

    def build() -> Any:
        weights = tf.Variable(np.eye(8, dtype=np.float32))
        state = tf.Variable(np.ones((8, sizes.vector // 8), np.float32))
        value = state
        for _ in range(sizes.chain):
            value = tf.matmul(weights, value)
        return state.assign(value).op

    call = session_step(build, sizes.until_hot)
    seconds = seconds_of(call, _runtime.runtime(0).synchronize, sizes.steps, sizes.rounds)
    return Row(f"{sizes.chain} small kernels", {"tenfold": seconds})


def model(name: str, sizes: Sizes) -> Row:
    """A training step of one of cuda_models' programs, and the memory that the GPU's arrays take after it."""
    shapes = cuda_models.SIZES[name][sizes is SMALL]
    call = session_step(lambda: cuda_models.BUILDERS[name](**shapes)[0], sizes.until_hot)
    runtime = _runtime.runtime(0)
    seconds = seconds_of(call, runtime.synchronize, sizes.steps, sizes.rounds)
    used, kept = runtime.memory_info()
    return Row(name, {"tenfold": seconds}, notes={"bytes in use": used, "bytes kept": kept})


def with_torch(rows: list[Row], sizes: Sizes) -> str:
    """Adds torch's side to the rows; why it is missing, of all or of some, or "". Our own figures are kept anyhow."""
    try:
        import cuda_torch
    except ImportError as error:
        return f"torch is not compared: {error}"
    missing = []
    for row in rows:
        row.seconds |= cuda_torch.seconds_of_row(row.name, sizes, seconds_of, missing.append)
    return "\n".join(f"Not compared: {each}" for each in missing)


def table(rows: list[Row], note: str) -> str:
    copy = next(row for row in rows if row.name == "copy")
    bandwidth = copy.nbytes / copy.seconds["tenfold"]
    lines = ["| work | side | time | of the copy's bandwidth | TFLOP/s | Tenfold is |", "|---|---|---|---|---|---|"]
    for row in rows:
        for side, seconds in row.seconds.items():
            share = f"{row.nbytes / seconds / bandwidth:.2f}" if row.nbytes else ""
            rate = f"{row.flops / seconds / 1e12:.1f}" if row.flops else ""
            ratio = "" if side == "tenfold" else f"{seconds / row.seconds['tenfold']:.2f}x"
            lines.append(f"| {row.name} | {side} | {seconds * 1e6:,.1f} µs | {share} | {rate} | {ratio} |")
    lines.append("")
    lines.append(f"Copy: {bandwidth / 1e9:,.0f} GB/s, read and written.")
    return "\n".join([*lines, note, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="Tiny sizes: whether all of it runs.")
    parser.add_argument("--json", type=Path, help="Write the figures into this file.")
    parser.add_argument("--report", type=Path, help="Write a dated report into this folder.")
    options = parser.parse_args()
    # at the third step, not in a thread beside those that are measured
    os.environ["TENFOLD_FUSION"] = "eager"
    found = gpus()
    if not found:
        raise SystemExit("There is no GPU here. In the simulator: NUMBA_ENABLE_CUDASIM=1, with --small.")
    sizes = SMALL if options.small else LARGE
    rows = [measure(sizes) for measure in (copying, adam, cross_entropy, product, small_kernels)]
    rows += [model(name, sizes) for name in cuda_models.SIZES]
    text = table(rows, with_torch(rows, sizes))
    print(text)
    if options.json is not None:
        figures = {"gpu": found[0][1], "rows": [vars(row) for row in rows]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.report is not None:
        today = datetime.date.today().isoformat()
        machine = f"{found[0][1]}, Python {platform.python_version()}"
        head = f"# CUDA, {today}\n\n`python benchmarks/cuda_speed.py` on {machine}.\n\n"
        (options.report / f"{today}-cuda.md").write_text(head + text)


if __name__ == "__main__":
    main()
