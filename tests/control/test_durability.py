"""What was answered 2xx survives kill -9: a real process, killed while it works, started again on the same file."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.control import ControlClient, RetryPolicy
from tenfold_control_api.database import database_url, open_engine
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PRAGMAS = ("journal_mode", "synchronous")
PROGRAM = """
import sys
from tenfold_control_api.main import serve
from tenfold_control_api.service_settings import Settings
sys.exit(serve(port=0, database=sys.argv[1], settings=Settings(heartbeat=0.5, lease_ttl=float(sys.argv[2]))))
"""


class Process:
    """A control service as a process of its own."""

    def __init__(self, database: str, lease_ttl: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROGRAM, database, str(lease_ttl)], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("control service at "), line
        self.url = line.split()[-1]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self.close()

    def terminate(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self.close()

    def close(self) -> int:
        assert self._process.stdout is not None
        with self._process:
            return self._process.wait(20)


@pytest.fixture
def start(database: str) -> Iterator[Callable[..., Process]]:
    running: list[Process] = []

    def start(lease_ttl: float = 30.0, on: str = database) -> Process:
        running.append(Process(on, lease_ttl))
        return running[-1]

    yield start
    for process in running:
        if process._process.poll() is None:
            process.kill()


def test_kill_9_forgets_nothing_that_was_answered(start: Callable[..., Process]) -> None:
    first = start()
    sizes = 0
    leases: dict[str, int] = {}
    enough = threading.Event()

    def work() -> None:
        nonlocal sizes
        with ControlClient(first.url, retry=RetryPolicy(attempts=1), timeout=5) as control:
            try:
                while True:
                    control.declare_cluster("default", {"worker": sizes + 1})
                    sizes += 1
                    lease = control.claim_task("default", "worker", f"127.0.0.1:{1024 + sizes}")
                    leases[lease.id] = lease.index
                    if sizes == 20:
                        enough.set()
            except errors.OpError:
                enough.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert enough.wait(30)
    first.kill()
    worker.join(30)

    second = start()
    with ControlClient(second.url) as control:
        cluster = control.cluster("default")
        assert sizes >= 20
        assert cluster["jobs"]["worker"] in (sizes, sizes + 1), "one request may have been cut off in between"
        for lease_id, index in leases.items():
            assert control.renew(lease_id)["task"] == f"/job:worker/replica:0/task:{index}"


def test_a_lease_that_nobody_renews_after_a_restart_ends(start: Callable[..., Process]) -> None:
    first = start(lease_ttl=1.0)
    with ControlClient(first.url) as control:
        control.declare_cluster("default", {"worker": 1})
        version = control.claim_task("default", "worker", "127.0.0.1:1").spec_version
    first.kill()

    with ControlClient(start(lease_ttl=1.0).url) as control:
        spec = control.wait_for_spec("default", after=version, timeout=20)

        assert spec.states == {"/job:worker/replica:0/task:0": "lost"}


def test_sigterm_is_a_clean_end(start: Callable[..., Process]) -> None:
    process = start()

    code = process.terminate()

    assert code in (0, -signal.SIGTERM)


@pytest.mark.thorough
def test_a_second_process_on_the_file_is_refused(start: Callable[..., Process], sqlite: str) -> None:
    start(on=sqlite)

    other = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, sqlite, "10"], capture_output=True, text=True, timeout=60
    )

    assert other.returncode == 1
    assert "another control service" in other.stderr
    assert "Traceback" not in other.stderr


async def test_a_commit_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    """No test can take the power away; SQLite syncs at each commit where these two say so."""
    engine = open_engine(database_url(str(tmp_path / "control.db")))
    try:
        async with engine.connect() as connection:
            found = [(await connection.exec_driver_sql(f"PRAGMA {name}")).scalar() for name in PRAGMAS]
    finally:
        await engine.dispose()

    assert found == ["wal", 2]  # FULL


def test_a_database_that_cannot_be_opened() -> None:
    name = "/proc/nowhere/x.db"

    done = subprocess.run([sys.executable, "-c", PROGRAM, name, "10"], capture_output=True, text=True, timeout=60)

    assert done.returncode == 1
    assert f"the database {name!r} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr
