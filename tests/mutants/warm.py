"""Tries the changes of one file: a process that has imported what the file does not change, and a fork for each change.

Run by run.py with the scratch tree's interpreter, in the tree; a job comes as JSON on the standard input, a result a
line goes out. First the tests run on the file as it is, nearest first, until their time is used up: what they
reach, and how long they take. Then each change is written to the tree's file, and the tests that reach its statement
run in a fork, up to the first that fails. A failure of a test that takes long, or that ran out of time, counts if the
test passes again without the change. What a fork leaves is killed. Calls block.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import importlib
import itertools
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pytest

from mutants import changes, reach

#: Packages of others that most tests import.
_OTHERS = ("numpy", "hypothesis", "numba", "grpc", "google.protobuf", "pytest_asyncio", "httpx", "hpack")
_OTHERS_OF_CONTROL = ("fastapi", "sqlalchemy.ext.asyncio", "uvicorn", "aiosqlite", "alembic", "prometheus_client")
#: Bytes of memory that a fork may hold: a change can make a loop that never stops growing.
_MOST_MEMORY = 4 << 30
#: How many times a test's usual time it may take on a changed file, and seconds beyond that.
_SLOWER, _PATIENCE = 10, 15
#: A test that takes longer than this may fail for the machine's sake: it is tried once more without the change.
_QUICK = 0.5
_PR_SET_CHILD_SUBREAPER = 36


class _Watch:
    """Writes what becomes of each test; runs the wanted ones only, and stops when the time is used up."""

    def __init__(self, report: str, wanted: set[str] | None, until: float) -> None:
        self._report, self._wanted, self._until = report, wanted, until
        self._failed: dict[str, str] = {}
        #: What was reached while tests were collected: modules call their own functions when they are imported.
        self._before: set[int] = set()
        self._line("", "loading", 0.0)

    def _line(self, test: str, outcome: str, seconds: float, reached: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        with open(self._report, "a", encoding="utf-8") as file:
            file.write(json.dumps([test, outcome, round(seconds, 3), sorted(reached)]) + "\n")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._wanted is not None:
            items[:] = [item for item in items if item.nodeid in self._wanted]
        if path := os.environ.get(reach.VARIABLE):
            self._before = reach.take(path)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        self._line(item.nodeid, "running", 0.0)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            path = os.environ.get(reach.VARIABLE)
            outcome = self._failed.pop(item.nodeid, "passed")
            reached = reach.take(path) | self._before if path else set()
            self._line(item.nodeid, outcome, time.monotonic() - began, reached)
            if sum(os.times()[:4]) > self._until:
                item.session.shouldstop = "the time for this file is used up"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._failed[report.nodeid] = "failed" if report.failed else "skipped"


def _in_child(
    report: str, tests: list[str], wanted: set[str] | None, seconds: float, timeout: float, first: bool
) -> int:
    """What the fork does: pytest, its output to a file beside the report. Never returns to the parent's code."""
    os.setsid()
    output = os.open(f"{report}.output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--timeout={timeout:.0f}", *(["-x"] if first else [])]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are imported already
    return int(pytest.main([*options, *tests], plugins=[_Watch(report, wanted, sum(os.times()[:4]) + seconds)]))


