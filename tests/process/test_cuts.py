"""Saves while two workers train asynchronously on two parameter servers, some of which end by a kill -9.

Each step looks up and updates as many ids on each parameter server, in a table with momentum 1 and a rate of 1, and
takes 1 from the slots of two variables of each. So the slot of a key is the number of its updates, its weight is
settled by that number, all slots of a server come to its variables times the ids of a step, and the global step is the
variables of its server.
Every save is read from its files, every restore from the servers.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.task_processes import PATIENCE, Tasks, static_cluster
from tenfold.train.checkpoint_chain import SUB_INCR_CKPT_DIR, increments_after
from tenfold_core.checkpoint import BundleReader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SERVERS, WORKERS, WIDTH = 2, 2, 4
#: Ids of a step on each server, and all that there are.
BATCH, KNOWN = 16, 3000
#: A whole checkpoint comes after so many increments.
INCREMENTS = 9
#: Of the variables.
KINDS = ("reference", "resource")
#: Who may be killed: a parameter server, or the chief.
VICTIMS = (("ps", 0), ("ps", 1), ("worker", 0))


class Program:
    """What one worker runs."""

    def __init__(self, worker: int) -> None:
        self.graph = tf.Graph()
        setter = tf.train.replica_device_setter(ps_tasks=SERVERS, worker_device=f"/job:worker/task:{worker}")
        with self.graph.as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            self.ids = tf.placeholder(tf.int64, [SERVERS * BATCH])
            divide = tf.fixed_size_partitioner(SERVERS)
            table = tf.get_embedding_variable("v", WIDTH, initializer=tf.zeros_initializer(), partitioner=divide)
            #: The part of each server.
            self.parts = {int(part.device[-1]): part.op.name for part in table}
            #: Fetched, so that rows are looked up: their gradients do not need them.
            self.loss = loss = tf.reduce_sum(tf.nn.embedding_lookup(table, self.ids))
            for server in range(SERVERS):
                with tf.device(f"/job:ps/task:{server}"):
                    for kind in KINDS:
                        zeros, resource = tf.zeros_initializer(), kind == "resource"
                        loss += -tf.get_variable(f"{kind}{server}", [], initializer=zeros, use_resource=resource)
            self.train = tf.train.MomentumOptimizer(1.0, 1.0).minimize(loss, global_step=step)
            #: Of the chief: a saver that is of no chain, and what has those that are.
            self.other = tf.train.Saver(sharded=True) if not worker else None
            self.scaffold = tf.train.Scaffold(incremental_save_restore=True).finalize() if not worker else None


@dataclass(frozen=True)
class State:
    """What a chain of saves has."""

    #: By server and key: weights, slots, version, frequency.
    rows: list[dict[int, tuple[list[float], list[float], int, int]]]
    #: By name.
    variables: dict[str, float]

    @staticmethod
    def of(prefixes: Sequence[str], parts: dict[int, str]) -> State:
        rows: list[dict[int, Any]] = [{} for _ in range(SERVERS)]
        variables: dict[str, float] = {}
        for prefix in prefixes:
            with BundleReader(prefix) as reader:
                for server, part in parts.items():
                    kind = "-sparse_incr_" if reader.contains(f"{part}-sparse_incr_keys") else "-"
                    both = part, f"{part}/Momentum"
                    keys, others = (reader.read(f"{name}{kind}keys") for name in both)
                    assert keys.tolist() == others.tolist(), "weights and slots of the same keys"
                    values = [reader.read(f"{name}{kind}values").tolist() for name in both]
                    numbers = [reader.read(f"{part}{kind}{number}").tolist() for number in ("versions", "freqs")]
                    rows[server] |= dict(zip(keys.tolist(), zip(*values, *numbers, strict=True), strict=True))
                names = [f"{kind}{server}/Momentum" for kind in KINDS for server in range(SERVERS)]
                variables |= {name: float(reader.read(name)) for name in ("global_step", *names)}
        return State(rows, variables)

    def check(self, disturbances: int) -> None:
        """Raises AssertionError for what no single moment of each server has. `disturbances`: restores before it."""
        assert self.variables["global_step"] == self.variables["reference0/Momentum"] * -1
        for server, rows in enumerate(self.rows):
            steps = -self.variables[f"reference{server}/Momentum"]
            assert -self.variables[f"resource{server}/Momentum"] == steps, "a step's updates of variables"
            updates = 0.0
            for key, (weights, slots, version, freq) in rows.items():
                count = slots[0]
                assert slots == [count] * WIDTH, key
                assert weights == [-count * (count + 1) / 2] * WIDTH, f"{key}: {count} updates"
                # a lookup of a step that is under way, and of those that came to nothing
                assert count <= freq <= count + WORKERS * (disturbances + 1), key
                assert (version >= 0) == (count > 0), key
                assert server or version < self.variables["global_step"], "a row's step and the global step"
                updates += count
            assert updates == steps * BATCH, "a step's rows and its variables"


class Training:
    """Workers that train until they are told to stop, and what they save."""

    def __init__(self, tasks: Tasks, folder: str, seed: int) -> None:
        self.tasks, self.folder = tasks, folder
        self.chance = random.Random(seed)
        self.programs = [Program(worker) for worker in range(WORKERS)]
        self.parts = self.programs[0].parts
        known = np.random.default_rng(seed).integers(-(1 << 62), 1 << 62, KNOWN)
        #: The ids of each server.
        self.known = [known[known % 1000 % SERVERS == part] for part in range(SERVERS)]
        #: Seconds of each step, and when it began.
        self.took: list[tuple[float, float]] = []
        self.stepped = threading.Condition()
        self.stop = threading.Event()
        self.threads: list[threading.Thread] = []
        self.sessions: list[Any] = []
        self.restores = 0

    @property
    def chief(self) -> Any:
        return self.sessions[0]

    @property
    def savers(self) -> tuple[Any, Any]:
        scaffold = self.programs[0].scaffold
        assert scaffold is not None
        return scaffold.saver, scaffold._incr_saver

    def connect(self) -> None:
        options = tf.ConfigProto(operation_timeout_in_ms=int(PATIENCE * 1000))
        self.sessions = [
            tf.Session(self.tasks.target("worker", worker), graph=program.graph, config=options)
            for worker, program in enumerate(self.programs)
        ]

    def go_on(self) -> None:
        for session in self.sessions:
            session.run("global_step:0")  # a session is made while all tasks are there
        self.stop.clear()
        seeds = [self.chance.randrange(1 << 30) for _ in range(WORKERS)]
        self.threads = [threading.Thread(target=self._train, args=each) for each in enumerate(seeds)]
        for thread in self.threads:
            thread.start()

    def _train(self, worker: int, seed: int) -> None:
        program, session, chance = self.programs[worker], self.sessions[worker], np.random.default_rng(seed)
        while not self.stop.is_set():
            ids = np.concatenate([chance.choice(each, BATCH, replace=False) for each in self.known])
            begin = time.monotonic()
            try:
                session.run([program.train, program.loss], {program.ids: ids})
            except tf.errors.OpError:
                return  # a task was killed: who killed it knows
            with self.stepped:
                self.took.append((begin, time.monotonic() - begin))
                self.stepped.notify_all()

    def wait_for_steps(self, count: int) -> None:
        """Until so many more steps have ended."""
        with self.stepped:
            last = len(self.took) + count
            assert self.stepped.wait_for(lambda: len(self.took) >= last, PATIENCE), "nobody trains"

    def halt(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a step hangs"
        for session in self.sessions:
            with contextlib.suppress(tf.errors.OpError):
                session.close()

    def save(self, number: int, saved: list[str | None]) -> None:
        """Adds the prefix; None where a task was killed meanwhile."""
        saver, increments = self.savers
        try:
            if number % (INCREMENTS + 1):
                path = os.path.join(self.folder, SUB_INCR_CKPT_DIR, "incremental_model.ckpt")
                saved.append(increments.incremental_save(self.chief, path, global_step=number))
            else:
                saved.append(saver.save(self.chief, os.path.join(self.folder, "model.ckpt"), global_step=number))
        except tf.errors.OpError:
            saved.append(None)

    def chain(self) -> list[str]:
        """What a restore would read."""
        full = tf.train.latest_checkpoint(self.folder)
        assert full is not None
        return [full, *increments_after(full, self.folder)]

    def recover(self, victim: tuple[str, int]) -> State:
        """After a kill: the state that all tasks have come back to, and that the saves have."""
        self.halt()
        self.tasks.children.forget("/".join(map(str, victim)))
        self.tasks.start(victim)
        self.connect()
        self.restores += 1
        chain, (saver, increments) = self.chain(), self.savers
        saver.restore(self.chief, chain[0])
        assert increments.recover_incr_checkpoints(self.chief, self.folder) == chain[1:]
        other = self.programs[0].other
        assert other is not None
        again = other.save(self.chief, os.path.join(self.folder, "again", "model.ckpt"), write_state=False)
        saved, restored = State.of(chain, self.parts), State.of([again], self.parts)
        assert restored == saved, "what is restored is the cut"
        return saved


def run(folder: str, saves: int, seed: int, kills: float) -> tuple[int, int, Training]:
    """Trains and saves, and kills a task during a part of the saves; how many saves were good, and how many kills."""
    good, killed = 0, 0
    os.makedirs(os.path.join(folder, "again"))
    with static_cluster(ps=SERVERS, worker=WORKERS) as tasks:
        training = Training(tasks, folder, seed)
        chance = training.chance
        training.connect()
        scaffold = training.programs[0].scaffold
        assert scaffold is not None
        training.chief.run(scaffold.init_op)
        chain: list[str] = []
        training.go_on()
        for number in range(saves):
            saving: list[str | None] = []
            thread = threading.Thread(target=training.save, args=(number, saving))
            victim = chance.choice(VICTIMS) if number and chance.random() < kills else None
            thread.start()
            training.wait_for_steps(chance.randrange(4))
            if victim is not None:
                tasks.kill(*victim)
            thread.join(PATIENCE)
            assert saving, "a save hangs"
            if victim is not None:
                killed += 1
                training.recover(victim).check(training.restores)
                chain = training.chain()
                training.go_on()
                continue
            (saved,) = saving
            assert saved is not None, f"save {number} failed"
            good += 1
            chain = [*chain, saved] if number % (INCREMENTS + 1) else [saved]
            State.of(chain, training.parts).check(training.restores)
        training.halt()
    return good, killed, training


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables have versions and frequencies."""
    monkeypatch.setenv("TF_RECORD_FREQ", "1")
    monkeypatch.setenv("TF_RECORD_VERSION", "1")


@pytest.mark.timeout(300)
def test_saves_are_cuts(tmp_path: Path) -> None:
    good, killed, training = run(str(tmp_path), 14, seed=79, kills=0.2)
    assert good + killed == 14
    assert killed == len(VICTIMS), "each once"
    assert len(training.took) > good


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_thousand_saves_are_cuts(tmp_path: Path) -> None:
    good, killed, training = run(str(tmp_path), 1000, seed=4, kills=0.05)
    print(f"{good} saves, {killed} kills, {len(training.took)} steps")
    assert good + killed == 1000
    assert killed >= 20
