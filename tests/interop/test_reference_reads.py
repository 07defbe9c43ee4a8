"""A reference variable that another task reads has the value that it must have by then: no read comes too early.

Clients, masters, parameter servers and readers of both kinds, small variables and large ones, over every way between
processes. The program is reference_reads.py's; what it allows was seen with TensorFlow's own servers.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import interpreter, printed_json, tensorflow_servers

pytestmark = pytest.mark.timeout(600)

PROGRAM = str(Path(__file__).with_name("reference_reads.py"))
WAYS = (
    *("after a value", "after an update", "after the reader's own work", "at any time"),
    *("before and after", "between two updates", "in a branch"),
)
#: Floats of 64 MB.
LARGE = 16 << 20
THOROUGH = [pytest.mark.thorough]
#: The environment's switches for each way between our processes.
PATHS = {
    "link": {},
    "noshm": {"TENFOLD_SHARED_MEMORY": "off"},
    "tcp": {"TENFOLD_LINK": "tcp"},
    "grpc": {"TENFOLD_LINK": "off"},
}
#: Client, kind of the ps, kind of the worker, whose part of the graph reads.
CLUSTERS = [
    ("2.21", "ours", "ours"),
    ("1.15", "ours", "ours"),
    ("tenfold", "2.21", "2.21"),
    ("tenfold", "ours", "2.21"),
    ("tenfold", "1.15", "ours"),
    ("2.21", "ours", "2.21"),
    ("2.21", "2.21", "ours"),
    ("1.15", "ours", "1.15"),
]


def reads(
    client: str,
    *options: str,
    ps: str = "ours",
    worker: str = "ours",
    master: str = "worker",
    floats: int = 3,
    steps: int = 100,
    serve: bool = False,
) -> dict[str, Any]:
    """What the program prints. `client` is tenfold or a version of TensorFlow; the session is at job `master`."""
    kinds = {("ps", 0): ps, ("worker", 0): worker}
    theirs = [task for task, kind in kinds.items() if kind != "ours"]
    absent = [*theirs, ("worker", 0)] if serve else theirs
    with ExitStack() as stack:
        tasks = stack.enter_context(static_cluster(absent=absent, ps=1, worker=1))
        for version in {ps, worker} - {"ours"}:
            mine = [task for task in theirs if kinds[task] == version]
            stack.enter_context(tensorflow_servers(version, tasks.addresses, mine))
        if serve:
            options = (*options, f"serve={json.dumps(tasks.addresses)}")
        python, library = (sys.executable, "tenfold") if client == "tenfold" else (interpreter(client), "tensorflow")
        arguments = [library, tasks.target(master, 0), "/job:worker/task:0", str(floats), str(steps)]
        found: dict[str, Any] = printed_json(python, PROGRAM, *arguments, *options, timeout=500)
        return found


def fine(ways: tuple[str, ...] = WAYS) -> dict[str, Any]:
    """What is printed if no step was wrong."""
    return {way: {"wrong": 0, "first": []} for way in ways}


@pytest.mark.parametrize(
    ("path", "master"),
    [
        pytest.param(path, master, marks=[] if (path, master) == ("link", "worker") else THOROUGH)
        for path in PATHS
        for master in ("worker", "ps")
    ],
)
def test_our_client_and_our_servers(path: str, master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATHS[path].items():
        monkeypatch.setenv(name, value)
    assert reads("tenfold", master=master, steps=60) == fine()


@pytest.mark.parametrize("path", ["link", *(pytest.param(path, marks=THOROUGH) for path in ("noshm", "tcp", "grpc"))])
def test_the_reader_is_the_client_s_own_process(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATHS[path].items():
        monkeypatch.setenv(name, value)
    assert reads("tenfold", steps=60, serve=True) == fine()


@pytest.mark.parametrize("path", ["tcp", *(pytest.param(path, marks=THOROUGH) for path in ("link", "noshm", "grpc"))])
def test_a_large_variable(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATHS[path].items():
        monkeypatch.setenv(name, value)
    ways = ("after an update", "before and after")
    assert reads("tenfold", f"ways={','.join(ways)}", floats=LARGE // 16, steps=8, serve=True) == fine(ways)


@pytest.mark.thorough
@pytest.mark.parametrize(("client", "ps", "worker"), CLUSTERS[:1])
def test_tensorflow_s_client(client: str, ps: str, worker: str) -> None:
    assert reads(client, ps=ps, worker=worker, steps=30) == fine()


@pytest.mark.long
@pytest.mark.parametrize("master", ["worker", "ps"])
@pytest.mark.parametrize(("client", "ps", "worker"), CLUSTERS)
def test_a_thousand_steps_of_each_cluster(client: str, ps: str, worker: str, master: str) -> None:
    assert reads(client, ps=ps, worker=worker, master=master, steps=1000) == fine()


@pytest.mark.long
@pytest.mark.parametrize("serve", [False, True], ids=["client apart", "client serves"])
@pytest.mark.parametrize("path", PATHS)
def test_a_thousand_steps_over_each_way(path: str, serve: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATHS[path].items():
        monkeypatch.setenv(name, value)
    assert reads("tenfold", steps=1000, serve=serve) == fine()


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS)
def test_a_thousand_steps_with_64_megabytes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PATHS[path].items():
        monkeypatch.setenv(name, value)
    ways = ("after an update",)
    assert reads("tenfold", f"ways={ways[0]}", floats=LARGE, steps=1000, serve=True) == fine(ways)


@pytest.mark.long
@pytest.mark.parametrize(("client", "ps", "worker"), CLUSTERS)
def test_64_megabytes_between_both_kinds(client: str, ps: str, worker: str) -> None:
    ways = ("after an update", "before and after")
    found = reads(client, f"ways={','.join(ways)}", ps=ps, worker=worker, floats=LARGE, steps=100)
    assert found == fine(ways)
