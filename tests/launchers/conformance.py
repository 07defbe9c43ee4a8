"""What every launcher has to do, as tests: a class to be derived from, with a fixture `launch` that opens a run.

    class TestSsh(LauncherConformance):
        @pytest.fixture
        def launch(self, hosts): return lambda jobs, echo, **more: SshLauncher().open(LaunchRequest(…), echo)

Each test uses real processes of the engine. docs/launchers.md names what is promised.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from support.left_over import left_over
from support.process_trees import left_alive
from support.run_programs import Service
from support.task_processes import PATIENCE
from tenfold.cli.children import Children
from tenfold.launchers import LaunchRefusedError
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.registry import launcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.gates import Gate
    from tenfold.launchers import TaskProcesses

#: Says who it is, and waits to be told to go on; parameter servers wait to be ended.
_AT_A_GATE = """
import os, socket, sys
me = os.environ["TENFOLD_TASK"]
if me.startswith("ps"):
    sys.stdin.read()
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
    gate.sendall(f"{me} {os.environ['TENFOLD_ATTEMPT']}".encode())
    gate.recv(16)
print(me, "goes on", flush=True)
"""
#: A secret that must be on no command line.
_SECRET = "0123456789-a-secret-of-the-run"


class Lines:
    """What tasks write."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.all: list[tuple[str, str]] = []

    def __call__(self, name: str, line: str) -> None:
        with self._changed:
            self.all.append((name, line))
            self._changed.notify_all()

    def wait_for(self, name: str, pattern: str) -> re.Match[str]:
        """The first line of that task which the pattern matches."""

        def found() -> re.Match[str] | None:
            of_task = (line for task, line in self.all if task == name)
            return next((match for line in of_task if (match := re.search(pattern, line))), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None, PATIENCE)
            match = found()
        assert match is not None, self.all
        return match


class Launch(Protocol):
    """Opens a run of these jobs on the engine, in `working_dir`."""

    def __call__(self, jobs: Mapping[str, int], echo: Lines, **more: Any) -> TaskProcesses: ...


