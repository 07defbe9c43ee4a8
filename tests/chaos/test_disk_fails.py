"""The disk is full, broken or read-only while a checkpoint, a summary, a log, an upload, the database is written (P3).

What was written before is there and loads, the error names the file and says what the system said, and once the disk
works again everything goes on, without a restart. The disks are those of support/faults; the processes know of nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from process.kill_training import newest_whole
from support.faults.control_forks import ControlForks
from support.faults.control_tables import breaches
from support.faults.failing_disk import BROKEN, FAILURES, FULL, READ_ONLY, FailingDisk, Failure, failing_disk
from support.faults.small_disk import SmallDisk, small_disk
from support.gates import Gate
from support.run_programs import Service
from support.task_processes import static_cluster
from tenfold.cli.children import Children
from tenfold.control import ControlClient
from tenfold.runs.task_logs import TaskLogs
from tenfold_control_api.runs import log_files
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx

LONG = pytest.mark.long


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    with failing_disk(tmp_path) as made:
        yield made


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def forks() -> Iterator[ControlForks]:
    with ControlForks() as made:
        yield made
        made.kill()


# -- the control service


def upload(api: httpx.Client) -> httpx.Response:
    """Of a working directory."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        package.writestr("trainer.py", "print(1)")
    content = made.getvalue()
    name = hashlib.sha256(content).hexdigest()
    return api.put(f"/v1/packages/{name}", content=content, headers={"Content-Type": "application/zip"})


def kind(answer: httpx.Response) -> str:
    found: str = answer.json()["type"].rpartition(":")[2]
    return found


def control_on(
    forks: ControlForks, folder: Path, fail: Callable[[], None], heal: Callable[[], None], *, says: str, disk_says: str
) -> None:
    """A control service with its database in `folder`, before the disk fails, while it does, and afterwards."""
    database = str(folder / "control.db")
    forks.start(database, heartbeat=1.0, lease_ttl=60.0)
    claim, key = {"address": "127.0.0.1:1", "incarnation": "b"}, {"Idempotency-Key": "1"}
    with forks.client() as api:
        assert api.put("/v1/clusters/before", json={"jobs": {"worker": 2}}).status_code == 201
        lease = api.put("/v1/clusters/before/tasks/worker/0", json={**claim, "incarnation": "a"}).json()["lease"]["id"]

        fail()
        refused = [
            api.put("/v1/clusters/meanwhile", json={"jobs": {"worker": 1}}),
            api.post("/v1/clusters/before/tasks/worker:claim", json=claim, headers=key),
            api.post("/v1/runs", json={"launcher": "external", "entrypoint": ["x"]}),
            api.get("/readyz"),
        ]
        uploaded = upload(api)
        renewed, read = api.post(f"/v1/leases/{lease}:renew", json={}), api.get("/v1/clusters/before")
        alive = api.get("/healthz")
        heal()

        for answer in refused:
            assert (answer.status_code, kind(answer)) == (503, "database-unavailable"), answer.text
            assert answer.json()["retryable"] is True
            assert says in answer.json()["detail"]
        assert (uploaded.status_code, kind(uploaded)) == (503, "disk-unavailable"), uploaded.text
        assert str(folder / "control.db.runs") in uploaded.json()["detail"]
        assert disk_says in uploaded.json()["detail"]
        assert [renewed.status_code, read.status_code, alive.status_code] == [200, 200, 200]

        assert api.get("/readyz").status_code == 200
        assert api.put("/v1/clusters/meanwhile", json={"jobs": {"worker": 1}}).status_code == 201
        claimed = api.post("/v1/clusters/before/tasks/worker:claim", json=claim, headers=key)
        assert claimed.json()["task"]["index"] == 1
        assert upload(api).status_code == 201
    forks.kill()
    forks.start(database, heartbeat=1.0, lease_ttl=60.0)
    with forks.client() as api:
        assert [api.get(f"/v1/clusters/{name}").status_code for name in ("before", "meanwhile")] == [200, 200]
        assert api.get("/v1/clusters/before").json()["counts"]["ready"] == 2
        assert api.post(f"/v1/leases/{lease}:renew", json={}).status_code == 200
    forks.kill()
    assert breaches(database) == []


@pytest.mark.parametrize("failure", ["full", *(pytest.param(each, marks=LONG) for each in ("broken", "read-only"))])
def test_the_database_and_uploads(failure: str, disk: FailingDisk, forks: ControlForks) -> None:
    found = FAILURES[failure]
    says = "database or disk is full" if found is FULL else "disk I/O error"

    control_on(forks, disk.folder, lambda: disk.fail(found), disk.heal, says=says, disk_says=found.words)


