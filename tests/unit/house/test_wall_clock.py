"""The wall clock, which somebody may set, is for what people see and for dates: nothing waits or ends by it.

Each place that reads it is listed with its purpose; deadlines, leases and ages are of the monotonic clock, or of
control_api/service_time.py.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("core", "link", "client", "kernels", "compiler", "services", "control_api")

#: Folder or file → what it reads the wall clock for.
PURPOSES = {
    "client/tenfold/cli": "shows moments, and writes dates into token files",
    "client/tenfold/compat/python/pywrap_tensorflow.py": "events carry moments",
    "client/tenfold/estimator/export/signatures.py": "folders of exports are named by the time, as in TensorFlow",
    "client/tenfold/runs/driver.py": "when a task began and ended, for people",
    "client/tenfold/runs/task_logs.py": "lines of logs",
    "client/tenfold/session/observing.py": "when a step was, for people",
    "client/tenfold/session/step_tracing.py": "traces carry moments",
    "client/tenfold/summary/file_writer.py": "events carry moments",
    "client/tenfold/train/saver.py": "when a checkpoint was saved, as in TensorFlow",
    "control_api/tenfold_control_api": "rows carry moments; their ages are service_time.py's",
    "core/tenfold_core/access": "tokens and certificates carry dates",
    "kernels/tenfold_kernels/cpu/control_flow.py": "tf.timestamp, which programs subtract from each other",
    "kernels/tenfold_kernels/cpu/summary_writer.py": "events carry moments",
    "kernels/tenfold_kernels/resources/datasets/statistics.py": "events carry moments",
    "kernels/tenfold_kernels/resources/summary_writers.py": "events carry moments",
    "services/tenfold_services/rpc": "answers carry moments",
    "services/tenfold_services/worker/graph_manager.py": "traces carry moments",
    "services/tenfold_services/worker/tracing.py": "traces carry moments",
}

#: A file without them need not be parsed.
WORDS = re.compile(r"\btime\.time|\bdatetime\.(utc)?now")


def reads(tree: ast.AST) -> list[int]:
    """The lines that name time.time, time.time_ns, datetime.now or datetime.utcnow."""
    names = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow")}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (node.value.id, node.attr) in names
    ]


def test_every_reader_has_a_purpose() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if WORDS.search(text := path.read_text(encoding="utf-8")) and (lines := reads(ast.parse(text)))
    }

    def listed(path: str) -> str | None:
        return next((each for each in PURPOSES if path == each or path.startswith(f"{each}/")), None)

    assert {path: lines for path, lines in found.items() if listed(path) is None} == {}
    assert PURPOSES.keys() == {listed(path) for path in found}, "these read it no more"


def test_a_reader_is_found() -> None:
    assert reads(ast.parse("import time\nx = time.monotonic()\ny = time.time\nz = time.time_ns()")) == [3, 4]
