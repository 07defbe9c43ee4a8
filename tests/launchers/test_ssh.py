"""Runs over ssh, with a real sshd for each host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.task_processes import PATIENCE
from tenfold.launchers import LaunchRefusedError
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.ssh import SshLauncher

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
    from pathlib import Path

    from support.sshd import SshHosts
    from tenfold.launchers import TaskProcesses


pytestmark = pytest.mark.thorough


@pytest.fixture
def options(hosts: SshHosts) -> dict[str, str]:
    return {"hosts": "n[1-3]", "config": str(hosts.config)}


class TestSsh(LauncherConformance):
    name = "ssh"

    @pytest.fixture
    def options(self, hosts: SshHosts) -> dict[str, str]:
        return {"hosts": "n[1-3]", "config": str(hosts.config)}


def opened(options: dict[str, str], folder: Path, lines: Lines, **more: str) -> TaskProcesses:
    request = LaunchRequest("test", {"ps": 1, "worker": 3}, str(folder), ["program.py"], options={**options, **more})
    (folder / "program.py").write_text("import os; print('runs', os.getpid(), flush=True); input()")
    return SshLauncher().open(request, lines)


@pytest.mark.parametrize(
    ("place", "hosts_of"), [("spread", ["n1", "n2", "n3", "n1"]), ("pack", ["n1", "n1", "n1", "n1"])]
)
def test_tasks_are_spread_or_packed(
    options: dict[str, str], hosts: SshHosts, tmp_path: Path, place: str, hosts_of: list[str]
) -> None:
    with opened(options, tmp_path, Lines(), place=place) as processes:
        cluster = processes.addresses({"ps": 1, "worker": 3})
    found = [address.rpartition(":")[0] for job in ("ps", "worker") for address in cluster[job]]
    assert found == [hosts.address(name) for name in hosts_of]


def test_tasks_of_a_host_that_is_lost_end_and_the_run_goes_on_elsewhere(
    options: dict[str, str], hosts: SshHosts, tmp_path: Path
) -> None:
    lines = Lines()
    with opened(options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 3})
        for name in ("ps/0", "worker/0", "worker/1", "worker/2"):
            processes.start(name, ["program.py"])
            lines.wait_for(name, "runs")
        hosts.kill("n2")
        assert processes.wait_for_exit(["worker/0", "worker/1"], PATIENCE) == ("worker/0", -9)
        error = processes.error("worker/0")
        assert error is not None
        assert error["type"] == "HostLost"
        assert error["message"].startswith("n2: ")
        again = processes.addresses({"ps": 1, "worker": 3})
        hosts.start("n2")
    assert hosts.address("n2") not in [address.rpartition(":")[0] for tasks in again.values() for address in tasks]
    assert [line for name, line in lines.all if name == "run" and line.startswith("n2 is left out")]


def test_a_host_without_the_working_directory_says_so(options: dict[str, str], tmp_path: Path) -> None:
    request = LaunchRequest("test", {"worker": 1}, str(tmp_path / "not here"), options=options)
    with (
        SshLauncher().open(request, Lines()) as processes,
        pytest.raises(LaunchRefusedError, match=r"^n1: it has no folder .*not here; n2: .*; n3: .*$"),
    ):
        processes.addresses({"worker": 1})


def test_a_host_that_there_is_not_is_refused_in_sshs_words(options: dict[str, str], tmp_path: Path) -> None:
    request = LaunchRequest("test", {"worker": 1}, str(tmp_path), options={**options, "hosts": "no-such-host.invalid"})
    with (
        SshLauncher().open(request, Lines()) as processes,
        pytest.raises(LaunchRefusedError, match=r"no-such-host\.invalid: .*[Cc]ould not resolve hostname"),
    ):
        processes.addresses({"worker": 1})


def test_the_working_directory_is_sent_where_it_is_not_shared(options: dict[str, str], tmp_path: Path) -> None:
    lines, text = Lines(), "import os, other; print(other.WORD, os.getcwd(), flush=True)"
    (tmp_path / "other.py").write_text("WORD = 'sent'")
    with opened(options, tmp_path, lines, sync="yes") as processes:
        (tmp_path / "program.py").write_text(text)
        processes.addresses({"worker": 1})
        processes.start("worker/0", ["program.py"])
        folder = lines.wait_for("worker/0", r"^sent (/.*)$")[1]
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
    assert folder != str(tmp_path)
    from pathlib import Path as Place

    assert not Place(folder).exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"hosts": "n1,n1"}, "ssh: the list names n1 twice; write slots=2 for two tasks"),
        ({"hosts": "n[1-"}, "ssh: 'n[1-' has a bracket without its other half"),
        ({"hosts": "-oProxyCommand=x"}, "ssh: '-oProxyCommand=x' is no name of a host"),
        ({"place": "random"}, "ssh: place=random is not one of spread, pack"),
        ({"hosts_file": "/none"}, "ssh: give the hosts, as -o hosts=n1,n2 or as -o hosts_file=FILE"),
    ],
)
def test_options_are_checked_before_anything_is_started(
    options: dict[str, str], tmp_path: Path, more: dict[str, str], words: str
) -> None:
    with pytest.raises(LaunchRefusedError) as refused:
        opened(options, tmp_path, Lines(), **more)
    assert str(refused.value) == words
