"""Steps of two workers while checkpoints are saved, on two parameter servers: how much longer the longest one is.

A table has so many rows of 16 floats and Adagrad's slot on each server, by raw ids, or as a static variable of two
parts. Both workers train asynchronously; beside the first one's steps a thread of it saves nothing, whole checkpoints
or increments, one after the other, in turns. Steps that overlap a save count, or all where nothing is saved. Wall time
by step, of both workers; processor time of all processes by the steps of a turn. Runs under Python 3.7, too.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Measure, SideFailedError
from harness.processes import Deployment
from models.recommenders import ACCUMULATED, RATE
from models.tables import Tables
from recommenders_programs import BY_ID, STATIC, TWO_PS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness import Context, Effort, Wish

SIDES = (BY_ID, STATIC)
#: Elements of a row; examples of a batch, ids of each, batches, hidden units; batches' worth of rows made at once.
WIDTH, BATCH, IDS, BATCHES, HIDDEN = 16, 1024, 26, 32, (256, 128)
FILLED_AT_ONCE = 4
#: Rows on each server: of a look, and of a report.
QUICK, FULL = 200_000, 2_000_000
#: What is saved in the turns.
KINDS = ("nothing", "whole", "increments")
#: Turns of each kind, and seconds of one: of a look, and of a report. The first turn is to run in, and does not count.
TURNS = {QUICK: (1, 2.0), FULL: (4, 8.0)}
_RUN_IN = "run in"
#: The longest step in a save is at most so many times the median.
LONGEST = 1.3
_LIMIT_S = 600.0


class Trainer:
    """One worker. The first one fills the table, and saves."""

    def __init__(self, ctx: Context, rows: int) -> None:
        self._ctx, tf, by_id = ctx, ctx.tf, ctx.side.tables == "by id"
        every = rows * len(ctx.cluster["ps"])
        graph = tf.Graph()
        setter = tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{ctx.index}", cluster=tf.train.ClusterSpec(ctx.cluster)
        )
        with ctx.building(graph):
            with tf.device(setter):
                tables = Tables(tf, by_id, len(ctx.cluster["ps"]))
                self._ids = tf.placeholder(tf.int64, [None, IDS])
                found = tables.looked_up(tables.table("table", every, WIDTH, 0), self._ids)
                x = tf.reshape(found, [-1, IDS * WIDTH])
                for number, units in enumerate(HIDDEN):
                    x = tf.nn.relu(tf.matmul(x, tf.get_variable(f"layer{number}", [x.shape[1], units])))
                self._step = tf.train.get_or_create_global_step()
                self._train = tf.train.AdagradOptimizer(RATE, ACCUMULATED).minimize(
                    tf.reduce_mean(tf.square(x - 0.01)), global_step=self._step
                )
            if ctx.index == 0:
                from tenfold.train.incremental_saver import _get_incremental_saver

                self._saver = tf.train.Saver(sharded=True, max_to_keep=1, incremental_save_restore=True)
                self._increments = _get_incremental_saver(True, self._saver)
                init = tf.global_variables_initializer()
        self._session = ctx.session(graph)
        # raw ids are odd multiples of a large number, those of a static table are its rows
        self._known = np.arange(every, dtype=np.int64) * (0x5851F42D4C957F if by_id else 1)
        if ctx.index == 0:
            self._session.run(init)
            (ctx.folder / "saved" / ".incremental_checkpoint").mkdir(parents=True)
            for part in np.array_split(self._known[: every - every % IDS], -(-every // (FILLED_AT_ONCE * BATCH * IDS))):
                self._session.run(self._train, {self._ids: part[: part.size - part.size % IDS].reshape(-1, IDS)})
            self._save("whole", 0)
        chance = np.random.default_rng(ctx.index)
        self._batches = [chance.choice(self._known, [BATCH, IDS]) for _ in range(BATCHES)]
        self._saves = 1
        #: (begin, end) in seconds of the clock that all processes have.
        self._saved: list[tuple[float, float]] = []

    def turn(self, name: str, kind: str, seconds: float) -> list[int]:
        """Trains for so long while that is saved; nanoseconds of each step. What began and ended when is in a file."""
        over, steps = threading.Event(), []
        self._saved = []
        saver = threading.Thread(target=self._save_until, args=(over, kind))
        if self._ctx.index == 0 and kind in KINDS[1:]:
            saver.start()
        clock, run, number = time.monotonic, self._session.run, 0
        end = clock() + seconds
        while clock() < end:
            begin = clock()
            run(self._train, {self._ids: self._batches[number % BATCHES]})
            steps.append((begin, clock()))
            number += 1
        over.set()
        if saver.ident is not None:
            saver.join()
        (self._ctx.folder / name).write_text(json.dumps({"steps": steps, "saves": self._saved}))
        return [int(1e9 * (end - begin)) for begin, end in steps]

    def _save_until(self, over: threading.Event, kind: str) -> None:
        while not over.is_set():
            begin = time.monotonic()
            self._save(kind, self._saves)
            self._saved.append((begin, time.monotonic()))
            self._saves += 1

    def _save(self, kind: str, number: int) -> None:
        folder = self._ctx.folder / "saved"
        if kind == "whole":
            self._saver.save(self._session, str(folder / "model"), global_step=number, write_meta_graph=False)
        else:
            path = folder / ".incremental_checkpoint" / "incr"
            self._increments.incremental_save(self._session, str(path), global_step=number)


def turns(rows: int) -> list[str]:
    return [_RUN_IN, *[*KINDS] * TURNS[rows][0]]


def saving(rows: int) -> Callable[[Context], Measure]:
    def build(ctx: Context) -> Measure:
        trainer, left = Trainer(ctx, rows), iter(list(enumerate(turns(rows))))

        def window(seconds: float) -> list[int]:
            number, kind = next(left)
            return trainer.turn(f"{number}-{ctx.index}.json", kind, seconds)

        return Measure(lambda: None, lambda: {"rows": np.int64(rows)}, window=window)

    return build


def cases() -> Iterator[Case]:
    for rows in (QUICK, FULL):
        yield Case(
            named(rows), TWO_PS, saving(rows), sides=tuple(side.name for side in SIDES),
            note=f"{BATCH * IDS:,} lookups a step, rows of {WIDTH} floats; saves one after the other",
        )  # fmt: skip


def named(rows: int) -> str:
    return f"saves beside steps, {rows:,} rows a server"


def in_saves(steps: Sequence[tuple[float, float]], saves: Sequence[tuple[float, float]]) -> list[float]:
    """Seconds of the steps that overlap one of the saves; of all where there are none."""
    return [
        end - begin
        for begin, end in steps
        if not saves or any(begin < saved and started < end for started, saved in saves)
    ]


def rows(effort: Effort, wish: Wish, module: str) -> Iterator[dict[str, Any]]:
    """One row."""
    count = FULL if effort.thorough else QUICK
    case = next(case for case in cases() if case.name == named(count))
    if wish.only not in case.name:
        return
    found: dict[str, dict[str, dict[str, float]]] = {}
    failures: dict[str, str] = {}
    for side in SIDES:
        if wish.takes(side):
            with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
                deployment = Deployment(side, case.topology, module, wish.pythons, Path(folder))
                try:
                    deployment.wait_ready()
                    deployment.build(case, Path(folder), _LIMIT_S)
                    found[side.name] = _measured(deployment, count, Path(folder))
                except SideFailedError as error:
                    failures[side.name] = str(error)
                finally:
                    deployment.stop()
    row = harness.row_of(case, {}, {}, failures, "equal", 0.0)
    row["saves"] = found
    row["readings"] = {side: "; ".join(_text(kind, each[kind]) for kind in KINDS) for side, each in found.items()}
    for side, each in found.items():
        row["verdicts"][side] = "; ".join(
            f"{'met' if each[kind]['longest'] <= LONGEST else 'missed'}: the longest {each[kind]['longest']:.2f} "
            f"times the median of ≤ {LONGEST:g}, {kind}"
            for kind in KINDS[1:]
        )
    yield row


def _measured(deployment: Deployment, count: int, folder: Path) -> dict[str, dict[str, float]]:
    """By what was saved."""
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    saves: dict[str, list[float]] = {kind: [] for kind in KINDS}
    used: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number, kind in enumerate(turns(count)):
        answers = deployment.run(TURNS[count][1], 0, _LIMIT_S)
        if kind == _RUN_IN:
            continue
        told = [json.loads((folder / f"{number}-{index}.json").read_text()) for index in range(len(answers))]
        taken[kind] += [took for each in told for took in in_saves(each["steps"], told[0]["saves"])]
        saves[kind] += [end - begin for begin, end in told[0]["saves"]]
        steps = sum(len(each["steps"]) for each in told)
        used[kind].append(sum(answers[0]["usage"]["by_job"].values()) / steps)
    return {
        kind: {
            "steps": len(each),
            "median_ms": 1e3 * float(np.median(each)),
            "p99_ms": 1e3 * float(np.quantile(each, 0.99)),
            "longest_ms": 1e3 * max(each),
            "longest": max(each) / float(np.median(each)),
            "p99": float(np.quantile(each, 0.99)) / float(np.median(each)),
            "cpu_ms": 1e3 * float(np.median(used[kind])),
            "saves": len(saves[kind]),
            "save_s": float(np.median(saves[kind] or [0.0])),
            "load": os.getloadavg()[0],
        }
        for kind, each in taken.items()
    }


def _text(kind: str, found: dict[str, float]) -> str:
    saved = f" ({found['saves']:.0f} of {found['save_s']:.2g} s)" if found["saves"] else ""
    return (
        f"{kind}{saved}: {found['steps']:.0f} steps, median {found['median_ms']:.1f}, p99 {found['p99_ms']:.1f} "
        f"({found['p99']:.2f} times), longest {found['longest_ms']:.1f} ms ({found['longest']:.2f} times), "
        f"{found['cpu_ms']:.1f} ms of processor time a step"
    )
