"""18. Sparse times dense, plain and turned, and its gradients, at four shapes, beside TensorFlow 1.15 and 2.21.

    python benchmarks/sparse_matmul.py --json figures.json && python benchmarks/report.py figures.json

A step's target is the product, or all gradients that a program asks for. Gradients with respect to the dense matrix are
what graph networks train by; those of the values come with weights of edges. The sparse matrices are drawn with a fixed
seed, in row-major order. A second row of each case has two busy neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Context, Measure, Subject, Topology

if TYPE_CHECKING:
    from collections.abc import Callable

#: All cores, as a program has them.
WHOLE_MACHINE = Topology(servers=(), clients=("worker:0",), pinned=False)
SIDES = (harness.TENFOLD, harness.TENSORFLOW_115_DIRECT, harness.TENSORFLOW_DIRECT)
#: Sums are taken in another order on each side.
RTOL = 1e-4


@dataclass(frozen=True)
class Shape:
    """rows × inner with so many entries, by inner × columns."""

    name: str
    rows: int
    inner: int
    entries: int
    columns: int


SHAPES = (
    Shape("graph 900x900, 12,000 entries, by 32", 900, 900, 12_000, 32),
    Shape("LightGCN 70,839x70,839, 1,620,256 entries, by 64", 70_839, 70_839, 1_620_256, 64),
    Shape("tall 200,000x500, 400,000 entries, by 16", 200_000, 500, 400_000, 16),
    Shape("narrow 20,000x20,000, 200,000 entries, by 1", 20_000, 20_000, 200_000, 1),
)


def program_of(shape: Shape, kind: str) -> Callable[[Context], Measure]:
    """`kind`: "product", "turned", "gradient" (of the dense matrix) or "both gradients"."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        choose = np.random.RandomState(5)
        flat = np.unique(choose.randint(0, shape.rows * shape.inner, shape.entries))
        places = np.stack([flat // shape.inner, flat % shape.inner], 1)
        turned = kind == "turned"
        graph = tf.Graph()
        with ctx.building(graph):
            indices = tf.placeholder(tf.int64, [None, 2])
            kept = tf.Variable(indices, trainable=False, validate_shape=False, use_resource=True)
            values = tf.Variable(choose.randn(len(flat)).astype(np.float32), use_resource=True)
            height = shape.rows if turned else shape.inner
            dense = tf.Variable(choose.randn(height, shape.columns).astype(np.float32), use_resource=True)
            sparse = tf.SparseTensor(kept, values, tf.constant([shape.rows, shape.inner], tf.int64))
            product = tf.sparse_tensor_dense_matmul(sparse, dense, adjoint_a=turned)
            outputs = [product]
            if "gradient" in kind:
                ends = [dense, values] if kind == "both gradients" else [dense]
                outputs = tf.gradients(tf.reduce_sum(product * product), ends)
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init, {indices: places})
        targets = [output.op for output in outputs]  # no group: a rewriter drops what only a group waits for

        def result() -> dict[str, Any]:
            return {str(number): np.asarray(value) for number, value in enumerate(sess.run(outputs))}

        return Measure(step=lambda: sess.run(targets), result=result)

    return build


SUBJECT = Subject(
    number="18",
    module="sparse_matmul",
    title="sparse_tensor_dense_matmul and its gradients",
    sides=SIDES,
    cases=tuple(
        Case(
            f"{kind}, {shape.name}",
            WHOLE_MACHINE,
            program_of(shape, kind),
            demands={"tenfold": 1.0},
            work=2.0 * shape.entries * shape.columns,
            unit="FLOP",
            rtol=RTOL,
            neighbours=2,
        )
        for shape in SHAPES
        for kind in ("product", "turned", "gradient", "both gradients")
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
