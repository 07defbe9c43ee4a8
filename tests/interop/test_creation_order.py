"""Reads and updates of variables that nothing orders run in the order of their creation, with TensorFlow at either end.

The programs are those of creation_order.py. With TensorFlow's own ps the order is kept where our master would lose it.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import interpreter, printed_json, tensorflow_servers

pytestmark = pytest.mark.timeout(240)

PROGRAM = str(Path(__file__).with_name("creation_order.py"))
THOROUGH = pytest.mark.thorough


@pytest.mark.parametrize(
    ("client", "ps", "worker"),
    [
        ("2.21", "ours", "ours"),
        pytest.param("1.15", "ours", "ours", marks=THOROUGH),
        pytest.param("tenfold", "2.21", "ours", marks=THOROUGH),
        pytest.param("2.21", "2.21", "ours", marks=THOROUGH),
        pytest.param("1.15", "1.15", "ours", marks=THOROUGH),
        pytest.param("2.21", "ours", "2.21", marks=THOROUGH),
    ],
)
def test_reads_go_before_later_updates(client: str, ps: str, worker: str) -> None:
    kinds = {("ps", 0): ps, ("worker", 0): worker}
    theirs = [task for task, kind in kinds.items() if kind != "ours"]
    with ExitStack() as stack:
        tasks = stack.enter_context(static_cluster(absent=theirs, ps=1, worker=1))
        for version in sorted({ps, worker} - {"ours"}):
            mine = [task for task in theirs if kinds[task] == version]
            stack.enter_context(tensorflow_servers(version, tasks.addresses, mine))
        python, library = (sys.executable, "tenfold") if client == "tenfold" else (interpreter(client), "tensorflow")
        found = printed_json(python, PROGRAM, library, tasks.target("worker", 0))

    assert found["reads_before_updates"] == [[[4.0] * 3, [0.0] * 3]] * 4
    if ps == "ours":
        steps = [[[2.0 * a, 2.0 * b], [a + 1.0, b + 1.0]] for a, b in ((1.0, 2.0), (11.0, 12.0), (21.0, 22.0))]
        assert found["several_reads"] == [steps] * 4
