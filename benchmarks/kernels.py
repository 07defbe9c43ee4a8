"""13. Kernels: single ops, forward and backward, with the shapes that real programs give them.

A row is one op whose inputs are variables and whose output nobody fetches, so that a step is the kernel and an empty
step's cost. ROWS lists what takes more than a fiftieth of a program's step; a program's share of the table is its own
function below. Values come from NumPy with a fixed seed. Sums are taken in another order on each side: RTOL allows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Context, Measure, Subject, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: All cores, as a program has them.
WHOLE_MACHINE = Topology(servers=(), clients=("worker:0",), pinned=False)
RTOL = 1e-4

#: (tf, inputs) → the op's outputs.
Op = Any


@dataclass(frozen=True)
class Row:
    """One op: its inputs are shapes (normally distributed float32) or arrays; `flops` is what the textbook counts."""

    name: str
    op: Callable[[Any, list[Any]], Op]
    inputs: tuple[Any, ...]
    flops: float = 0.0


def program_of(row: Row) -> Callable[[Context], Measure]:
    """The program of one row: the op over variables."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        choose = np.random.default_rng(5)
        graph = tf.Graph()
        with ctx.building(graph):
            values = [
                choose.standard_normal(each).astype(np.float32) if isinstance(each, tuple) else each
                for each in row.inputs
            ]
            inputs = [tf.Variable(value, name=f"x{number}", use_resource=False) for number, value in enumerate(values)]
            made = row.op(tf, inputs)
            outputs = list(made) if isinstance(made, (tuple, list)) else [made]
            step = outputs[0].op  # not a group: a rewriter drops what only a group waits for
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init)

        def result() -> dict[str, Any]:
            return {str(number): np.asarray(value) for number, value in enumerate(sess.run(outputs))}

        return Measure(step=lambda: sess.run(step), result=result)

    return build


