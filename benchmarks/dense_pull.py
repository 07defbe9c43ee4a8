"""4. Pulling a dense variable from a parameter server to a worker: 1, 16, 64 and 256 MB.

Between two timed steps one row of the variable is written, untimed, so that every timed step has to bring the whole
variable and none can be answered from what the worker got before. The last case leaves the variable alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import harness
import numpy as np
from harness import PS_WORKER, Case, Context, Measure, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

#: Floats in a row: 4 KB.
COLUMNS = 1024
MEGABYTE = 1_000_000


def rows_of(megabytes: int) -> int:
    return megabytes * MEGABYTE // (4 * COLUMNS)


def pull(megabytes: int, *, written: bool = True, read: bool = False) -> Callable[[Context], Measure]:
    """The worker reads one corner of the variable, which makes the ps send all of it and costs nothing else.

    With `read` it sums all elements, so that memory mapped lazily is read as well.
    """
    rows = rows_of(megabytes)

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        with ctx.building(graph):
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(tf.fill([rows, COLUMNS], 0.5), name="v")
                touch = tf.scatter_add(v, [0], np.ones([1, COLUMNS], np.float32)).op
            with tf.device("/job:worker/task:0"):
                whole = tf.identity(v)
                last = tf.slice(whole, [rows - 1, COLUMNS - 4], [1, 4])
                first = tf.slice(whole, [0, 0], [1, 4])
                total = tf.reduce_sum(whole, 1)
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init)

        def result() -> dict[str, object]:
            found = {"total": sess.run(total), "last": sess.run(last)}
            for count in range(3):
                sess.run(touch)
                found[f"first after {count + 1} writes"] = sess.run(first)
            return found

        return Measure(
            step=lambda: sess.run(total if read else last),
            result=result,
            between=(lambda: sess.run(touch)) if written else None,
        )

    return build


#: The demands on shared memory and TCP are at 64 MB; the other sizes show the curve.
WANTED = {"tenfold": 8.0, "tenfold tcp": 2.0}


def case(megabytes: int, demands: dict[str, float]) -> Case:
    work = rows_of(megabytes) * COLUMNS * 4
    return Case(f"pull {megabytes} MB", PS_WORKER, pull(megabytes), demands, work=work, unit="B")


SUBJECT = Subject(
    number="4",
    module="dense_pull",
    title="dense pull, ps → worker",
    sides=(harness.TENFOLD, harness.TENFOLD_TCP, harness.TENFOLD_GRPC, harness.TENSORFLOW, harness.TENSORFLOW_TUNED),
    cases=(
        case(1, WANTED),
        case(16, WANTED),
        case(64, WANTED),
        case(256, WANTED),
        Case(
            "pull 64 MB, not written since",
            PS_WORKER,
            pull(64, written=False),
            work=rows_of(64) * COLUMNS * 4,
            unit="B",
            note="nothing writes the variable between the steps",
        ),
        Case(
            "pull 64 MB and add it up",
            PS_WORKER,
            pull(64, read=True),
            work=rows_of(64) * COLUMNS * 4,
            unit="B",
            note="the worker reads every element, on all sides by a kernel of its own",
        ),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
