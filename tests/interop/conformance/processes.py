"""Runs one test file against one server, or Tenfold's client: starts the processes, survives hangs and crashes.

Called by run.py and api.py. Each test gets one outcome: pass, fail, error, skip, timeout (it had no end), crash (the
client's process died in it) or unrun (the file used up its restarts or its time).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1]))

from interop import environments  # noqa: E402 - found by the line before

ROOT = environments.ROOT
TF_PYTHON = environments.interpreter_path("2.21")

#: Stands for a server's name where the file asks Tenfold's client in its own process, and no server.
API = "api"

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

#: Seconds for a server to print its target; TensorFlow alone takes 5 to import.
START_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Limits:
    """How long what may take. An operation's deadline is shorter than a test's, so that most hangs become errors."""

    operation_seconds: float = 20
    test_seconds: float = 60
    file_seconds: float = 1200
    restarts: int = 12


@dataclass(slots=True)
class Outcome:
    outcome: str
    message: str = ""
    seconds: float = 0.0
    #: Steps that the test sent to the server.
    calls: int = 0

    @property
    def is_late(self) -> bool:
        """Whether a deadline of the runner's passed, the test's or one of its operations'."""
        return self.outcome == "timeout" or (self.outcome == "error" and "DeadlineExceededError" in self.message)


@dataclass(slots=True)
class FileResult:
    """Outcomes by test id, and why there are none if the file could not be imported."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    import_error: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "import_error": self.import_error,
            "outcomes": {test: asdict(outcome) for test, outcome in self.outcomes.items()},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FileResult:
        # Results kept from before ids were made the same in every process.
        outcomes = {_ADDRESS.sub("", test): Outcome(**outcome) for test, outcome in value["outcomes"].items()}
        return cls(outcomes, value["import_error"])


def run_file(server: str, source: Path, logs: Path, limits: Limits = Limits(), only: Sequence[str] = ()) -> FileResult:
    """Every test of `source` against `server`: "tensorflow", "tenfold" or API; `only` picks by parts of ids."""
    logs.mkdir(parents=True, exist_ok=True)
    result = FileResult()
    listed: list[str] = []
    end = time.monotonic() + limits.file_seconds
    with (
        tempfile.TemporaryDirectory() as scratch,
        (logs / f"{source.stem}.log").open("w") as log,
        (logs / f"{source.stem}.server.log").open("w") as server_log,
    ):
        if (source.parent / "tensorflow").is_dir():
            # what tests read by its path in TensorFlow's repository
            Path(scratch, "tensorflow").symlink_to(source.parent / "tensorflow")
        for attempt in range(limits.restarts + 1):
            left = end - time.monotonic()
            if left <= 0:
                break
            with contextlib.nullcontext("") if server == API else serving(server, server_log) as target:
                plan = {
                    "server": server,
                    "python": sys.executable,
                    "target": target,
                    "file": str(source),
                    "results": f"{scratch}/{attempt}.jsonl",
                    "scratch": f"{scratch}/tmp{attempt}",
                    "done": list(result.outcomes),
                    "only": list(only),
                    "operation_seconds": limits.operation_seconds,
                    "test_seconds": limits.test_seconds,
                }
                finished = _attempt(plan, scratch, log, left, result, listed)
            if finished:
                break
    for test in listed:
        result.outcomes.setdefault(test, Outcome("unrun", "the file used up its restarts or its time"))
    return result


def _attempt(
    plan: dict[str, Any], scratch: str, log: IO[str], seconds: float, result: FileResult, listed: list[str]
) -> bool:
    """One process of the client; whether nothing is left to run."""
    plan_file = Path(scratch, "plan.json")
    plan_file.write_text(json.dumps(plan), encoding="utf-8")
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": "", "TF_USE_LEGACY_KERAS": "1"}
    ours = plan["server"] == API
    python, program = (sys.executable, "in_tenfold.py") if ours else (str(TF_PYTHON), "in_tensorflow.py")
    process = subprocess.Popen(
        [python, str(HERE / program), str(plan_file)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=os.environ | quiet,
        cwd=scratch,
    )
    why = "the client's process died"
    try:
        code = process.wait(seconds)
        why = f"the client's process ended with {code}"
    except subprocess.TimeoutExpired:
        why = "the file's time was over"
    finally:
        process.kill()
        process.wait()
    started, finished = "", False
    results = Path(plan["results"])
    for text in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        line = json.loads(text)
        if "test" in line:
            test = line.pop("test")
            result.outcomes[test] = Outcome(**line)
            started = ""
        elif "started" in line:
            started = line["started"]
        elif "tests" in line:
            listed.extend(test for test in line["tests"] if test not in listed)
        elif "import" in line:
            result.import_error, finished = line["import"], True
        else:
            finished = True
    if started:
        result.outcomes[started] = Outcome("crash", why)
    elif not finished and not listed:
        result.import_error, finished = why, True
    return finished


@contextlib.contextmanager
def serving(server: str, log: IO[str]) -> Iterator[str]:
    """A server in a process of its own for the time of the block; gives its target."""
    python = str(TF_PYTHON) if server == "tensorflow" else sys.executable
    process = subprocess.Popen(
        [python, str(HERE / "serve.py"), server],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ""},
    )
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    stdout = process.stdout
    threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    try:
        try:
            answer = json.loads(lines.get(timeout=START_SECONDS) or "{}")
        except queue.Empty:
            answer = {}
        if "target" not in answer:
            raise RuntimeError(f"No server of {server}: {answer or 'see ' + log.name}")
        yield answer["target"]
    finally:
        process.kill()
        process.wait()
