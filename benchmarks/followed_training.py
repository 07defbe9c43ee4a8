#!/usr/bin/env python3
"""From push to answer: how long an update on a parameter server takes to be in what a model answers that follows it.

A program trains a table on two parameter servers, so many touched rows a second, and saves increments; a model on a
task of another cluster follows it, and a client asks that model all the time. Each step also changes one row by 1, so
an answer tells which push it has. A push begins when its step does. All are processes of their own.

    python benchmarks/followed_training.py [--rows 1000000] [--touched 10000] [--seconds 120] [--increments 0.5]
                                           [--whole 30] [--json FILE]

Printed: seconds from push to answer, over all pushes; those from push to saved file, a part of them; milliseconds of
an answer while the model follows, and before it; processor seconds a second of all that serves.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import tenfold as tf
from support.task_processes import static_cluster
from tenfold.cli.local import CONTROL, LocalCluster
from tenfold.control import ControlClient

WIDTH, STEPS_PER_SECOND, FILLED_AT_ONCE, ASKED = 16, 10, 20_000, 256
#: Seconds for what is under way when the training ends.
PATIENCE = 120.0


class Net:
    """The table of items, a table of one row that counts, and a small dense layer."""

    def __init__(self, parts: int) -> None:
        divide = tf.fixed_size_partitioner(parts)
        item = tf.get_embedding_variable("item", WIDTH, partitioner=divide)
        clock = tf.get_embedding_variable("clock", 1, initializer=tf.zeros_initializer())
        layer = tf.get_variable("layer", [WIDTH, 64])
        self.ids = tf.placeholder(tf.int64, [None], name="ids")
        first = tf.nn.embedding_lookup(clock, tf.constant([0], tf.int64))
        self.pushes = tf.reshape(-first, [])
        self.score = tf.reduce_sum(tf.matmul(tf.nn.embedding_lookup(item, self.ids), layer), axis=1)
        self.losses = tf.reduce_mean(tf.square(self.score - 1.0)), tf.reduce_sum(first)


def export(folder: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        net = Net(1)
        tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        outputs = {"score": net.score, "pushes": net.pushes}
        tf.saved_model.simple_save(session, folder, inputs={"ids": net.ids}, outputs=outputs)


def train(target: str, folder: str, options: argparse.Namespace) -> None:
    """Says "ready" once the table is there; then, from a line on, trains for so long; prints when each push began."""
    chance = np.random.default_rng(1)
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
    with tf.Graph().as_default():
        with tf.device(setter):
            net = Net(2)
            step = tf.train.get_or_create_global_step()
            learn = tf.train.AdagradOptimizer(0.01).minimize(net.losses[0])
            with tf.control_dependencies([learn]):
                # the push is over when this one is
                op = tf.train.GradientDescentOptimizer(1.0).minimize(net.losses[1], global_step=step)
        with tf.train.MonitoredTrainingSession(
            target,
            checkpoint_dir=folder,
            save_checkpoint_secs=options.whole,
            save_incremental_checkpoint_secs=options.increments,
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:
            known = np.arange(options.rows) * 7919
            done = 0
            for i in range(0, options.rows, FILLED_AT_ONCE):
                session.run(op, {net.ids: known[i : i + FILLED_AT_ONCE]})
                done += 1
            print("ready", flush=True)
            sys.stdin.readline()
            each = options.touched // STEPS_PER_SECOND
            pushes, begin, rows = [], time.monotonic(), 0
            while (now := time.monotonic()) < begin + options.seconds:
                # what a save has held up is made up for
                if rows >= (now - begin) * options.touched:
                    time.sleep((rows / options.touched) - (now - begin) + 1e-4)
                    continue
                pushes.append((done + 1, time.monotonic()))
                session.run(op, {net.ids: chance.choice(known, each)})
                done, rows = done + 1, rows + each
            print(json.dumps({"pushes": pushes, "rows_a_second": rows / (time.monotonic() - begin)}), flush=True)


def ask(url: str, seconds: float, until: threading.Event) -> tuple[list[tuple[int, float]], list[float]]:
    """(newest push that an answer has, when it came) for each change, and the milliseconds of all answers."""
    seen: list[tuple[int, float]] = []
    took = []
    ids = np.arange(ASKED) * 7919
    with ControlClient(url) as control:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until.is_set():
            begin = time.monotonic()
            found = control.infer("item", {"ids": ids})
            now = time.monotonic()
            took.append(1000 * (now - begin))
            if not seen or int(found["pushes"]) > seen[-1][0]:
                seen.append((int(found["pushes"]), now))
            time.sleep(0.005)
    return seen, took


def processor(pids: list[int]) -> float:
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in pids]
    return sum(int(user) + int(system) for user, system in ticks) / os.sysconf("SC_CLK_TCK")


def shares(values: list[float]) -> dict[str, float]:
    cuts = np.quantile(values, [0.5, 0.9, 0.99, 1])
    return dict(zip(("p50", "p90", "p99", "most"), (round(float(each), 3) for each in cuts), strict=True))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        export(f"{folder}/models/item/1")
        training = f"{folder}/trainings/item"
        with (
            static_cluster(ps=2, worker=1) as tasks,
            LocalCluster(ps=0, workers=1, models=f"{folder}/models", trainings=f"{folder}/trainings") as serving,
            ControlClient(serving.control_url) as control,
        ):
            names = ("rows", "touched", "seconds", "increments", "whole")
            given = [f"--{name}={getattr(options, name)}" for name in names]
            command = [sys.executable, __file__, *given, "--train", tasks.target("worker", 0), "--folder", training]
            trainer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert trainer.stdin is not None
            assert trainer.stdout is not None
            try:
                assert trainer.stdout.readline() == "ready\n"
                session = control.register_model("item", follows="item", timeout=PATIENCE).session
                _, quiet = ask(serving.control_url, 10.0, threading.Event())
                pids = [serving.children.pid(name) for name in (CONTROL, "worker/0")]
                used, begin = processor(pids), time.monotonic()
                trainer.stdin.write("go\n")
                trainer.stdin.flush()
                told: list[str] = []
                over = threading.Event()

                def listen() -> None:
                    told.append(trainer.stdout.readline())  # type: ignore[union-attr]
                    time.sleep(3.0)
                    over.set()

                threading.Thread(target=listen, daemon=True).start()
                seen, took = ask(serving.control_url, options.seconds + PATIENCE, over)
                used = (processor(pids) - used) / (time.monotonic() - begin)
                following = control.model("item")
            finally:
                trainer.kill()
                trainer.wait()
        found = json.loads(told[0])
        waited = []
        at = 0
        last = seen[-1][0]
        for number, pushed in found["pushes"]:
            while at < len(seen) and seen[at][0] < number:
                at += 1
            if at == len(seen):
                break
            waited.append(seen[at][1] - pushed)
        assert following.following is not None
        return {
            "pushes": len(found["pushes"]),
            "of which answered": len(waited),
            "rows a second": round(found["rows_a_second"]),
            "seconds from push to answer": shares(waited),
            "increments": following.following.increments,
            "rows served": following.following.rows,
            "in one session": following.session == session,
            "answers": len(took),
            "milliseconds of an answer": shares(took),
            "before": shares(quiet),
            "median": round(statistics.median(waited), 3),
            "processor seconds a second": round(used, 2),
            "load": os.getloadavg()[0],
            "last push answered": last,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--touched", type=int, default=10_000, help="rows a second")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--increments", type=float, default=0.5, help="seconds from one to the next")
    parser.add_argument("--whole", type=float, default=30.0, help="seconds from one whole checkpoint to the next")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train, options.folder, options)
        return
    found = measure(options)
    for name, value in found.items():
        print(f"{name}: {value}")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
