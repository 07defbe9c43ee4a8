"""Runs one test file of TensorFlow, in the TensorFlow interpreter, and writes each test's outcome as a line of JSON.

`python in_tensorflow.py PLAN`: PLAN is a JSON file that processes.py writes; in_tenfold.py runs files with the same
record in Tenfold's interpreter. A test that outlives its deadline
ends the process with code 75, its outcome written; the caller starts another one for the rest.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import re
import sys
import threading
import time
import traceback
import types
import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

OVERDUE = 75

#: Characters of an error's text that are kept.
KEPT = 900


def name_of(test: Any) -> str:
    """Its id, the same in every process: parameters may show where an object lies."""
    return re.sub(r" at 0x[0-9a-f]+", "", test.id())


class Record(unittest.TestResult):
    """Writes an outcome when a test ends, at once: the process may die in the next one."""

    def __init__(self, path: Path, seconds: float, wire: Any) -> None:
        super().__init__()
        self._file = path.open("a", encoding="utf-8")
        self._seconds = seconds
        self._wire = wire
        self._lock = threading.Lock()
        self._current: str | None = None
        self._began = 0.0
        self._calls = 0
        self._outcome: tuple[str, str] | None = None
        threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        with self._lock:
            self._current, self._began, self._calls = name_of(test), time.monotonic(), self._wire.calls
            self._outcome = None
            self.write({"started": name_of(test)})

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        with self._lock:
            self._end(*(self._outcome or ("pass", "")))

    def _end(self, outcome: str, message: str) -> None:
        self.write(
            {
                "test": self._current,
                "outcome": outcome,
                "message": message,
                "seconds": round(time.monotonic() - self._began, 2),
                "calls": self._wire.calls - self._calls,
            }
        )
        self._current = None

    def _watch(self) -> None:
        pause = threading.Event()
        while True:
            pause.wait(0.5)  # no time.sleep: tests put something else in its place
            with self._lock:
                if self._current is not None and time.monotonic() - self._began > self._seconds:
                    faulthandler.dump_traceback(all_threads=True)
                    self._end("timeout", f"no end after {self._seconds:.0f} s; {_where_main_is()}")
                    os._exit(OVERDUE)

    def _failed(self, outcome: str, test: Any, err: Any) -> None:
        message = _short("".join(traceback.format_exception_only(err[0], err[1])).strip())
        traceback.print_exception(*err)
        if self._current is None:  # setUpClass or a module's fixture
            self.write({"test": name_of(test), "outcome": outcome, "message": message[:KEPT], "seconds": 0, "calls": 0})
        elif self._outcome is None or self._outcome[0] == "skip":
            self._outcome = (outcome, message[:KEPT])

    def addError(self, test: Any, err: Any) -> None:
        self._failed("error", test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._failed("fail", test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._failed("fail" if issubclass(err[0], test.failureException) else "error", test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        if self._current is None:
            self.write({"test": name_of(test), "outcome": "skip", "message": reason, "seconds": 0, "calls": 0})
        elif self._outcome is None:
            self._outcome = ("skip", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        pass

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._outcome = ("fail", "passed, against expectation")


def _short(message: str) -> str:
    """Without the stack of the node's making, which TensorFlow's client puts before what the server said."""
    head, found, said = message.rpartition("\nNode: ")
    return f"{head.split(':')[0].rpartition('.')[2]}: {said.partition(chr(10))[2]}" if found else message


def _where_main_is() -> str:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    stack = traceback.extract_stack(frame) if frame else []
    ours = [f"{Path(entry.filename).name}:{entry.lineno}" for entry in stack if entry.filename.endswith("_test.py")]
    return f"at {ours[-1]}" if ours else "outside of the test file"


def _flat(suite: Any) -> list[Any]:
    """The suite's tests, without the test case's own helper that is named like one."""
    if isinstance(suite, unittest.TestSuite):
        return [test for part in suite for test in _flat(part)]
    return [] if suite.id().endswith(".test_session") else [suite]


def _name_modules_of_the_repository() -> None:
    """The wheel keeps some generated modules under another name than the repository that the test files live in."""
    from tensorflow.compiler.xla.tsl.protobuf import rpc_options_pb2

    for name in ("xla", "xla.tsl", "xla.tsl.protobuf"):
        sys.modules.setdefault(name, types.ModuleType(name))
    vars(sys.modules["xla.tsl.protobuf"])["rpc_options_pb2"] = rpc_options_pb2
    sys.modules["xla.tsl.protobuf.rpc_options_pb2"] = rpc_options_pb2


def run(plan: dict[str, Any], wire: Any, prepare: Callable[[Path], None], names: dict[str, Any] | None = None) -> None:
    """Imports the plan's file, which has `names` already, and runs its tests; `prepare` is called between.

    Ends the process.
    """
    path = Path(plan["file"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names or {})
    sys.modules[path.stem] = module
    record = Record(Path(plan["results"]), plan["test_seconds"], wire)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        record.write({"import": f"{type(error).__name__}: {error}"[:KEPT]})
        traceback.print_exc()
        return
    os.makedirs(plan["scratch"], exist_ok=True)
    prepare(path)
    tests = _flat(unittest.defaultTestLoader.loadTestsFromModule(module))
    done, only = set(plan["done"]), plan["only"]
    names = {test: name_of(test) for test in tests}
    tests = [test for test in tests if names[test] not in done and (not only or any(p in names[test] for p in only))]
    record.write({"tests": [name_of(test) for test in tests]})
    unittest.TestSuite(tests).run(record)
    record.write({"finished": True})
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that a failed test left behind, waiting at the server, must not keep the process.
    os._exit(0)


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    faulthandler.enable()
    sys.path.insert(0, str(Path(__file__).parent))
    import shims
    import tensorflow.compat.v1 as tf
    from absl import flags

    tf.disable_v2_behavior()
    _name_modules_of_the_repository()
    shims.graph_mode_only()
    wire = shims.point_sessions_at(plan["target"], plan["operation_seconds"])
    if plan["server"] == "tenfold":
        shims.serve_with_tenfold(plan["python"])

    def parse_flags(path: Path) -> None:
        flags.FLAGS([path.name, f"--test_tmpdir={plan['scratch']}"])

    run(plan, wire, parse_flags)


if __name__ == "__main__":
    main()