def test_the_database_and_uploads_on_a_disk_without_room(small: SmallDisk, forks: ControlForks) -> None:
    says, disk_says = "database or disk is full", "No space left on device"

    control_on(forks, small.folder, small.fill, small.free, says=says, disk_says=disk_says)


# -- checkpoints


class Model:
    """Two variables on a ps in a process of its own, which writes its part of each checkpoint itself."""

    def __init__(self, session: tf.Session, folder: Path, *, sharded: bool) -> None:
        self._session, self.folder, self.sharded = session, folder, sharded
        self.saver = tf.train.Saver(sharded=sharded, max_to_keep=2)

    def save(self, step: int) -> None:
        self.saver.save(self._session, str(self.folder / "model"), global_step=step)

    def newest(self) -> int:
        """The step of the newest checkpoint, of which every tensor was read."""
        return newest_whole(str(self.folder))

    def left(self) -> list[str]:
        """What was begun and is not there under its name, and data without an index."""
        data = [path for path in self.folder.rglob("*.data-*") if not path.with_suffix(".index").exists()]
        return sorted({path.name for path in (*self.folder.rglob("*tempstate*"), *data)})


@contextlib.contextmanager
def model(folder: Path, *, tasks: int = 1) -> Iterator[Model]:
    with static_cluster(ps=tasks) as cluster, tf.Graph().as_default():
        for index in range(2):
            with tf.device(f"/job:ps/task:{index % tasks}"):
                tf.get_variable(f"w{index}", [1 << 16], initializer=tf.ones_initializer())
        init = tf.global_variables_initializer()
        with tf.Session(cluster.target("ps", 0)) as session:
            session.run(init)
            yield Model(session, folder, sharded=tasks > 1)


def every_point(made: Model, disk: FailingDisk, failure: Failure) -> int:
    """The disk fails at the first operation of a save, at the second one and so on, until one is not needed: each time
    what is published loads, and the next save goes well. Returns how many there were."""
    made.save(1)
    step = 1
    for point in range(200):
        disk.fail(failure, point)
        error: Exception | None = None
        try:
            made.save(step + 1)
        except (errors.OpError, OSError) as raised:
            error = raised
        newest = made.newest()
        disk.heal()
        assert newest in (step, step + 1), f"{failure.errno} from operation {point} on: {newest} after {step}"
        if error is None:
            assert newest == step + 1
            return point
        assert failure.words in str(error), error
        assert str(made.folder) in str(error), error
        if not made.sharded:  # of several tasks one may still write when another has failed
            assert made.left() == []
        made.save(step + 2)
        step += 2
        assert made.newest() == step
    raise AssertionError("a save has more than 200 operations")


@pytest.mark.parametrize("failure", [pytest.param(FULL, marks=LONG), BROKEN], ids=lambda each: each.errno)
def test_checkpoints(failure: Failure, disk: FailingDisk) -> None:
    with model(disk.folder) as made:
        # data, index and state file, each made, written, synced and renamed, are the least
        assert every_point(made, disk, failure) >= (6 if failure is FULL else 12)


@LONG
@pytest.mark.parametrize("failure", [FULL, BROKEN, READ_ONLY], ids=lambda each: each.errno)
def test_checkpoints_in_shards(failure: Failure, disk: FailingDisk) -> None:
    with model(disk.folder, tasks=2) as made:
        assert every_point(made, disk, failure) >= 8


def test_a_checkpoint_on_a_disk_without_room(small: SmallDisk) -> None:
    with model(small.folder) as made:
        made.save(1)
        for leave in (0, 1 << 18):
            small.fill(leave)
            with pytest.raises(errors.ResourceExhaustedError, match=r"model-2.*No space left on device"):
                made.save(2)
            assert (made.newest(), made.left()) == (1, [])
            small.free()
        made.save(3)
        assert made.newest() == 3


# -- summaries


def steps_of(folder: Path) -> list[int]:
    """The steps of the events in the folder's files, each of which is whole."""
    files = sorted(folder.glob("events.*"))
    return [event.step for path in files for event in tf.train.summary_iterator(str(path)) if event.summary.value]


def summary(step: int, size: int = 0) -> tf.Summary:
    return tf.Summary(value=[tf.Summary.Value(tag=f"loss{'x' * size}", simple_value=float(step))])