def convolution(where: str, batch: int, size: int, ins: int, outs: int, window: int, stride: int = 1) -> Iterator[Row]:
    """A 2-D convolution (NHWC, SAME) and its two gradients."""
    image, weights = (batch, size, size, ins), (window, window, ins, outs)
    small = -(-size // stride)
    given = (batch, small, small, outs)
    flops = 2.0 * batch * small * small * window * window * ins * outs
    how = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    text = f"{where} {window}x{window}x{ins}→{outs} on {batch}x{size}x{size}" + (f" /{stride}" if stride > 1 else "")
    both = (image, weights)
    yield Row(f"conv2d {text}", lambda tf, x: tf.raw_ops.Conv2D(input=x[0], filter=x[1], **how), both, flops)
    yield Row(
        f"conv2d input grad {text}",
        lambda tf, x: tf.raw_ops.Conv2DBackpropInput(input_sizes=list(image), filter=x[0], out_backprop=x[1], **how),
        (weights, given),
        flops,
    )
    yield Row(
        f"conv2d filter grad {text}",
        lambda tf, x: tf.raw_ops.Conv2DBackpropFilter(input=x[0], filter_sizes=list(weights), out_backprop=x[1], **how),
        (image, given),
        flops,
    )


def max_pool(where: str, shape: tuple[int, ...]) -> Iterator[Row]:
    """The largest of 3 × 3 at stride 2, and its gradient."""
    batch, height, width, channels = shape
    how = {"ksize": [1, 3, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    given = (batch, -(-height // 2), -(-width // 2), channels)
    yield Row(f"max pool {where}", lambda tf, x: tf.raw_ops.MaxPool(input=x[0], **how), (shape,))

    def gradient(tf: Any, x: list[Any]) -> Op:
        pooled = tf.raw_ops.MaxPool(input=x[0], **how)
        return tf.raw_ops.MaxPoolGrad(orig_input=x[0], orig_output=pooled, grad=x[1], **how)

    yield Row(f"max pool and its grad {where}", gradient, (shape, given))


def lrn(where: str, shape: tuple[int, ...]) -> Iterator[Row]:
    """Local response normalisation as the CIFAR-10 tutorial has it, and its gradient."""
    how = {"depth_radius": 4, "bias": 1.0, "alpha": 0.001 / 9.0, "beta": 0.75}
    yield Row(f"lrn {where}", lambda tf, x: tf.raw_ops.LRN(input=x[0], **how), (shape,))
    yield Row(
        f"lrn grad {where}",
        lambda tf, x: tf.raw_ops.LRNGrad(input_grads=x[0], input_image=x[1], output_image=x[2], **how),
        (shape, shape, shape),
    )


def activation(where: str, shape: tuple[int, ...]) -> Iterator[Row]:
    """Bias and ReLU with their gradients."""
    yield Row(f"bias add {where}", lambda tf, x: tf.raw_ops.BiasAdd(value=x[0], bias=x[1]), (shape, shape[-1:]))
    yield Row(f"bias grad {where}", lambda tf, x: tf.raw_ops.BiasAddGrad(out_backprop=x[0]), (shape,))
    yield Row(f"relu {where}", lambda tf, x: tf.raw_ops.Relu(features=x[0]), (shape,))
    yield Row(f"relu grad {where}", lambda tf, x: tf.raw_ops.ReluGrad(gradients=x[0], features=x[1]), (shape, shape))


def batch_norm(where: str, shape: tuple[int, ...]) -> Iterator[Row]:
    """Fused batch normalisation in training, version 3, and its gradient."""
    per_channel = np.linspace(0.5, 1.5, shape[-1]).astype(np.float32)

    def forward(tf: Any, x: list[Any]) -> Op:
        # an empty estimate: training does not read it
        none = tf.constant(np.zeros(0, np.float32))
        made = tf.raw_ops.FusedBatchNormV3(
            x=x[0], scale=x[1], offset=x[1], mean=none, variance=none, epsilon=1e-5, is_training=True
        )
        return [made[0], made[3], made[4]]

    def gradient(tf: Any, x: list[Any]) -> Op:
        made = tf.raw_ops.FusedBatchNormGradV3(
            y_backprop=x[0], x=x[1], scale=x[2], reserve_space_1=x[2], reserve_space_2=x[2],
            reserve_space_3=tf.constant(np.zeros(0, np.float32)), epsilon=1e-5, is_training=True,
        )  # fmt: skip
        return [made[0], made[1], made[2]]

    yield Row(f"batch norm {where}", forward, (shape, per_channel))
    yield Row(f"batch norm grad {where}", gradient, (shape, shape, per_channel))


def product(where: str, rows: int, inner: int, columns: int) -> Iterator[Row]:
    """A dense layer's product and its two gradients."""
    flops = 2.0 * rows * inner * columns
    left, right, given = (rows, inner), (inner, columns), (rows, columns)
    yield Row(f"matmul {where} {rows}x{inner}x{columns}", lambda tf, x: tf.matmul(x[0], x[1]), (left, right), flops)
    yield Row(
        f"matmul {where} {rows}x{inner}x{columns} input grad",
        lambda tf, x: tf.matmul(x[0], x[1], transpose_b=True),
        (given, right),
        flops,
    )
    yield Row(
        f"matmul {where} {rows}x{inner}x{columns} weight grad",
        lambda tf, x: tf.matmul(x[0], x[1], transpose_a=True),
        (left, given),
        flops,
    )


def cross_entropy(where: str, rows: int, classes: int) -> Iterator[Row]:
    labels = np.arange(rows, dtype=np.int32) % classes
    yield Row(
        f"sparse softmax cross-entropy {where} {rows}x{classes}",
        lambda tf, x: tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x[0], labels=x[1]),
        ((rows, classes), labels),
    )


def cnn() -> Iterator[Row]:
    """The CIFAR-10 tutorial's network, batch 128."""
    yield from convolution("cnn 1", 128, 24, 3, 64, 5)
    yield from convolution("cnn 2", 128, 12, 64, 64, 5)
    for where, size in (("cnn 1", 24), ("cnn 2", 12)):
        yield from max_pool(where, (128, size, size, 64))
        yield from activation(where, (128, size, size, 64))
    yield from lrn("cnn", (128, 12, 12, 64))
    yield from product("cnn", 128, 2304, 384)
    yield from cross_entropy("cnn", 128, 10)


def resnet() -> Iterator[Row]:
    """ResNet-20, batch 32."""
    yield from convolution("resnet", 32, 32, 3, 16, 3)
    for size, channels in ((32, 16), (16, 32), (8, 64)):
        yield from convolution("resnet", 32, size, channels, channels, 3)
        if channels < 64:
            yield from convolution("resnet", 32, size, channels, 2 * channels, 3, 2)
            yield from convolution("resnet", 32, size, channels, 2 * channels, 1, 2)
        yield from batch_norm(f"resnet 32x{size}x{size}x{channels}", (32, size, size, channels))


def dense() -> Iterator[Row]:
    """The largest products of the MLP, of a turn of the LSTM and of the click-through net."""
    yield from product("mlp", 128, 784, 256)
    yield from product("lstm", 20, 400, 800)
    yield from product("clicks", 512, 416, 256)


ROWS: tuple[Row, ...] = (*cnn(), *resnet(), *dense())

SUBJECT = Subject(
    number="13",
    module="kernels",
    title="kernels: single ops with the shapes of real programs",
    sides=(harness.TENFOLD, harness.TENSORFLOW_DIRECT),
    cases=tuple(
        Case(
            row.name,
            WHOLE_MACHINE,
            program_of(row),
            work=row.flops or 1,
            unit="FLOP" if row.flops else "step",
            rtol=RTOL,
        )
        for row in ROWS
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
