"""The tables of recommenders.py alone: what a lookup costs, and a lookup with an update by Adagrad; no net around them.

What is looked up in several tables is added, and the sum is fetched.

All sides have the same ids, gradients and first weights. What was looked up after some steps is compared. Runs under
Python 3.7, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from harness import Case, Measure
from models.click_logs import raw_ids, zipf
from models.recommenders import ACCUMULATED, RATE
from models.tables import Tables
from recommenders_programs import BY_ID, COLUMN_SIDES, FUSED, FUSED_DEMAND, TASK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness import Context

WIDTH, BATCHES, COMPARED = 16, 16, 3
#: Tables, rows of each, ids for each in a step.
SHAPES = {"26 tables": (26, 70_000, 1_024), "1 table": (1, 1_000_000, 32_768)}


class Bare:
    """Tables, and two functions of a batch of ids [B, tables]: `look_up`, and `train`, which updates rows as well."""

    def __init__(self, ctx: Context, count: int, rows: int, ids: int) -> None:
        grad = (np.random.default_rng(40).standard_normal([ids, WIDTH]) * 0.1).astype(np.float32)
        if ctx.side.runtime == "peers":
            self._open_torch(ctx, count, rows, grad)
        else:
            self._open(ctx, count, rows, grad)

    def _open(self, ctx: Context, count: int, rows: int, grad: Any) -> None:
        tf, graph = ctx.tf, ctx.tf.Graph()
        with ctx.building(graph):
            tables = Tables(tf, ctx.side.tables == "by id")
            keys = tf.placeholder(tf.int64, [len(grad), count])
            each = tf.unstack(tables.hashed(keys, [rows] * count), axis=1)
            made = [tables.table(f"table{number}", rows, WIDTH, number) for number in range(count)]
            found = [tables.looked_up(table, ids) for table, ids in zip(made, each)]
            # something is made of the rows: those of a target alone need not be looked up
            total = tf.add_n(found) if count > 1 else found[0]
            # a variable: a constant would be folded with what follows
            given = tf.Variable(grad, trainable=False)
            size = tf.constant([rows, WIDTH], tf.int64)
            slices = [(tf.IndexedSlices(tf.identity(given), ids, size), table) for table, ids in zip(made, each)]
            with tf.control_dependencies([total]):
                updated = tf.train.AdagradOptimizer(RATE, ACCUMULATED).apply_gradients(slices)
            init = tf.global_variables_initializer()
        run = ctx.session(graph).run
        run(init)
        self.look_up: Callable[[Any], Any] = lambda batch: run(total, {keys: batch})
        self.train: Callable[[Any], Any] = lambda batch: run([total, updated], {keys: batch})[0]
        self.rows: Callable[[Any], Any] = lambda batch: run(found, {keys: batch})

    def _open_torch(self, ctx: Context, count: int, rows: int, grad: Any) -> None:
        from models.in_torch.parts import Parameters
        from models.in_torch.tables import Tables as TorchTables

        torch = ctx.tf
        made = Parameters(torch, np.random.default_rng(0))
        looked_up = TorchTables(torch, made, ctx.side.tables == "fused", RATE).group([rows] * count, WIDTH, 0)
        given = torch.from_numpy(grad)
        optimizer = torch.optim.Adagrad(made.all, RATE, initial_accumulator_value=ACCUMULATED) if made.all else None

        def rows_of(batch: Any) -> Any:
            with torch.no_grad():
                return [each.numpy() for each in looked_up(torch.from_numpy(batch))]

        def look_up(batch: Any) -> Any:
            with torch.no_grad():
                return sum(looked_up(torch.from_numpy(batch))).numpy()

        def train(batch: Any) -> Any:
            if optimizer is not None:
                optimizer.zero_grad(set_to_none=True)
            total = sum(looked_up(torch.from_numpy(batch)))
            # each of the rows that were added gets this gradient
            total.backward(given)
            if optimizer is not None:
                optimizer.step()
            return total.detach().numpy()

        self.look_up, self.train, self.rows = look_up, train, rows_of


def bare(shape: str, *, trains: bool) -> Callable[[Context], Measure]:
    count, rows, ids = SHAPES[shape]

    def build(ctx: Context) -> Measure:
        choose = np.random.default_rng(41)
        ranks = zipf(choose.random([BATCHES, ids, count]), rows)
        batches = np.stack([raw_ids(ranks[:, :, c], c, rows, True) for c in range(count)], 2)
        tables = Bare(ctx, count, rows, ids)
        work, number = tables.train if trains else tables.look_up, 0

        def step() -> None:
            nonlocal number
            number += 1
            work(batches[number % BATCHES])

        def result() -> dict[str, Any]:
            for _ in range(COMPARED):
                step()
            return {"rows": np.stack(tables.rows(batches[0]))}

        return Measure(step, result, run_in=1)

    return build


def cases() -> Iterator[Case]:
    for shape, (count, _, ids) in SHAPES.items():
        for trains in (False, True):
            yield Case(
                f"{'look up and update' if trains else 'look up'}, {shape}", TASK, bare(shape, trains=trains),
                {BY_ID.name: 1.0}, peers={FUSED.name: FUSED_DEMAND}, sides=(*COLUMN_SIDES, FUSED.name),
                work=count * ids, unit="id", rtol=1e-3, warm_up_s=0.2,
                note=f"{ids:,} ids for each table by Zipf's law, rows of {WIDTH}",
            )  # fmt: skip
