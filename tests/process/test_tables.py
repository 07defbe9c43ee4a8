"""Real tasks tell of their tables: rows, admissions, evictions, bytes, hits; over REST, by commands, in the dashboard.

    worker/0, worker/1 ──► ps/0 (user/part_0: even ids), ps/1 (user/part_1: odd ids)

What every number has to be is known from the ids that were looked up.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

import tenfold as tf
from support.browser import chromium, missing
from support.gates import Gate
from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.cli.local import LocalCluster
from tenfold.cli.main import cli
from tenfold.control import ControlClient, Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

WIDTH = 4
#: Looked up often: of three on ps/0 one is on ps/1.
OLD = np.array([*range(2, 62, 2), *range(101, 121, 2)], np.int64)
#: Looked up once.
NEW = np.arange(200, 210, 2, dtype=np.int64)


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(ps=2, workers=2, environment={"TENFOLD_CONTROL_HEARTBEAT": "0.2"}) as running:
        yield running


@pytest.fixture
def gate() -> Iterator[Gate]:
    with contextlib.closing(Gate()) as made:
        yield made


def command(url: str, *arguments: str) -> list[str]:
    """The lines of a command that succeeds."""
    done = CliRunner().invoke(cli, [*arguments, "--control", url], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return [line.rstrip() for line in done.stdout.splitlines()]


def row(lines: Sequence[str], title: str, name: str) -> dict[str, str]:
    """Of a printed table the cells of the row that begins or ends with `name`, by column."""
    head, *rows = lines[lines.index(title) + 1 :]
    starts = [at for at in range(len(head)) if head[at] != " " and (at == 0 or head[at - 2 : at] == "  ")]
    found = next(each for each in rows if each.split()[0] == name or each.split()[-1] == name)
    ends = [*starts[1:], None]
    return {head[a:b].strip(): found[a:b].strip() for a, b in zip(starts, ends, strict=True)}


def tables_when(control: ControlClient, satisfied: Callable[[Tables], bool]) -> Tables:
    """The cluster's tables once they are as wished; looks after each heartbeat's time, which a long-poll waits out."""
    version = control.spec("default").version
    found = None
    for _ in range(150):
        found = control.jobs("default").tables
        if found is not None and satisfied(found):
            return found
        version = control.poll_spec("default", after=version, wait=0.2).version
    raise AssertionError(found)


class Trainer:
    """One worker's graph and session: a table in two parts that admits ids looked up twice, and a table of words."""

    def __init__(self, target: str, index: int) -> None:
        with tf.Graph().as_default() as graph:
            setter = tf.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter):
                options = tf.EmbeddingVariableOption(
                    filter_option=tf.CounterFilter(filter_freq=2), evict_option=tf.GlobalStepEvict(steps_to_live=3)
                )
                parts = tf.fixed_size_partitioner(2)
                table = tf.get_embedding_variable("user", WIDTH, partitioner=parts, ev_option=options)
                self.ids = tf.placeholder(tf.int64, [None])
                self.rows = tf.nn.embedding_lookup(table, self.ids)
                step = tf.train.get_or_create_global_step()
                optimizer = tf.train.AdagradOptimizer(0.1)
                self.train = optimizer.minimize(tf.reduce_sum(self.rows), global_step=step)
            with tf.device("/job:ps/task:1"):
                words = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, -1.0, shared_name="words")
                self.fill = words.insert(tf.range(7, dtype=tf.int64), tf.range(7, dtype=tf.float32))
            self.init = tf.global_variables_initializer()
            self.saver = tf.train.Saver()
        self.session = tf.Session(target, graph=graph)

    def step(self, ids: Any, times: int = 1) -> None:
        for _ in range(times):
            self.session.run(self.train, {self.ids: ids})


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_the_tables_of_a_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    url = cluster.control_url
    with contextlib.ExitStack() as stack:
        control = stack.enter_context(ControlClient(url))
        workers = [Trainer(f"grpc://{cluster.addresses['worker', index]}", index) for index in range(2)]
        for worker in workers:
            stack.enter_context(worker.session)
        workers[0].session.run(workers[0].init)
        workers[0].session.run(workers[0].fill)
        workers[0].step(OLD, 2)
        workers[1].step(OLD)
        workers[1].step(NEW)

        # 45 ids, the new ones wait; the third lookup of the old ones was the first that found weights
        def all_told(found: Tables) -> bool:
            """Not in the middle of a step."""
            return sum(each.lookups or 0 for each in found.tables) == 125 and found.rows == 52

        found = tables_when(control, all_told)
        user, words = found.tables
        parts = [control.task_status("default", "ps", index).figures for index in range(2)]
        shown = command(url, "tables")
        by_part = command(url, "tables", "--parts")
        status = command(url, "status")
        as_json = json.loads("\n".join(command(url, "tables", "--json")))
        scrape = httpx.get(f"{url}/metrics", trust_env=False, timeout=PATIENCE).text
        # the new ones go on being trained, on each parameter server; the old ones are forgotten when that is saved
        workers[0].step([*NEW, 301], 6)
        workers[1].saver.save(workers[1].session, str(tmp_path / "model"), global_step=10)
        later = tables_when(
            control, lambda found: [each.evicted for each in found.tables[:1]] == [40] and found.rows == 13
        ).tables[0]

    assert (user.name, user.kind, user.parts) == ("user", "EmbeddingVariable", 2)
    assert (user.rows, user.admitted, user.waiting, user.evicted) == (45, 40, 5, 0)
    assert (user.lookups, user.found, user.hit_rate) == (125, 40, 0.32)
    assert (user.largest, user.unevenness) == ("ps/0", round(35 * 2 / 45, 3))
    # a frequency, a version and the id itself, and with admission weights and the accumulator
    assert user.quota_bytes == 45 * (8 + 8 + 20) + 40 * 2 * 4 * WIDTH
    assert user.bytes > 45 * (8 + 8 + 8) + 40 * 2 * 4 * WIDTH
    assert (words.name, words.kind, words.rows, words.lookups) == ("words", "MutableHashTable", 7, None)
    assert (found.left_out, found.rows, found.bytes) == (0, 52, user.bytes + words.bytes)
    assert (found.largest, found.unevenness is not None) == ("ps/0", True)
    assert (later.rows, later.waiting) == (6, 0)

    assert all(part is not None for part in parts)
    assert [[table.name for table in part.tables] for part in parts if part] == [
        ["user/part_0"],
        ["user/part_1", "words"],
    ]
    assert [part.tables[0].rows for part in parts if part] == [35, 10]
    assert [(part.table_rows, part.tables_left_out) for part in parts if part] == [(35, 0), (17, 0)]

    cells = row(shown, "tables of cluster default", "user")
    assert {name: cells[name] for name in ("rows", "admitted", "waiting", "hit rate", "uneven", "parts")} == {
        "rows": "45",
        "admitted": "40",
        "waiting": "5",
        "hit rate": "32.0 %",
        "uneven": "1.56",
        "parts": "2",
    }
    assert [row(shown, "by task", f"ps/{index}")["rows"] for index in range(2)] == ["35", "17"]
    assert row(by_part, "parts of tables of cluster default", "user/part_1")["task"] == "ps/1"
    assert row(status, "tables of the cluster", "user")["rows"] == "45"
    assert as_json["tables"]["tables"][0] == user.json
    assert 'tenfold_task_table_rows{cluster="default",job="ps",task="0",table="user/part_0"} 35' in scrape
    assert 'tenfold_task_tables_rows{cluster="default",job="ps",task="1"} 17' in scrape


