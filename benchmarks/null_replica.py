"""6. The synchronous null-step replica of TensorFlow's paper (OSDI 2016, section 6.2): every worker pulls the model,
does almost no work with it, and adds to a counter on the parameter server; the step ends when all workers are done.

The model is a scalar, 100 MB dense, or 32 rows out of an embedding table. The workers are tasks of one step (in-graph
replication), which makes it synchronous. What the workers pull is written between two timed steps, untimed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from dense_pull import COLUMNS, rows_of
from harness import Case, Context, Measure, Subject, Topology

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRIES = 32
#: Megabytes of the small and the large table: what is pulled is the same.
SMALL_TABLE, LARGE_TABLE = 64, 1000
WORKERS = (1, 2, 4, 8)
#: The worker counts with a demand; the others are only shown.
DEMANDED = (1, 8)


def topology(workers: int, servers: int = 1) -> Topology:
    others = (*(f"ps:{index}" for index in range(servers)), *(f"worker:{index}" for index in range(1, workers)))
    return Topology(others, ("worker:0",))


def replica(
    workers: int, rows: int, columns: int, *, sparse: bool = False, servers: int = 1
) -> Callable[[Context], Measure]:
    """A model [rows, columns] in equal parts on the ps, pulled by all workers, whole or 32 entries each."""
    part_rows, part_entries = rows // servers, ENTRIES // servers

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        parts, counters, touches, updates, pulled = [], [], [], [], []
        with ctx.building(graph):
            for server in range(servers):
                with tf.device(f"/job:ps/task:{server}"):
                    parts.append(tf.Variable(tf.fill([part_rows, columns], 0.5), name=f"model{server}"))
                    counters.append(tf.Variable(0.0, name=f"counter{server}"))
                    touches.append(tf.scatter_add(parts[-1], [0], np.ones([1, columns], np.float32)).op)
            with tf.device("/job:ps/task:0"):
                shape = [workers, servers, part_entries]
                chosen: Any = tf.placeholder(tf.int32, shape, name="chosen") if sparse else None
            for index in range(workers):
                corners = []
                for server, part in enumerate(parts):
                    wanted = part
                    if sparse:
                        with tf.device(f"/job:ps/task:{server}"):
                            wanted = tf.gather(part, chosen[index, server])
                    with tf.device(f"/job:worker/task:{index}"):
                        corners.append(tf.slice(tf.identity(wanted), [0, 0], [1, 1]))
                with tf.device(f"/job:worker/task:{index}"):
                    corner = corners[0] if servers == 1 else tf.add_n(corners)
                    small = tf.reshape(corner, []) * 0.0 + 1.0
                    pulled.append(tf.identity(corner))
                with tf.device(f"/job:ps/task:{index % servers}"):
                    updates.append(tf.assign_add(counters[index % servers], small).op)
            step, touch = tf.group(*updates), tf.group(*touches)
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init)
        choose = np.random.default_rng(0)

        def feed() -> dict[Any, Any]:
            if not sparse:
                return {}
            entries = choose.integers(0, part_rows, shape, dtype=np.int32)
            entries[..., 0] = 0
            return {chosen: entries}

        def result() -> dict[str, object]:
            for _ in range(2):
                sess.run(touch)
                sess.run(step, feed())
            return {"counters": np.stack(sess.run(counters)), "corners": np.stack(sess.run(pulled, feed()))}

        return Measure(step=lambda: sess.run(step, feed()), result=result, between=lambda: sess.run(touch))

    return build


def table(size: int, workers: int) -> str:
    """The name of the case of 32 rows out of a table of `size` megabytes."""
    return f"sparse, 32 rows of {size} MB, {workers} workers"


def cases(workers: int) -> tuple[Case, ...]:
    here, dense, wide = topology(workers), rows_of(100), 256
    entries = {size: size * 1_000_000 // (4 * wide) for size in (SMALL_TABLE, LARGE_TABLE)}
    demands = {"tenfold": 5.0} if workers in DEMANDED else {}
    rows = ENTRIES * 4 * wide * workers
    return (
        Case(f"scalar, {workers} workers", here, replica(workers, 1, 1), demands),
        Case(
            f"dense 100 MB, {workers} workers",
            here,
            replica(workers, dense, COLUMNS),
            demands,
            work=dense * COLUMNS * 4 * workers,
            unit="B",
        ),
        *(
            Case(
                table(size, workers),
                here,
                replica(workers, entries[size], wide, sparse=True),
                demands if size == LARGE_TABLE else {},
                work=rows,
                unit="B",
                flat_with=table(SMALL_TABLE, workers) if size == LARGE_TABLE else "",
            )
            for size in (SMALL_TABLE, LARGE_TABLE)
        ),
    )


SUBJECT = Subject(
    number="6",
    module="null_replica",
    title="synchronous null-step replica",
    sides=(harness.TENFOLD, harness.TENSORFLOW, harness.TENSORFLOW_TUNED),
    cases=tuple(case for workers in WORKERS for case in cases(workers)),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