def _resident(process: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _descendants() -> list[int]:
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found, waiting = [], [os.getpid()]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def _kill_leftovers() -> None:
    while left := _descendants():
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _of_few_files(tests: list[str], most: int = 3) -> list[str]:
    """The first tests, of so many files: to collect a file takes about as long for one of its tests as for all."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))[:most]
    return list(itertools.takewhile(lambda test: test.partition("::")[0] in files, tests))


class Warm:
    """The process of one file."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.path = Path(job["path"])
        self.source = self.path.read_text(encoding="utf-8")
        #: Those whose kept machine code has code of the file, with their texts.
        self.users = {path: path.read_text(encoding="utf-8") for path in map(Path, job["users"])}
        #: The times of all of these.
        self.stamps = {path: path.stat() for path in (self.path, *self.users)}
        self.report = str(Path(tempfile.mkdtemp(prefix="mutants-")) / "report")
        #: Test → seconds it takes, the statements that it reaches; in the order in which they run.
        self.tests: dict[str, tuple[float, set[int]]] = {}
        self.spans: list[tuple[int, int]] = []

    def warm_up(self) -> None:
        nowhere = open(os.devnull, "w")  # noqa: SIM115 - also for what its warnings go to
        quiet = contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere)
        with tempfile.TemporaryDirectory() as empty, nowhere, quiet[0], quiet[1]:  # imports pytest's plugins
            pytest.main(["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", empty, empty])
        for name in (*_OTHERS, *(_OTHERS_OF_CONTROL if "control_api" in self.job["module"] else ())):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        os.environ.setdefault("TENFOLD_CACHE_DIR", str(Path(".pytest_cache/tenfold").resolve()))
        names = list(self.job["imports"])
        while names:
            count = self._harmless(names)
            for name in names[:count]:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
            names = names[count + 1 :]

    def _harmless(self, names: list[str]) -> int:
        """How many of these can be imported, one after another, before one reads the tables of ops, and so the file,
        by a name that no import tells. A fork tries it."""
        if ".opdefs." not in self.job["module"]:
            return len(names)
        count = Path(f"{self.report}.harmless")
        child = os.fork()
        if not child:
            for number, name in enumerate(names):
                count.write_text(str(number), encoding="utf-8")
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
                if self.job["module"] in sys.modules:
                    os._exit(0)
            count.write_text(str(len(names)), encoding="utf-8")
            os._exit(0)
        os.waitpid(child, 0)
        return int(count.read_text(encoding="utf-8"))

    def write(self, text: str) -> None:
        """The file with this text; no bytecode of another text is left, no machine code is taken for another's, and
        the old text has its old time."""
        self.path.unlink(missing_ok=True)
        self.path.write_text(text, encoding="utf-8")
        mark = "" if text == self.source else f"# {hashlib.sha256(text.encode()).hexdigest()}\n"
        for user, own in self.users.items():  # Numba looks at the text, not only at the time
            user.write_text(own + mark, encoding="utf-8")
        now = time.time_ns()
        for path, stamp in self.stamps.items():
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns) if text == self.source else (now, now))
        for compiled in (self.path.parent / "__pycache__").glob(f"{self.path.stem}.*.pyc"):
            compiled.unlink()

    def fork(
        self, tests: list[str], wanted: set[str] | None, seconds: float, timeout: float, bound: float, first: bool
    ) -> list[list[Any]]:
        """Runs tests in a fork and returns what _Watch wrote; the last line says how the fork ended."""
        Path(self.report).unlink(missing_ok=True)
        child = os.fork()
        if not child:
            code = 70
            try:
                code = _in_child(self.report, tests, wanted, seconds, timeout, first)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        end, status = time.monotonic() + bound, None
        pause = 0.002
        while status is None and time.monotonic() < end and _resident(child) < _MOST_MEMORY:
            found, ended = os.waitpid(child, os.WNOHANG)
            status = ended if found else None
            time.sleep(pause if status is None else 0)
            pause = min(0.05, pause * 1.5)
        _kill_leftovers()
        lines = []
        if Path(self.report).exists():
            lines = [json.loads(line) for line in Path(self.report).read_text(encoding="utf-8").splitlines()]
        code = -1 if status is None else os.waitstatus_to_exitcode(status)
        return [*lines, ["", "ended", code, []]]

    # -- the file as it is -------------------------------------------------------------------------------------------

    def profile(self) -> list[str]:
        """Runs the tests on the file as it is. Returns those that fail, which are left out."""
        began, until = time.monotonic(), sum(os.times()[:4]) + self.job["seconds"]
        marked, self.spans = reach.marked(self.source)
        reached_file = f"{self.report}.reached"
        failed: list[str] = []
        files = list(self.job["tests"])
        while files and (left := until - sum(os.times()[:4])) > 0:
            if time.monotonic() - began > 10 * self.job["seconds"]:
                break
            some = _of_few_files(files)
            files = files[len(some) :]
            os.environ[reach.VARIABLE] = reached_file
            Path(reached_file).touch()
            self.write(marked)
            found = self.fork(some, None, left, 120, 10 * left + 150, False)
            os.environ.pop(reach.VARIABLE)
            self.write(self.source)
            bad = {test for test, outcome, *_ in found if outcome == "failed"}
            if bad or found[-1][2] not in (0, 1, 2, 5):
                # marks may be too much for a test, or for a compiler
                found = self.fork(some, None, left, 120, 10 * left + 150, False)
                bad = {test for test, outcome, *_ in found if outcome == "failed"}
                everything = {first for first, _ in self.spans}
                found = [[test, outcome, seconds, everything] for test, outcome, seconds, _ in found]
            failed += sorted(bad)
            for test, outcome, seconds, reached in found:
                if outcome == "passed" and test not in bad:
                    self.tests[test] = (seconds, set(reached))
        return failed

    # -- a change ----------------------------------------------------------------------------------------------------

    def try_change(self, function: str, what: str) -> dict[str, Any]:
        """Whether the tests notice a change, which of them, and how."""
        (change,) = [each for each in changes.changes(self.source) if (each.function, each.what) == (function, what)]
        # code is written once in a process, for whichever test comes first
        line = None if self.job["users"] else reach.statement_of(change.line, self.spans)
        reaching = [test for test, (_, reached) in self.tests.items() if line is None or line in reached]
        result: dict[str, Any] = {"line": change.line, "tests": len(reaching), "by": "", "how": "passed"}
        if not reaching:
            return {**result, "how": "not reached"}
        first = [test for test in reaching if test.partition("::")[0] == reaching[0].partition("::")[0]]
        rest = [test for test in reaching if test not in first]
        quick = [test for test in rest if self.tests[test][0] < 3]
        for some in (first, quick, [test for test in rest if test not in quick]):
            while some:
                by, how = self._noticed(change, some)
                if not how:
                    break
                if self._holds(by, how):
                    return {**result, "by": by, "how": how}
                self.tests.pop(by, None)  # it fails without the change as well, now and then
                some.remove(by)
        return result

    def _noticed(self, change: changes.Change, tests: list[str]) -> tuple[str, str]:
        usual = sum(self.tests[test][0] for test in tests)
        longest = max(self.tests[test][0] for test in tests)
        timeout = _PATIENCE + _SLOWER * longest
        self.write(changes.apply(self.source, change))
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        found = self.fork(files, set(tests), 1e9, timeout, 2 * _PATIENCE + timeout + _SLOWER * usual, True)
        self.write(self.source)
        failed = [test for test, outcome, *_ in found if outcome == "failed"]
        code = found[-1][2]
        last = next((test for test, outcome, *_ in reversed(found) if outcome == "running"), "")
        if failed:
            return failed[0], "failed"
        if code == -1:
            return last, "endless"
        if code in (0, 5):
            return "", ""
        return last, "not imported" if code in (2, 3, 4) else f"ended with {code}"

    def _holds(self, by: str, how: str) -> bool:
        if by not in self.tests or (how == "failed" and self.tests[by][0] < _QUICK):
            return True
        found = self.fork([by.partition("::")[0]], {by}, 1e9, 120, 150, True)
        return any(test == by and outcome == "passed" for test, outcome, *_ in found)


def main() -> None:
    job = json.loads(sys.stdin.read())
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    reach.install()
    warm = Warm(job)
    try:
        warm.warm_up()
        gc.collect()
        gc.freeze()  # what was imported is shared with the forks, not copied by their collector
        if job["module"] in sys.modules:  # then a change would not be seen
            raise SystemExit(f"{job['module']} is imported already")
        failed = warm.profile()
        print(json.dumps({"failed": failed, "tests": len(warm.tests)}), flush=True)
        for function, what in job["mutants"]:
            began = time.monotonic()
            result = warm.try_change(function, what)
            result["seconds"] = round(time.monotonic() - began, 1)
            print(json.dumps({"function": function, "what": what, **result}), flush=True)
    finally:
        warm.write(warm.source)


if __name__ == "__main__":
    main()
