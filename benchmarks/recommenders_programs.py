"""The programs of recommenders.py, their sides, and the cases in which their steps are timed.

A program is built by `Driven` on any side, of TensorFlow's API or torch. Runs under Python 3.7, too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Context, Measure, Topology
from models.click_logs import Ads, Shop
from models.recommenders import deepfm, din, dlrm, plain, wide_deep
from models.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from models.recommenders import Recommender

BY_ID = replace(harness.TENFOLD, name="tenfold by id", tables="by id")
STATIC = replace(harness.TENFOLD, name="tenfold static", tables="static")
FUSED = replace(harness.TORCH, name="torch fbgemm", tables="fused")
SIDES = (
    BY_ID,
    STATIC,
    harness.TENSORFLOW_115,
    harness.TENSORFLOW_115_DIRECT,
    harness.TENSORFLOW_DIRECT,
    harness.TORCH,
    FUSED,
)
SINGLE_SIDES = tuple(side.name for side in SIDES if side is not harness.TENSORFLOW_115)
COLUMN_SIDES = (BY_ID.name, STATIC.name, harness.TENSORFLOW_115_DIRECT.name)
CLUSTER_SIDES = (BY_ID.name, STATIC.name, harness.TENSORFLOW_115.name)
TASK = Topology(servers=(), clients=("worker:0",), pinned=False)
ONE_PS = Topology(servers=("ps:0",), clients=("worker:0",), pinned=False)
TWO_PS = Topology(servers=("ps:0", "ps:1"), clients=("worker:0", "worker:1"), pinned=False)
#: Batches, taken in turn; losses that are compared; examples of a batch.
BATCHES, CURVE, BATCH, SHOP_BATCH = 32, 10, 1024, 256
#: How many times TensorFlow's steps a second, on one task and over several; and FBGEMM's.
ALONE_DEMAND, CLUSTER_DEMAND, FUSED_DEMAND = 1.5, 3.0, 0.7
#: As many ids in a step, and about as many rows.
FEW_COLUMNS = Ads(1000, (70_000,) * 26)
MANY_COLUMNS = Ads(130, (9_000,) * 200)
FLAT = 1.3


@dataclass(frozen=True)
class Program:
    """A row of the table of programs."""

    build: Callable[..., Recommender]
    #: The name of its counterpart in models/in_torch/recommenders.py.
    in_torch: str
    log: Any


PROGRAMS = {
    "wide_deep": Program(wide_deep, "wide_deep", Ads(BATCH)),
    "deepfm": Program(deepfm, "deepfm", Ads(BATCH)),
    "dlrm": Program(dlrm, "dlrm", Ads(BATCH)),
    "din": Program(din, "din", Shop(SHOP_BATCH)),
    "26 columns": Program(plain, "plain", FEW_COLUMNS),
    "200 columns": Program(plain, "plain", MANY_COLUMNS),
}
NAMES = ("wide_deep", "deepfm", "dlrm", "din")


class Driven:
    """A program that is built in a client, on the rows that its log or the caller asks for, and stepped."""

    def __init__(self, ctx: Context, program: Program, rows: Sequence[int], *, is_monitored: bool = False) -> None:
        started = time.perf_counter()
        tf = ctx.tf
        if ctx.side.runtime == "peers":
            self._open_torch(ctx, program, rows)
        else:
            setter = None
            if "ps" in ctx.cluster:
                worker = f"/job:worker/task:{ctx.index}"
                setter = tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(ctx.cluster))
            graph = tf.Graph()
            with ctx.building(graph), tf.device(setter):
                tables = Tables(tf, ctx.side.tables == "by id", len(ctx.cluster.get("ps", ())) or 1)
                model = program.build(tf, program.log, rows, tables)
                init = None if is_monitored else tf.global_variables_initializer()
            self._open(ctx, graph, model, init)
        #: Seconds from the start to the session, before the first step.
        self.open_s = time.perf_counter() - started

    def _open(self, ctx: Context, graph: Any, model: Recommender, init: Any) -> None:
        if init is None:
            with ctx.building(graph):
                run = ctx.monitored(
                    [ctx.tf.train.StopAtStepHook(last_step=1_000_000_000)], log_step_count_steps=None
                ).run
        else:
            run = ctx.session(graph).run
            run(init)
        fetches = [model.loss, model.train]
        self.train: Callable[[Sequence[Any]], float] = lambda batch: float(
            run(fetches, dict(zip(model.inputs, batch)))[0]
        )
        self.scores: Callable[[Sequence[Any]], Any] = lambda batch: run(
            model.score, dict(zip(model.inputs[:-1], batch))
        )

    def _open_torch(self, ctx: Context, program: Program, rows: Sequence[int]) -> None:
        from models import in_torch
        from models.in_torch import recommenders as counterparts

        build = getattr(counterparts, program.in_torch)
        trained = build(ctx.tf, program.log, rows, ctx.side.tables == "fused")
        stepper = in_torch.Stepper(ctx.tf, trained)
        self.train = lambda batch: stepper.train(*batch)

        def scores(batch: Sequence[Any]) -> Any:
            with ctx.tf.no_grad():
                return trained.score(*map(ctx.tf.from_numpy, batch)).numpy()

        self.scores = scores


def fed(name: str, tf: Any, *, by_id: bool) -> Recommender:
    """A program in the default graph, with the batches of the first worker."""
    log = PROGRAMS[name].log
    model = PROGRAMS[name].build(tf, log, log.rows, Tables(tf, by_id))
    return replace(model, feeds=[dict(zip(model.inputs, batch)) for batch in log.batches(BATCHES, 100)])


def measured(name: str, *, is_monitored: bool = False) -> Callable[[Context], Measure]:
    """The `build` of a case that times a program's steps."""

    def build(ctx: Context) -> Measure:
        program = PROGRAMS[name]
        batches = program.log.batches(BATCHES, 100 + ctx.index)
        driven = Driven(ctx, program, program.log.rows, is_monitored=is_monitored)
        count = 0

        def step() -> float:
            nonlocal count
            count += 1
            return driven.train(batches[(count - 1) % BATCHES])

        started = time.perf_counter()
        first = step()
        first_s = driven.open_s + time.perf_counter() - started
        return Measure(
            step,
            lambda: {"losses": np.array([first, *(step() for _ in range(CURVE - 1))], np.float64)},
            run_in=2,
            first_s=first_s,
        )

    return build