class LauncherConformance:
    """Tests of one launcher. `name` is the launcher's; the fixture `options` is what `-o` gives of it."""

    name = ""

    @pytest.fixture
    def options(self) -> dict[str, str]:
        return {}

    @pytest.fixture
    def launch(self, options: dict[str, str], tmp_path: Path) -> Launch:
        def open_run(jobs: Mapping[str, int], echo: Lines, **more: Any) -> TaskProcesses:
            request = LaunchRequest("conformance", jobs, str(tmp_path), options={**options, **more})
            return launcher(self.name).open(request, echo)

        return open_run

    @pytest.fixture
    def lines(self) -> Lines:
        return Lines()

    def program(self, folder: Path, text: str) -> list[str]:
        (folder / "program.py").write_text(text)
        return ["program.py"]

    # -- starting, output, exit codes

    def test_tasks_run_where_they_are_asked_to_and_their_lines_and_exit_codes_come_back(
        self, launch: Launch, lines: Lines, tmp_path: Path
    ) -> None:
        text = "import os, sys; print(os.environ['ME'], os.getcwd(), sys.argv[1:]); sys.exit(int(os.environ['CODE']))"
        program = self.program(tmp_path, text)
        with launch({"ps": 1, "worker": 2}, lines) as processes:
            cluster = processes.addresses({"ps": 1, "worker": 2})
            for name, code in (("ps/0", "0"), ("worker/0", "3"), ("worker/1", "0")):
                processes.start(name, [*program, "--a=b c"], env={"ME": name, "CODE": code})
            left, codes = ["ps/0", "worker/0", "worker/1"], {}
            while left:
                ended = processes.wait_for_exit(left, PATIENCE)
                assert ended is not None
                codes[ended[0]] = ended[1]
                left.remove(ended[0])
            last = processes.last_lines("worker/0", 5)
            place = processes.place("worker/0")
        assert codes == {"ps/0": 0, "worker/0": 3, "worker/1": 0}
        for name in codes:
            assert (name, f"{name} {tmp_path} ['--a=b c']") in lines.all
        assert last == [f"worker/0 {tmp_path} ['--a=b c']"]
        assert place["host"]
        assert {job: len(tasks) for job, tasks in cluster.items()} == {"ps": 1, "worker": 2}
        assert len({address for tasks in cluster.values() for address in tasks}) == 3, cluster

    def test_a_task_listens_at_its_address_and_another_one_reaches_it(
        self, launch: Launch, lines: Lines, tmp_path: Path
    ) -> None:
        serve = (
            "import os, socket\nhost, _, port = os.environ['AT'].rpartition(':')\n"
            "if os.environ['ME'] == 'ps/0':\n"
            "    with socket.create_server(('0.0.0.0', int(port))) as s:\n        print('ready', flush=True)\n"
            "        s.accept()[0].sendall(b'hello')\n"
            "else:\n    print('heard', socket.create_connection((host, int(port)), 30).recv(10))\n"
        )
        program = self.program(tmp_path, serve)
        with launch({"ps": 1, "worker": 1}, lines) as processes:
            address = processes.addresses({"ps": 1, "worker": 1})["ps"][0]
            processes.start("ps/0", program, env={"ME": "ps/0", "AT": address})
            lines.wait_for("ps/0", "ready")
            processes.start("worker/0", program, env={"ME": "worker/0", "AT": address})
            lines.wait_for("worker/0", "heard b'hello'")
            assert {processes.wait_for_exit([name], PATIENCE) for name in ("ps/0", "worker/0")} == {
                ("ps/0", 0),
                ("worker/0", 0),
            }

    def test_what_a_task_raised_comes_back(self, launch: Launch, lines: Lines, tmp_path: Path) -> None:
        program = self.program(tmp_path, "raise ValueError('that was wrong')")
        with launch({"worker": 1}, lines) as processes:
            processes.addresses({"worker": 1})
            processes.start("worker/0", program)
            assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 1)
            assert processes.error("worker/0") == {"type": "ValueError", "message": "that was wrong"}

    def test_a_secret_of_the_environment_stands_on_no_command_line(
        self, launch: Launch, lines: Lines, tmp_path: Path
    ) -> None:
        program = self.program(
            tmp_path, "import os, sys; print('got', os.environ['KEY'], flush=True); sys.stdin.read()"
        )
        with launch({"worker": 1}, lines) as processes:
            processes.addresses({"worker": 1})
            processes.start("worker/0", program, env={"KEY": _SECRET})
            lines.wait_for("worker/0", f"got {_SECRET}")
            shown = [each for each in Path("/proc").glob("[0-9]*/cmdline") if _SECRET.encode() in _read(each)]
            processes.kill("worker/0")
            assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", -9)
        assert shown == []

    # -- ending

    @pytest.mark.parametrize(("how", "code"), [("terminate", -15), ("kill", -9)])
    def test_a_task_that_is_ended_says_by_which_signal_and_can_start_again(
        self, launch: Launch, lines: Lines, tmp_path: Path, how: str, code: int
    ) -> None:
        program = self.program(
            tmp_path, "import os; print('attempt', os.environ['N'], os.getpid(), flush=True); input()"
        )
        with launch({"worker": 1}, lines) as processes:
            processes.addresses({"worker": 1})
            processes.start("worker/0", program, env={"N": "1"})
            lines.wait_for("worker/0", "attempt 1")
            getattr(processes, how)("worker/0")
            assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", code)
            processes.clear()
            processes.addresses({"worker": 1})
            processes.start("worker/0", program, env={"N": "2"})
            lines.wait_for("worker/0", "attempt 2")
            assert processes.wait_for_exit(["worker/0"], 0.0) is None

    def test_leaving_ends_the_tasks_and_what_they_have_started(
        self, launch: Launch, lines: Lines, tmp_path: Path
    ) -> None:
        text = (
            "import os, subprocess, sys\n"
            "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
            "print('pids', os.getpid(), child.pid, flush=True)\nsys.stdin.read()"
        )
        with launch({"ps": 1, "worker": 1}, lines) as processes:
            processes.addresses({"ps": 1, "worker": 1})
            for name in ("ps/0", "worker/0"):
                processes.start(name, self.program(tmp_path, text))
            found = [lines.wait_for(name, r"pids (\d+) (\d+)").groups() for name in ("ps/0", "worker/0")]
            for name in ("worker/0", "ps/0"):
                processes.kill(name)
                assert processes.wait_for_exit([name], PATIENCE) == (name, -9)
            processes.clear()
        tasks = [int(task) for task, _ in found]
        assert not left_alive(tasks)
        if self.name != "local":  # an agent is there for the run alone; a program that runs one here may have others
            assert not left_alive([int(child) for _, child in found])

    def test_tasks_end_with_the_process_that_launched_them(self, options: dict[str, str], tmp_path: Path) -> None:
        self.program(tmp_path, "import os, sys; print('pid', os.getpid(), flush=True); sys.stdin.read()")
        starter = (
            "import sys\nfrom tenfold.launchers.interface import LaunchRequest\n"
            "from tenfold.launchers.registry import launcher\n"
            f"request = LaunchRequest('dies', {{'worker': 1}}, {str(tmp_path)!r}, options={options!r})\n"
            "say = lambda name, line: print(line, flush=True)\n"
            f"with launcher({self.name!r}).open(request, say) as processes:\n"
            "    processes.addresses({'worker': 1})\n    processes.start('worker/0', ['program.py'])\n"
            "    processes.wait_for_exit(['worker/0'])\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True, cwd=tmp_path
        ) as process:
            assert process.stdout is not None
            found = next(match for line in process.stdout if (match := re.match(r"pid (\d+)", line)))
            process.kill()
        assert not left_alive([int(found[1])])

    @pytest.mark.thorough
    def test_a_run_survives_the_death_of_the_process_that_launched_it(
        self, options: dict[str, str], gate: Gate, tmp_path: Path
    ) -> None:
        """Over REST, as with `tenfold submit`: the control service is killed, and finds the run again."""
        self.program(tmp_path, _AT_A_GATE)
        body = {
            **{"launcher": self.name, "launcher_options": options, "jobs": {"ps": 1, "worker": 2}},
            **{"entrypoint": ["python", "program.py", str(gate.port)], "working_dir": str(tmp_path)},
        }
        with Children() as children:
            service = Service(children, tmp_path)
            with service.client() as api:
                name = api.post("/v1/runs", json=body).raise_for_status().json()["name"]
                gate.wait_for("worker/0 1", "worker/1 1")
            service.kill()
            gate.tell("worker/0 1")
            service.start()
            with service.client() as api:
                running = api.get(f"/v1/runs/{name}").json()
                gate.tell("worker/1 1")
                ended = api.get(f"/v1/runs/{name}", params={"wait": "60s", "ended": "true"}).json()
                logs = api.get(f"/v1/runs/{name}/logs", params={"format": "text"}).text
        assert (running["state"], running["launcher"]) == ("RUNNING", self.name)
        assert (ended["state"], ended["reason"], ended["attempt"]) == ("SUCCEEDED", "every worker has finished", 1)
        assert [task["exit_code"] for task in ended["tasks"] if task["job"] == "worker"] == [0, 0]
        assert all(f"worker/{index} goes on" in logs for index in range(2)), logs
        assert left_over(tmp_path) == []

    # -- refusing

    def test_an_option_that_there_is_not_is_refused_in_one_line(self, launch: Launch, lines: Lines) -> None:
        with pytest.raises(LaunchRefusedError, match=rf"^{self.name} has no option 'colour'; it has .+$"):
            launch({"worker": 1}, lines, colour="red")

    def test_a_program_that_cannot_be_started_ends_with_an_error(
        self, launch: Launch, lines: Lines, tmp_path: Path
    ) -> None:
        with launch({"worker": 1}, lines) as processes:
            processes.addresses({"worker": 1})
            processes.start("worker/0", ["missing.py"])
            ended = processes.wait_for_exit(["worker/0"], PATIENCE)
        assert ended is not None
        assert ended[1] != 0

    def test_waiting_ends_with_its_time_and_with_a_wish(self, launch: Launch, lines: Lines, tmp_path: Path) -> None:
        program = self.program(tmp_path, "print('runs', flush=True); input()")
        with launch({"worker": 1}, lines) as processes:
            processes.addresses({"worker": 1})
            processes.start("worker/0", program)
            lines.wait_for("worker/0", "runs")
            assert processes.wait_for_exit(["worker/0"], 0.01) is None
            wish = threading.Event()

            def wake() -> None:
                wish.set()
                processes.wake()

            waker = threading.Timer(0.05, wake)
            waker.start()
            assert processes.wait_for_exit(["worker/0"], PATIENCE, unless=wish.is_set) is None
            waker.join()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
