"""A served model that follows a training: every answer is of one saved moment, to the bit, whatever dies or breaks.

The training has two parameter servers and a worker, the serving side a control service and a task, all processes of
their own. The test is the chief: it saves an increment after each step, so the state of every global step is known.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import tenfold as tf
from support.task_processes import PATIENCE, Tasks, stand_still, static_cluster
from tenfold.cli.local import CONTROL, LocalCluster
from tenfold.cli.main import cli
from tenfold.control import ControlClient
from tenfold.train.checkpoint_chain import increments_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WIDTH, BATCHES, LARGE = 4, 40, 60_000
#: Seconds between two questions: without them two cores would do nothing but answer.
PAUSE = 0.01
KNOWN = np.random.default_rng(1).integers(-(1 << 62), 1 << 62, 60)
IDS = [np.random.default_rng(step).choice(KNOWN, 8) for step in range(BATCHES)]


class Graph:
    """A table that filters and evicts, one without options, and ordinary variables; in `parts` parts."""

    def __init__(self, parts: int, *, training: bool, container: str = "") -> None:
        self.graph = tf.Graph()
        setter = tf.train.replica_device_setter(ps_tasks=parts, worker_device="/job:worker/task:0")
        with self.graph.as_default(), tf.device(setter if training else None), tf.container(container):
            option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(2), evict_option=tf.GlobalStepEvict(6))
            divide = tf.fixed_size_partitioner(parts)
            rare, often = (
                tf.get_embedding_variable(
                    name, WIDTH, initializer=tf.ones_initializer(), partitioner=divide, ev_option=chosen
                )
                for name, chosen in (("rare", option), ("often", tf.EmbeddingVariableOption()))
            )
            dense = tf.get_variable("w", [WIDTH], initializer=tf.ones_initializer(), use_resource=True)
            # large enough that a change takes a while
            net = tf.get_variable("net", [LARGE // 10, 10], initializer=tf.zeros_initializer(), partitioner=divide)
            self.step = tf.train.get_or_create_global_step()
            self.ids = tf.placeholder(tf.int64, [None])
            self.outputs = {
                "rare": tf.nn.embedding_lookup(rare, self.ids),
                "often": tf.nn.embedding_lookup(often, self.ids),
                "w": tf.identity(dense),
                "net": tf.reduce_sum(net.as_tensor(), axis=0),
                "step": tf.identity(self.step),
            }
            if training:
                batch = tf.gather(tf.constant(np.stack(IDS)), self.step % BATCHES)
                rows = tf.nn.embedding_lookup(rare, batch) * tf.nn.embedding_lookup(often, batch)
                loss = tf.reduce_sum(rows * dense) + tf.reduce_sum(net.as_tensor())
                self.train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=self.step)

    def export(self, folder: Path) -> None:
        """A SavedModel of values that no training has saved."""
        with self.graph.as_default(), tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.saved_model.simple_save(session, str(folder), inputs={"ids": self.ids}, outputs=self.outputs)


class Answers:
    """Asks the model all the time, in threads; every answer is by the global step that it says it is of."""

    def __init__(self, control_url: str, model: str) -> None:
        self.by_step: dict[int, dict[str, Any]] = {}
        self.failures: list[BaseException] = []
        self.count = 0
        self._url, self._model, self._end = control_url, model, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(2)]

    def __enter__(self) -> Answers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _ask(self) -> None:
        try:
            with ControlClient(self._url) as control:
                while not self._end.wait(PAUSE):
                    found = control.infer(self._model, {"ids": KNOWN})
                    self.count += 1
                    known = self.by_step.setdefault(int(found["step"]), found)
                    for name, value in found.items():
                        np.testing.assert_array_equal(value, known[name], f"{name} at {found['step']}")
        except BaseException as error:
            self.failures.append(error)


def wait_for(what: Callable[[], Any], text: str) -> Any:
    deadline, never = time.monotonic() + PATIENCE, threading.Event()
    while not (found := what()):
        assert time.monotonic() < deadline, f"not in {PATIENCE} s: {text}"
        never.wait(PAUSE)
    return found


def restored(folder: str) -> dict[str, Any]:
    """What the model would answer that a program restores from the folder as a training does."""
    graph = Graph(1, training=False)
    with pytest.MonkeyPatch.context() as patch, graph.graph.as_default(), tf.Session() as session:
        patch.setenv("INFERENCE_MODE", "1")
        scaffold = tf.train.Scaffold(incremental_save_restore=True).finalize()
        assert scaffold.saver is not None
        assert scaffold._incr_saver is not None
        session.run(scaffold.init_op)
        scaffold.saver.restore(session, tf.train.latest_checkpoint(folder))
        scaffold._incr_saver.recover_incr_checkpoints(session, folder)
        found: dict[str, Any] = session.run(graph.outputs, {graph.ids: KNOWN})
        return found


class Training:
    """The chief's session."""

    def __init__(self, tasks: Tasks, folder: str, whole_every: int) -> None:
        # each has variables of its own on the servers of this file
        self.program, self.folder = Graph(2, training=True, container=os.path.basename(folder)), folder
        self._arguments = {
            "master": tasks.target("worker", 0),
            "checkpoint_dir": folder,
            "save_checkpoint_steps": whole_every,
            "save_incremental_checkpoint_secs": 1e-9,
            "save_summaries_steps": None,
            "log_step_count_steps": None,
        }

    def __enter__(self) -> Training:
        self._graph = self.program.graph.as_default()
        self._graph.__enter__()
        self._session = tf.train.MonitoredTrainingSession(**self._arguments)
        self._session.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._session.__exit__(*error)
        self._graph.__exit__(*error)

    def run_to_increment(self) -> int:
        """The global step after one more, or two where that saves a whole checkpoint as well as an increment."""
        step = self.run(1)
        return self.run(1) if os.path.exists(os.path.join(self.folder, f"model.ckpt-{step}.index")) else step

    def run(self, steps: int) -> int:
        """The global step after so many more."""
        for _ in range(steps):
            self._session.run(self.program.train)
        return int(self._session.run_step_fn(lambda step_context: step_context.session.run(self.program.step)))


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


