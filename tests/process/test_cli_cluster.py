"""The commands as a user starts them, as real processes: control, task, status, up. From coming up to going away.

Processes are started through tenfold.cli.children, which stops them all; they say in one line that they are there, and
everything else is asked from the control service. Nothing sleeps.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest
from click.testing import CliRunner, Result

from support.ports import free_port
from tenfold.cli.children import ChildFailedError, Children
from tenfold.cli.main import cli
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLI = ["-m", "tenfold.cli"]
#: Generous: on a busy machine several interpreters start at once.
TIMEOUT = 60.0
LISTENING = r"listening on \w+://(\S+)"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TENFOLD_") or name == "TF_CONFIG"]:
        monkeypatch.delenv(name)


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def start_control(children: Children, folder: Path, jobs: str) -> str:
    """Starts a control service; returns its URL."""
    children.start("control", [*CLI, "control", "--port", "0", "--database", str(folder / "c.db"), "--jobs", jobs])
    return "http://" + children.wait_for_line("control", LISTENING, TIMEOUT)[1]


def start_task(children: Children, name: str, *arguments: str, **environment: str) -> str:
    """Starts a task; returns its address once it listens and is registered."""
    children.start(name, [*CLI, "task", *arguments], stage=1, env=environment)
    return children.wait_for_line(name, LISTENING, TIMEOUT)[1]


def tenfold(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def free_address() -> str:
    return f"127.0.0.1:{free_port()}"


def gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=30)[1]


class TestStaticTask:
    def test_flags(self, children: Children) -> None:
        address = free_address()

        assert start_task(children, "ps", "--job", "ps", "--cluster", json.dumps({"ps": [address]})) == address
        assert "/job:ps/replica:0/task:0/device:CPU:0" in tenfold("ping", address).output

    def test_tf_config_alone(self, children: Children) -> None:
        addresses = [free_address(), free_address()]
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": 1}}

        assert start_task(children, "w", TF_CONFIG=json.dumps(config)) == addresses[1]
        assert "/job:worker/replica:0/task:1/device:CPU:0" in tenfold("ping", addresses[1]).output

    @pytest.mark.parametrize(
        "number",
        [signal.SIGTERM, *(pytest.param(each, marks=pytest.mark.thorough) for each in (signal.SIGINT, signal.SIGHUP))],
    )
    def test_a_signal_ends_it_in_order(self, children: Children, number: signal.Signals) -> None:
        start_task(children, "ps", "--job", "ps", "--cluster", json.dumps({"ps": [free_address()]}))

        os.kill(children.pid("ps"), number)

        assert children.wait_for_exit(timeout=TIMEOUT) == ("ps", 128 + number)

    def test_a_port_that_is_taken(self, children: Children) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(ChildFailedError, match=r"(?s)exit code 1.*cannot listen on .*address already in use"):
                start_task(children, "ps", "--job", "ps", "--cluster", json.dumps({"ps": [address]}))

    def test_it_does_not_open_itself_to_the_network_unasked(self, children: Children) -> None:
        cluster = json.dumps({"ps": ["worker-7.example.org:2222"]})

        refused = r"(?s)refuses to listen on (\[::\]|0\.0\.0\.0):2222 .*TENFOLD_INSECURE=1"
        with pytest.raises(ChildFailedError, match=refused):
            start_task(children, "ps", "--job", "ps", "--cluster", cluster)


class TestRegisteredTask:
    def test_explicit_and_claimed_indices_come_up_and_leave(self, children: Children, tmp_path: Path) -> None:
        url = start_control(children, tmp_path, "ps=1,worker=2")
        before = tenfold("status", "--control", url)
        addresses = {
            ("worker", 1): start_task(children, "w1", "--job", "worker", "--index", "1", "--control", url),
            ("worker", 0): start_task(children, "w", TENFOLD_JOB="worker", TENFOLD_CONTROL=url),
            ("ps", 0): start_task(children, "ps", "--job", "ps", "--control", url, "--bind", "127.0.0.1:0"),
        }
        complete = tenfold("status", "--control", url)

        with ControlClient(url) as control:
            spec = control.wait_for_spec("default", until_complete=True, timeout=TIMEOUT)
            assert {(job, i): a for job, tasks in spec.addresses.items() for i, a in tasks.items()} == addresses

            os.kill(children.pid("w1"), signal.SIGTERM)
            assert children.wait_for_exit(["w1"], TIMEOUT) == ("w1", 143)
            left = control.task_status("default", "worker", 1)

        assert before.exit_code == 1
        assert "/job:worker/task:1 is missing: no task has registered" in before.output
        assert complete.exit_code == 0, complete.output
        assert complete.output.endswith("complete\n")
        assert all(address in complete.output for address in addresses.values())
        # It gave its lease back, and has not finished.
        assert (left["state"], left["reason"], left["exit_code"]) == ("stopped", "stopped by SIGTERM", 143)

    @pytest.mark.thorough
    def test_a_session_spans_the_tasks(self, children: Children, tmp_path: Path) -> None:
        import tenfold as tf

        url = start_control(children, tmp_path, "ps=1,worker=1")
        start_task(children, "ps", "--job", "ps", "--control", url)
        worker = start_task(children, "w", "--job", "worker", "--control", url)
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                a = tf.constant([2.0, 3.0])
            with tf.device("/job:worker/task:0"):
                b = tf.square(a)

            with tf.Session(f"grpc://{worker}") as sess:
                assert sess.run(b).tolist() == [4.0, 9.0]

    @pytest.mark.thorough
    def test_a_taken_index_and_a_full_job(self, children: Children, tmp_path: Path) -> None:
        url = start_control(children, tmp_path, "ps=1")
        start_task(children, "first", "--job", "ps", "--control", url)

        with pytest.raises(ChildFailedError, match=r"AlreadyExistsError: .*task:0 .* is taken by"):
            start_task(children, "second", "--job", "ps", "--index", "0", "--control", url)
        with pytest.raises(ChildFailedError, match=r"ResourceExhaustedError: job 'ps' .* has no free index"):
            start_task(children, "third", "--job", "ps", "--control", url)
        with pytest.raises(ChildFailedError, match=r"NotFoundError: .*'chief'"):
            start_task(children, "fourth", "--job", "chief", "--control", url)

    @pytest.mark.thorough
    def test_a_task_whose_place_was_taken_away_ends(self, children: Children, tmp_path: Path) -> None:
        url = start_control(children, tmp_path, "ps=1")
        start_task(children, "ps", "--job", "ps", "--control", url)

        with ControlClient(url) as control:
            control.remove_task("default", "ps", 0, reason="moved to another machine")

        assert children.wait_for_exit(["ps"], TIMEOUT) == ("ps", 1)
        assert "moved to another machine" in str(children.failure("ps"))

    @pytest.mark.thorough
    def test_a_killed_task_is_reported_lost_by_name(self, children: Children, tmp_path: Path) -> None:
        url = start_control(children, tmp_path, "worker=2")
        start_task(children, "w0", "--job", "worker", "--index", "0", "--control", url)
        start_task(children, "w1", "--job", "worker", "--index", "1", "--control", url)

        with ControlClient(url) as control:
            before = control.wait_for_spec("default", until_complete=True, timeout=TIMEOUT)
            os.kill(children.pid("w1"), signal.SIGKILL)
            # The long-poll answers when the lease has run out: nothing else changes the spec.
            after = control.wait_for_spec("default", after=before.version, timeout=TIMEOUT)
        result = tenfold("status", "--control", url)

        assert after.missing_tasks == ("/job:worker/replica:0/task:1",)
        assert result.exit_code == 1
        assert "/job:worker/task:1 is lost:" in result.output
        assert "/job:worker/task:0 is" not in result.output

    def test_stopping_while_the_control_service_is_awaited(self, children: Children) -> None:
        nobody = f"http://{free_address()}"
        children.start("ps", [*CLI, "task", "--job", "ps", "--index", "0", "--control", nobody])
        process = psutil.Process(children.pid("ps"))
        # Its handlers are there once it listens.
        while not process.net_connections():
            assert children.wait_for_exit(timeout=0.05) is None

        process.send_signal(signal.SIGTERM)

        assert children.wait_for_exit(timeout=TIMEOUT) == ("ps", 143)


class TestStatus:
    def test_json_and_an_unknown_cluster(self, children: Children, tmp_path: Path) -> None:
        url = start_control(children, tmp_path, "ps=2")

        result = tenfold("status", "--control", url, "--json")
        unknown = tenfold("status", "--control", url, "--cluster-name", "other")

        assert (result.exit_code, unknown.exit_code) == (1, 1)
        assert json.loads(result.output)["jobs"][0]["counts"]["missing"] == 2
        assert "other" in unknown.output

    def test_nobody_there(self) -> None:
        result = tenfold("status", "--control", f"http://{free_address()}")

        assert result.exit_code == 1
        assert "cannot be reached" in result.output


class TestControl:
    @pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.thorough)])
    def test_a_signal_ends_it_in_order(self, children: Children, tmp_path: Path, number: signal.Signals) -> None:
        start_control(children, tmp_path, "ps=1")

        os.kill(children.pid("control"), number)

        assert children.wait_for_exit(timeout=TIMEOUT) == ("control", 128 + number)

    def test_a_declaration_that_is_refused(self, children: Children, tmp_path: Path) -> None:
        with pytest.raises(ChildFailedError, match=r"(?s)exit code 1.*could not be declared"):
            start_control(children, tmp_path, "no-such-name!=1")

    def test_a_token_is_asked_for(self, children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TENFOLD_TOKEN", "open sesame")
        url = start_control(children, tmp_path, "ps=1")
        start_task(children, "ps", "--job", "ps", "--control", url)

        with_token = tenfold("status", "--control", url)
        monkeypatch.delenv("TENFOLD_TOKEN")
        without = tenfold("status", "--control", url)

        assert (with_token.exit_code, without.exit_code) == (0, 1)

    def test_it_does_not_open_itself_to_the_network_unasked(self) -> None:
        result = tenfold("control", "--host", "0.0.0.0", "--port", "0")

        assert result.exit_code == 2
        assert "refusing to listen on 0.0.0.0 without a token" in result.output


class TestUp:
    @pytest.fixture
    def up(self, children: Children) -> list[psutil.Process]:
        """`tenfold up` with one ps and one worker, which stay dead, complete; its process and all its children."""
        children.start("up", [*CLI, "up", "--workers", "1", "--control-port", "0", "--restarts", "0", "--fresh"])
        children.wait_for_line("up", "Ctrl-C stops all of it", TIMEOUT)
        process = psutil.Process(children.pid("up"))
        family = [process, *process.children(recursive=True)]
        assert len(family) == 4
        return family

    @pytest.mark.thorough
    def test_addresses_are_printed_and_logs_have_names(self, children: Children, up: list[psutil.Process]) -> None:
        url = children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]
        address = children.wait_for_line("up", r"^/job:worker/task:0 +grpc://(\S+)$", 1)[1]

        assert children.wait_for_line("up", r"^worker/0 +\| .*listening on grpc://(\S+)", 1)[1] == address
        assert tenfold("status", "--control", url).exit_code == 0

    @pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
    def test_a_signal_stops_all_of_it(
        self, children: Children, up: list[psutil.Process], number: signal.Signals
    ) -> None:
        up[0].send_signal(number)

        assert children.wait_for_exit(timeout=TIMEOUT) == ("up", 128 + number)
        assert gone(up[1:])

    def test_the_death_of_a_task_is_reported_and_the_last_one_ends_it(
        self, children: Children, up: list[psutil.Process]
    ) -> None:
        worker, ps = (next(each for each in up if job in each.cmdline()) for job in ("worker", "ps"))

        worker.kill()
        children.wait_for_line("up", "worker/0 was ended by SIGKILL", TIMEOUT)
        children.wait_for_line("up", "The others go on without worker/0", TIMEOUT)
        url = children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]
        # The news is there when the line is: nobody waits for the lease to run out.
        shown = tenfold("status", "--control", url)
        assert (shown.exit_code, "/job:worker/task:0 is lost: ended by SIGKILL" in shown.output) == (1, True)
        ps.kill()

        assert children.wait_for_exit(timeout=TIMEOUT) == ("up", 1)
        assert "ps/0 was ended by SIGKILL" in str(children.failure("up"))
        assert gone(up[1:])

    @pytest.mark.thorough
    def test_a_task_that_died_is_started_again_a_bounded_number_of_times(self, children: Children) -> None:
        children.start("up", [*CLI, "up", "--ps", "0", "--workers", "1", "--control-port", "0", "--restarts", "1"])
        children.wait_for_line("up", "Ctrl-C stops all of it", TIMEOUT)
        url = children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]
        up = psutil.Process(children.pid("up"))

        def kill_worker() -> None:
            next(each for each in up.children() if "worker" in each.cmdline()).kill()

        with ControlClient(url) as control:
            before = control.wait_for_spec("default", until_complete=True, timeout=TIMEOUT)
            kill_worker()
            children.wait_for_line("up", r"without worker/0; it is started again in 1 s \(1 of 1 times", TIMEOUT)
            lost = control.wait_for_spec("default", after=before.version, timeout=TIMEOUT)
            children.wait_for_line("up", r"^worker/0 is started again, at 127\.0\.0\.1:\d+\.", TIMEOUT)
            again = control.wait_for_spec("default", after=lost.version, until_complete=True, timeout=TIMEOUT)
        assert again.addresses == before.addresses
        kill_worker()

        # it has used up its starts, and was the last one
        assert children.wait_for_exit(timeout=TIMEOUT) == ("up", 1)
        assert "worker/0 was ended by SIGKILL" in str(children.failure("up"))

    @pytest.mark.thorough
    def test_a_task_that_was_stopped_is_no_success(self, children: Children, up: list[psutil.Process]) -> None:
        next(each for each in up if "worker" in each.cmdline()).terminate()

        children.wait_for_line("up", "worker/0 was stopped by SIGTERM", TIMEOUT)
        children.wait_for_line("up", "The others go on without worker/0", TIMEOUT)
        url = children.wait_for_line("up", r"^control service +(\S+)$", 1)[1]
        shown = tenfold("status", "--control", url)
        assert (shown.exit_code, "/job:worker/task:0 is stopped: stopped by SIGTERM" in shown.output) == (1, True)

    @pytest.mark.thorough
    def test_the_death_of_the_control_service_ends_all_of_it(
        self, children: Children, up: list[psutil.Process]
    ) -> None:
        next(each for each in up if "control" in each.cmdline()).kill()

        assert children.wait_for_exit(timeout=TIMEOUT) == ("up", 1)
        assert "control was ended by SIGKILL" in str(children.failure("up"))
        assert gone(up[1:])

    def test_nobody_outlives_a_killed_parent(self, children: Children, up: list[psutil.Process]) -> None:
        up[0].kill()

        assert gone(up)

    def test_a_port_that_is_taken(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])

            done = subprocess.run(
                [sys.executable, *CLI, "up", "--control-port", port], capture_output=True, text=True, timeout=TIMEOUT
            )

        assert done.returncode == 1
        assert "choose another port with --control-port" in done.stderr
        assert "in use" in done.stderr