#: Trains until the gate says something; its ids are 0 to 29 and, on the other parameter server, 1 to 19.
TRAINER = """
import json, os, select, socket, sys
import numpy as np
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    table = tf.get_embedding_variable("item", 8, partitioner=tf.fixed_size_partitioner(2))
    step = tf.train.get_or_create_global_step()
    ids = tf.constant([*range(0, 60, 2), *range(1, 21, 2)], tf.int64)
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), name="loss")
    train = tf.train.GradientDescentOptimizer(0.001).minimize(loss, global_step=step)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
    with tf.train.MonitoredTrainingSession(server.target) as session:
        session.run([train, loss])
        gate.sendall(f"{job}/{index} {os.environ['TENFOLD_ATTEMPT']}".encode())
        while not select.select([gate], [], [], 0.02)[0]:
            session.run([train, loss])
"""


@pytest.mark.thorough
@pytest.mark.timeout(240)
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_tables_of_a_run_in_the_dashboard_and_after_its_end(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    program = [*CLI, "control", "--port", "0", "--database", str(tmp_path / "c.db"), "--allow-runs"]
    env = {"TENFOLD_CONTROL_HEARTBEAT": "0.5", "TENFOLD_CONTROL_RUNS_END_WITH_SERVICE": "1"}
    with Children() as children, chromium(tmp_path / "chromium") as browser:
        children.start("control", program, env=env)
        url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        with ControlClient(url) as control:
            run = control.submit_run(
                ["python", "trainer.py", str(gate.port)], jobs={"ps": 2, "worker": 1}, working_dir=str(tmp_path)
            ).name
            gate.wait_for("worker/0 1")
            browser.resize(1280, 900)
            browser.open(f"{url}/#/runs/{run}")
            browser.until_shown("item", "#tables")
            browser.until("document.querySelectorAll('#tables .bars li').length === 2")
            # what the first heartbeats told may have been before the step
            browser.until_shown("40 rows", "#tables")
            browser.until_shown("1.50", "#all-tables")
            browser.until_shown("%", "#all-tables")
            summary, card = browser.text("#all-tables"), browser.text("#tables")
            browser.press("item", "#all-tables")
            browser.until_shown("10 rows", "#all-tables")
            parts = browser.text("#all-tables")
            # a curve is there once the run has told of a figure twice
            browser.until("document.querySelector('[data-plot=\"rows of tables\"]') !== null")
            shown = command(url, "tables", run)
            gate.tell("worker/0 1")
            ended = control.wait_for_run(run, timeout=PATIENCE)
            left = control.progress(run)
        complaints = browser.complaints()

    assert ended.state == "SUCCEEDED"
    assert "40 rows" in card
    assert "EmbeddingVariable" in summary
    assert "1.50" in summary
    assert "%" in summary
    assert "30 rows" in parts
    cells = row(shown, f"tables of run {run}", "item")
    assert (cells["rows"], cells["uneven"], cells["parts"]) == ("40", "1.50", "2")
    assert left.tables is not None
    (table,) = left.tables.tables
    assert (table.rows, table.unevenness, table.largest) == (40, 1.5, "ps/0")
    assert table.hit_rate is not None
    assert table.hit_rate > 0.5
    assert complaints == []
