"""Runs over ssh, with a real sshd for each host."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.left_over import left_over
from support.task_processes import PATIENCE
from tenfold.launchers import LaunchRefusedError, working_dir
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.ssh import SshLauncher

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
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


def opened(options: dict[str, str], root: Path, lines: Lines, **more: str) -> TaskProcesses:
    request = LaunchRequest("test", {"ps": 1, "worker": 3}, str(root), ["program.py"], options={**options, **more})
    (root / "program.py").write_text("import os; print('runs', os.getpid(), flush=True); input()")
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


@pytest.mark.parametrize("by", ["rsync", "zip"])
def test_the_working_directory_is_sent_where_it_is_not_shared(
    options: dict[str, str], tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_way(by, monkeypatch)
    lines, text = Lines(), "import os, other; print(other.WORD, os.getcwd(), flush=True)"
    (tmp_path / "other.py").write_text("WORD = 'sent'")
    with opened(options, tmp_path, lines, sync="yes") as processes:
        (tmp_path / "program.py").write_text(text)
        processes.addresses({"worker": 1})
        processes.start("worker/0", ["program.py"])
        folder = lines.wait_for("worker/0", r"^sent (/.*)$")[1]
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
    assert folder != str(tmp_path)
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"hosts": "n1,n1"}, "ssh: the list names n1 twice; write slots=2 for two tasks"),
        ({"hosts": "n[1-"}, "ssh: 'n[1-' has a bracket without its other half"),
        ({"hosts": "-oProxyCommand=x"}, "ssh: '-oProxyCommand=x' is not a name of a host"),
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


def require_way(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is sent so, or the test is skipped."""
    if by == "zip":
        monkeypatch.setattr(working_dir, "has_rsync", lambda: False)
    elif shutil.which("rsync") is None:
        pytest.skip("rsync is not installed: make engines")


@pytest.mark.parametrize("by", ["rsync", "zip"])
def test_a_folder_there_gets_what_has_changed_and_is_left(
    options: dict[str, str], tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_way(by, monkeypatch)
    here, there = tmp_path / "here", tmp_path / "there"
    (here / ".git").mkdir(parents=True)
    (here / "data").mkdir()
    (here / "data" / "x").write_text("old")
    for text in ("old", "new"):
        (here / "data" / "x").write_text(text)
        lines = Lines()
        more = {"sync": "yes", "folder": str(there), "hosts": "n1"}
        with opened(options, here, lines, **more) as processes:
            (here / "program.py").write_text("import os; print(os.getcwd(), open('data/x').read(), flush=True)")
            processes.addresses({"worker": 1})
            processes.start("worker/0", ["program.py"])
            lines.wait_for("worker/0", rf"^{there} {text}$")
            assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
        (there / "kept").touch()
    assert sorted(path.name for path in there.iterdir() if path.name != "__pycache__") == ["data", "kept", "program.py"]
    assert left_over(there) == []


def test_what_rsync_says_is_the_reason(
    options: dict[str, str], hosts: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_way("rsync", monkeypatch)
    (tmp_path / "file").touch()
    more = {"sync": "yes", "folder": str(tmp_path / "file" / "x"), "hosts": "n1"}
    with (
        opened(options, tmp_path, Lines(), **more) as processes,
        pytest.raises(LaunchRefusedError, match=r"^n1: .*Not a directory.*$"),
    ):
        processes.addresses({"worker": 1})
    here = tmp_path / "here"
    here.mkdir()
    with opened(options, here, Lines(), sync="yes", hosts="n1") as processes:
        shutil.rmtree(here)
        with pytest.raises(LaunchRefusedError, match=r"^n1: rsync: .*(change_dir|link_stat).*here.*$"):
            processes.addresses({"worker": 1})


def test_a_shared_folder_may_have_another_path_there(options: dict[str, str], tmp_path: Path) -> None:
    lines = Lines()
    (tmp_path / "here").mkdir()
    (tmp_path / "there").symlink_to(tmp_path / "here")
    with opened(options, tmp_path / "here", lines, folder=str(tmp_path / "there")) as processes:
        (tmp_path / "here" / "program.py").write_text("import os; print('in', os.getcwd(), flush=True)")
        processes.addresses({"worker": 1})
        processes.start("worker/0", ["program.py"])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
    lines.wait_for("worker/0", "^in ")


def test_temporary_files_go_to_a_scratch_folder_and_with_the_run(options: dict[str, str], tmp_path: Path) -> None:
    lines, scratch = Lines(), tmp_path / "scratch"
    scratch.mkdir()
    with opened(options, tmp_path, lines, scratch=str(scratch)) as processes:
        (tmp_path / "program.py").write_text("import tempfile; print(tempfile.mkdtemp(), flush=True); input()")
        processes.addresses({"worker": 1})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("worker/0", rf"^{scratch}/tenfold-tasks-\w+/\w+$")
    assert list(scratch.iterdir()) == []


def test_a_host_without_the_scratch_folder_says_so(options: dict[str, str], tmp_path: Path) -> None:
    with (
        opened(options, tmp_path, Lines(), scratch="/no/such/$USER", hosts="n1") as processes,
        pytest.raises(LaunchRefusedError, match=r"^n1: it has no scratch folder /no/such/\w+$"),
    ):
        processes.addresses({"worker": 1})