def cases() -> Iterator[Case]:
    note = "static tables have as many rows as there are ids, none of which share one"
    for name in NAMES:
        log = PROGRAMS[name].log
        yield Case(
            name, TASK, measured(name), {BY_ID.name: ALONE_DEMAND}, sides=SINGLE_SIDES, work=log.batch, unit="example",
            rtol=1e-3, warm_up_s=0.8, note=note,
        )  # fmt: skip
    for columns in ("26 columns", "200 columns"):
        flat = "26 columns" if columns != "26 columns" else ""
        yield Case(
            columns, TASK, measured(columns), sides=COLUMN_SIDES, rtol=1e-3, warm_up_s=0.8, flat_with=flat,
            flat_by=FLAT, note="26,000 ids in a step",
        )  # fmt: skip
    for form, topology, names in (
        ("1 ps, 1 worker", ONE_PS, ("deepfm",)),
        ("2 ps, 2 workers", TWO_PS, NAMES),
    ):
        for name in names:
            yield Case(
                f"{name}, {form}", topology, measured(name, is_monitored=True), {BY_ID.name: CLUSTER_DEMAND},
                sides=CLUSTER_SIDES, metric="throughput", work=PROGRAMS[name].log.batch, unit="example", rtol=1e-3,
                warm_up_s=1.5, least_s=0.6, note="global steps of all workers; large tables in a part for each server",
            )  # fmt: skip
