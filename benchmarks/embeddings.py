"""14. Embeddings at scale: a partitioned table on two parameter servers, looked up and trained by two workers at once.

What parameter servers exist for: a step touches some thousand rows of a table that no worker could hold, and must not
cost more because the table has more of them (`flat_with`). 26 columns of ids, 512 examples a step, 16 numbers a row.
Adam is TensorFlow's own, which decays the moments of every row in every step, and a lazy one, which leaves rows alone
that a step does not name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Context, Measure, Subject, Topology

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS, WIDTH, BATCH, BATCHES, CURVE = 26, 16, 512, 8, 20
SMALL, LARGE, DENSE = 100_000, 10_000_000, 200_000
TWO = Topology(servers=("ps:0", "ps:1"), clients=("worker:0", "worker:1"), pinned=False)
ONE = Topology(servers=("ps:0", "ps:1"), clients=("worker:0",), pinned=False)


def make_data(rows: int, seed: int) -> list[tuple[Any, Any]]:
    """Some batches of int64 ids [512, 26] and float32 targets [512]. Few rows are named often, as in a click log."""
    choose = np.random.default_rng(seed)
    ids = (rows * choose.random([BATCHES, BATCH, COLUMNS]) ** 3).astype(np.int64)
    return [(each, np.sin(each.sum(1)).astype(np.float32)) for each in ids]


def lazy_adam(tf: Any, table: Any, gradients: Any, rate: float) -> Any:
    """One Adam update of the rows that `gradients` (a list of IndexedSlices, one a part) name, and of no other."""
    updates = []
    power1, power2 = (tf.Variable(beta, name=name) for beta, name in ((0.9, "power1"), (0.999, "power2")))
    scale = rate * tf.sqrt(1 - power2) / (1 - power1)
    for part, gradient in zip(table, gradients, strict=True):
        with tf.colocate_with(part):
            m, v = (tf.Variable(tf.zeros(part.shape), name=name) for name in ("m", "v"))
            rows, place = tf.unique(gradient.indices)
            total = tf.unsorted_segment_sum(gradient.values, place, tf.size(rows))
            new_m = 0.9 * tf.gather(m, rows) + 0.1 * total
            new_v = 0.999 * tf.gather(v, rows) + 0.001 * total * total
            step = scale * new_m / (tf.sqrt(new_v) + 1e-8)
            updates += [tf.scatter_update(m, rows, new_m), tf.scatter_update(v, rows, new_v)]
            updates.append(tf.scatter_sub(part, rows, step))
    with tf.control_dependencies(updates):
        return tf.group(power1.assign(power1 * 0.9), power2.assign(power2 * 0.999))


def embedding(rows: int, optimizer: str, *, bags: bool = False) -> Callable[[Context], Measure]:
    """Targets from the sum of looked-up rows; with `bags`, each column has up to two ids and their mean counts."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        data = make_data(rows, ctx.index)
        graph = tf.Graph()
        worker = f"/job:worker/task:{ctx.index}"
        setter = tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(ctx.cluster))
        weights = np.random.default_rng(3).standard_normal([COLUMNS * WIDTH]).astype(np.float32)
        with ctx.building(graph), tf.device(setter):
            step_counter = tf.train.get_or_create_global_step()
            ids = tf.placeholder(tf.int64, [BATCH, COLUMNS], name="ids")
            target = tf.placeholder(tf.float32, [BATCH], name="target")
            table = tf.get_variable(
                "table",
                [rows, WIDTH],
                initializer=tf.zeros_initializer(),
                partitioner=tf.fixed_size_partitioner(len(ctx.cluster["ps"])),
            )
            parts = list(table)
            if bags:
                each = tf.reshape(ids, [-1, 1])
                pairs = tf.reshape(tf.concat([each, (each * 7 + 1) % rows], 1), [-1])
                which = np.stack([np.repeat(np.arange(BATCH * COLUMNS), 2), np.tile([0, 1], BATCH * COLUMNS)], 1)
                bag = tf.SparseTensor(which.astype(np.int64), pairs, [BATCH * COLUMNS, 2])
                looked_up = tf.nn.embedding_lookup_sparse(parts, bag, None, partition_strategy="div", combiner="mean")
            else:
                looked_up = tf.nn.embedding_lookup(parts, ids, partition_strategy="div")
            flat = tf.reshape(looked_up, [BATCH, COLUMNS * WIDTH])
            loss = tf.reduce_mean(tf.squared_difference(tf.linalg.matvec(flat, tf.constant(weights)), target))
            if optimizer == "lazy adam":
                update = lazy_adam(tf, parts, tf.gradients(loss, parts), 0.001)
                with tf.control_dependencies([update]):
                    train = tf.assign_add(step_counter, 1)
            else:
                chosen = {
                    "adagrad": lambda: tf.train.AdagradOptimizer(0.05),
                    "adam": lambda: tf.train.AdamOptimizer(0.001),
                }[optimizer]()
                train = chosen.minimize(loss, global_step=step_counter)
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        if ctx.index == 0:
            sess.run(init)
        count = 0

        def step() -> Any:
            nonlocal count
            count += 1
            batch, wanted = data[count % BATCHES]
            return sess.run([train, loss], {ids: batch, target: wanted})[1]

        def result() -> dict[str, object]:
            # Runs before the other worker comes: the curve of one.
            nonlocal count
            sess.run(init)
            count = 0
            return {"losses": np.array([step() for _ in range(CURVE)]), "global step": sess.run(step_counter)}

        return Measure(step=step, result=result)

    return build


def case(name: str, build: Callable[[Context], Measure], demand: float, flat_with: str = "") -> Case:
    """Global steps of two workers."""
    demands = {"tenfold": demand} if demand else {}
    return Case(
        name, TWO, build, demands, metric="throughput", rtol=1e-3, warm_up_s=2.0, flat_with=flat_with,
        note="global steps of both workers",
    )  # fmt: skip


SUBJECT = Subject(
    number="14",
    module="embeddings",
    title="embeddings on two parameter servers",
    sides=(harness.TENFOLD, harness.TENSORFLOW, harness.TENSORFLOW_TUNED),
    cases=(
        case("Adagrad, 100,000 rows", embedding(SMALL, "adagrad"), 2),
        case("Adagrad, 10 million rows", embedding(LARGE, "adagrad"), 2, flat_with="Adagrad, 100,000 rows"),
        case("lazy Adam, 10 million rows", embedding(LARGE, "lazy adam"), 2),
        case("Adam (every row decays), 200,000 rows", embedding(DENSE, "adam"), 0),
        case("embedding_lookup_sparse, Adagrad, 10 million rows", embedding(LARGE, "adagrad", bags=True), 2),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