@pytest.mark.parametrize("failure", ["read-only", *(pytest.param(each, marks=LONG) for each in ("full", "broken"))])
def test_summaries(failure: str, disk: FailingDisk) -> None:
    writer = tf.summary.FileWriter(str(disk.folder), flush_secs=3600)
    writer.add_summary(summary(1), 1)
    writer.flush()

    disk.fail(FAILURES[failure])
    writer.add_summary(summary(2), 2)
    with pytest.raises(errors.OpError, match=rf"{disk.folder}.*{FAILURES[failure].words}"):
        writer.flush()
    disk.heal()
    writer.add_summary(summary(3), 3)
    writer.close()

    assert steps_of(disk.folder) == [1, 2, 3]


def test_summaries_on_a_disk_without_room(small: SmallDisk) -> None:
    """Large events, of which the disk takes a part."""
    writer = tf.summary.FileWriter(str(small.folder), flush_secs=3600)
    writer.add_summary(summary(1, 100_000), 1)
    writer.flush()

    small.fill(leave=150_000)
    for step in (2, 3):
        writer.add_summary(summary(step, 100_000), step)
    with pytest.raises(errors.ResourceExhaustedError, match=rf"{small.folder}.*No space left on device"):
        writer.flush()
    small.free()
    writer.add_summary(summary(4, 100_000), 4)
    writer.close()

    assert steps_of(small.folder) == [1, 2, 3, 4]


@LONG
def test_summaries_that_a_task_writes(disk: FailingDisk) -> None:
    with static_cluster(ps=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target("ps", 0)) as session:
        writer = tf.summary.FileWriter(str(disk.folder), flush_secs=3600, session=session)
        writer.add_summary(summary(1), 1)
        writer.flush()

        disk.fail(FULL)
        writer.add_summary(summary(2), 2)
        with pytest.raises(errors.ResourceExhaustedError, match=rf"{disk.folder}.*{FULL.words}"):
            writer.flush()
        disk.heal()
        writer.add_summary(summary(3), 3)
        writer.close()

    assert steps_of(disk.folder) == [1, 2, 3]


# -- logs of runs


@pytest.mark.parametrize("failure", ["broken", *(pytest.param(each, marks=LONG) for each in ("full", "read-only"))])
def test_logs(failure: str, disk: FailingDisk) -> None:
    with TaskLogs(disk.folder) as logs:
        logs.write("worker/0", "before")
        disk.fail(FAILURES[failure])
        for _ in range(3):
            logs.write("worker/0", "lost")
        logs.write("ps/0", "lost, too")
        disk.heal()
        logs.write("worker/0", "after")
        logs.write("ps/0", "first")

    words = FAILURES[failure].words
    found = [line.text for line in log_files.tail(disk.folder, ["worker/0"], 9)]
    assert found == ["before", f"[3 lines could not be kept: {words}]", "after"]
    found = [line.text for line in log_files.tail(disk.folder, ["ps/0"], 9)]
    assert found == [f"[1 lines could not be kept: {words}]", "first"]


#: Meets the test twice, and says more than a pipe holds in between.
TALKER = """
import socket, sys

for turn in (1, 2):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
        gate.sendall(f"turn {turn}".encode())
        gate.recv(16)
    for number in range(2000):
        print("line", turn, number, "x" * 100, flush=True)
"""


@LONG
def test_a_run_goes_on_while_its_logs_cannot_be_kept(
    disk: FailingDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "talker.py").write_text(TALKER)
    with contextlib.closing(Gate()) as gate, Children() as children:
        service = Service(children, tmp_path, TENFOLD_CONTROL_RUNS_FOLDER=str(disk.folder))
        with ControlClient(service.url) as client:
            program = ["python", "talker.py", str(gate.port)]
            run = client.submit_run(program, working_dir=str(tmp_path), jobs={"worker": 1})
            gate.wait_for("turn 1")
            disk.fail(FULL)
            gate.tell("turn 1")
            gate.wait_for("turn 2")  # it was not held up
            disk.heal()
            gate.tell("turn 2")
            ended = client.wait_for_run(run["name"])
            lines = [line["text"] for line in client.run_logs(run["name"], tail=5000)]

    assert ended["state"] == "SUCCEEDED", json.dumps(ended)
    said = [line for line in lines if "could not be kept: No space left on device" in line]
    assert len(said) == 1
    assert sum(line.startswith("line 2 ") for line in lines) == 2000