def serve(models: Path, trainings: Path) -> LocalCluster:
    return LocalCluster(ps=0, workers=1, models=str(models), trainings=str(trainings))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of models, one for each test, and of trainings."""
    root = tmp_path_factory.mktemp("followed")
    models = root / "models"
    Graph(1, training=False).export(models / "ctr" / "1")
    for name in ("broken", "ended"):
        shutil.copytree(models / "ctr", models / name)
    return models, root / "trainings"


@pytest.fixture(scope="module")
def tasks() -> Iterator[Tasks]:
    """Those of all trainings."""
    with static_cluster(ps=2, worker=1) as running:
        yield running


@pytest.fixture(scope="module")
def serving(folders: tuple[Path, Path]) -> Iterator[LocalCluster]:
    """For those who kill nothing of it."""
    with serve(*folders) as running:
        yield running


@pytest.mark.timeout(300)
def test_served_while_it_trains_killed_and_caught_up(tasks: Tasks, folders: tuple[Path, Path]) -> None:
    models, trainings = folders
    folder = str(trainings / "ctr")
    with Training(tasks, folder, 10_000) as training:
        training.run(2)
        expected = {}
        with serve(models, trainings) as serving, ControlClient(serving.control_url) as control:
            arguments = ["model", "register", "ctr", "--follows", "ctr", "--control", serving.control_url]
            told = CliRunner().invoke(cli, arguments)
            assert told.exit_code == 0, told.output
            assert f"follows {folder}" in told.output
            session = control.model("ctr").session
            with Answers(serving.control_url, "ctr") as answers:
                for turn in range(8):
                    if turn == 4:
                        # it comes back from the last increment, and a whole checkpoint is saved of that state
                        tasks.kill("ps", 1)
                        tasks.children.forget("ps/1")
                        tasks.start(("ps", 1))
                    step = training.run(1)
                    wait_for(lambda step=step: answers.failures or step in answers.by_step, f"an answer of {step}")
                    expected[step] = restored(folder)
            if answers.failures:
                raise answers.failures[0]
            for step, state in expected.items():
                same(answers.by_step[step], state)
            known = np.unique(np.concatenate(IDS[: step - 1])).size
            # rows are counted once the state is served
            view = wait_for(
                lambda: (found := control.model("ctr")).following and found.following.rows >= known and found, "rows"
            )
            assert view.session == session
            assert view.following is not None
            assert (view.following.global_step, view.following.trouble) == (step, "")
            with urllib.request.urlopen(f"{serving.control_url}/metrics", timeout=PATIENCE) as scraped:
                figures = scraped.read().decode()
            for name, value in (("global_step", step), ("trouble", 0), ("increments", view.following.increments)):
                assert f'tenfold_model_{name}{{model="ctr"}} {float(value)}' in figures
            listed = CliRunner().invoke(cli, ["model", "list", "ctr", "--control", serving.control_url]).output
            assert f"serves incremental_model.ckpt-{step} of model.ckpt-6, global step {step}, " in listed
            for name in (CONTROL, "worker/0"):
                os.kill(serving.children.pid(name), signal.SIGKILL)
        last = training.run(3)
        with serve(models, trainings) as serving, ControlClient(serving.control_url) as control:
            wait_for(lambda: control.model("ctr").following, "following, though nobody has asked for an answer")
            found = control.infer("ctr", {"ids": KNOWN})
            assert int(found["step"]) == last
            session = control.model("ctr").session
            os.kill(serving.children.pid("worker/0"), signal.SIGKILL)
            serving.children.wait_for_exit(["worker/0"], PATIENCE)
            wait_for(lambda: not control.model("ctr").following, "news of the task")
            serving.start_task("worker", 0)
            again = wait_for(
                lambda: (found := control.model("ctr")).following and found.session != session and found,
                "following again, though nobody has asked, and the training has saved nothing",
            )
            assert again.following.global_step == last
            same(found, restored(folder))
            raw = wait_for(
                lambda: (told := control.model_metadata("ctr").parameters["following"])["behind_seconds"] == 0 and told,
                "nothing is ahead",
            )
            assert raw["global_step"] == last


@pytest.mark.timeout(300)
def test_over_whole_checkpoints_and_a_broken_link(
    tasks: Tasks, serving: LocalCluster, folders: tuple[Path, Path]
) -> None:
    """A chain that begins anew is gone over to in the same session. Where a link is broken the state before it goes on
    being served, and why is told; the next whole checkpoint is read beside it."""
    folder = str(folders[1] / "broken")
    with Training(tasks, folder, 4) as training, ControlClient(serving.control_url) as control:
        training.run(1)
        session = control.register_model("broken", follows="broken").session
        with Answers(serving.control_url, "broken") as answers:

            def seen(step: int) -> dict[str, Any]:
                return wait_for(lambda: answers.failures or answers.by_step.get(step), f"an answer of {step}")

            # each has an increment, those of whole ones, too: without it no increment leads into the next chain
            for _ in range(12):
                step = training.run(1)
                seen(step)
            assert step > 10, "there were whole ones between"
            same(seen(step), restored(folder))
            view = control.model("broken")
            assert view.session == session, "no whole checkpoint was read"
            assert view.following is not None
            assert view.following.increment is not None
            assert len(os.listdir(increments_folder(folder))) < 30, "those before are deleted"

            # the next increment is not whole when it appears: its bytes are lost, and it is listed
            good = int(control.infer("broken", {"ids": KNOWN})["step"])
            stand_still(serving.children.pid(CONTROL))
            step = training.run_to_increment()
            broken = f"incremental_model.ckpt-{step}"
            for shard in range(2):
                name = os.path.join(increments_folder(folder), f"{broken}.data-{shard:05d}-of-00002")
                with open(name, "r+b") as file:
                    file.truncate(os.path.getsize(name) // 2)
            os.kill(serving.children.pid(CONTROL), signal.SIGCONT)
            view = wait_for(
                lambda: (found := control.model("broken")).following and found.following.trouble and found, "trouble"
            )
            assert broken in view.following.trouble
            assert view.following.trouble_since <= time.time()
            assert view.following.behind_seconds >= 0
            served = int(control.infer("broken", {"ids": KNOWN})["step"])
            assert good <= served < step
            count = answers.count
            wait_for(lambda: answers.failures or answers.count > count + 10, "answers beside the trouble")

            # the next whole checkpoint, and the increments after it
            training.run(4)
            step = training.run_to_increment()
            same(seen(step), restored(folder))
            view = control.model("broken")
            assert view.session != session
            assert view.following is not None
            assert view.following.trouble == ""
        if answers.failures:
            raise answers.failures[0]


@pytest.mark.timeout(300)
def test_the_last_whole_checkpoint_of_a_training_is_read(
    tasks: Tasks, serving: LocalCluster, folders: tuple[Path, Path]
) -> None:
    """No increment follows it."""
    folder = str(folders[1] / "ended")
    with ControlClient(serving.control_url) as control:
        with pytest.raises(tf.errors.FailedPreconditionError, match="there is no folder 'ended'"):
            control.register_model("ended", follows="ended")
        os.makedirs(folder)
        with pytest.raises(tf.errors.FailedPreconditionError, match="There is no checkpoint in"):
            control.register_model("ended", follows="ended")
        with pytest.raises(tf.errors.FailedPreconditionError, match="leads out of the folder of trainings"):
            control.register_model("ended", follows="../../etc")
        with Training(tasks, folder, 10_000) as training:
            training.run(3)
            control.register_model("ended", follows="ended")
            training.run(2)
            latest = wait_for(
                lambda: (found := control.infer("ended", {"ids": KNOWN}))["step"] == 5 and found, "an answer of 5"
            )
        whole = tf.train.latest_checkpoint(folder)
        assert whole is not None
        assert whole.endswith("-5")
        # as if it had been there for a while
        os.utime(f"{whole}.index", (time.time() - 60, time.time() - 60))
        view = wait_for(
            lambda: (found := control.model("ended")).following and found.following.increment is None and found, "-5"
        )
        assert (view.following.global_step, view.following.behind_seconds) == (5, 0)
        same(control.infer("ended", {"ids": KNOWN}), latest)
        same(latest, restored(folder))
