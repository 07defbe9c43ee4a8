"""What "tenfold:///NAME" means in a task of a run. That its server starts is shown in tests/launchers/test_runs.py."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from tenfold.control import targets
from tenfold.runs import run_cluster
from tenfold_core import errors
from tenfold_core.cluster_spec import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Callable

_CLUSTER = {"ps": ["h:1"], "worker": ["h:2", "h:3"]}


def environment(job: str = "worker", index: int = 1) -> dict[str, str]:
    config = {"cluster": _CLUSTER, "task": {"type": job, "index": index}}
    return {"TENFOLD_TASK": f"{job}/{index}", "TF_CONFIG": json.dumps(config)}


def test_in_a_task_of_a_run_it_is_the_runs_cluster() -> None:
    found = run_cluster.of_target("tenfold:///default/worker/0", environment())

    assert found is not None
    assert (found.spec, found.job, found.index, found.has_server) == (ClusterSpec(_CLUSTER), "worker", 1, True)


@pytest.mark.parametrize(
    ("target", "variables"),
    [
        ("tenfold://host:8080/default", environment()),
        ("grpc://host:8080", environment()),
        ("tenfold:///default", {}),
        ("tenfold:///default", {"TF_CONFIG": environment()["TF_CONFIG"]}),
        ("tenfold:///default", {**environment(), "TF_CONFIG": "{"}),
        ("tenfold:///default", {**environment(), "TF_CONFIG": '{"cluster": {}}'}),
    ],
)
def test_elsewhere_a_control_service_is_asked(target: str, variables: dict[str, str]) -> None:
    assert run_cluster.of_target(target, variables) is None


@pytest.mark.parametrize(
    ("job", "wanted", "master"),
    [
        ("worker", (None, None), "grpc://h:3"),
        ("worker", ("worker", 0), "grpc://h:2"),
        ("ps", (None, None), "grpc://h:1"),
        ("evaluator", (None, None), "grpc://h:2"),
    ],
)
def test_which_master(job: str, wanted: tuple[str | None, int | None], master: str) -> None:
    found = run_cluster.of_target("tenfold:///default", environment(job, 0 if job != "worker" else 1))
    assert found is not None
    assert found.master(*wanted) == master


def test_a_task_that_the_run_does_not_have_is_named() -> None:
    found = run_cluster.of_target("tenfold:///default", environment())
    assert found is not None
    with pytest.raises(errors.NotFoundError, match=r"has no task worker/7; it has 1 ps, 2 worker\.$"):
        found.master("worker", 7)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which servers were started, and waited for; in a process that is that task."""
    found: list[str] = []

    def start(cluster: run_cluster.RunCluster) -> Callable[[], None]:
        found.append(f"{cluster.job}/{cluster.index}")
        return lambda: found.append("waited")

    monkeypatch.setattr(run_cluster, "start", start)
    monkeypatch.setattr(run_cluster, "_started", False)
    monkeypatch.setattr(run_cluster, "_lock", threading.Lock())
    monkeypatch.delenv("TENFOLD_CONTROL", raising=False)
    return found


@pytest.mark.parametrize(("job", "words"), [("worker", ["worker/0"]), ("ps", ["ps/0", "waited"]), ("evaluator", [])])
def test_the_first_question_starts_the_server(
    job: str, words: list[str], started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(job, 0).items():
        monkeypatch.setenv(name, value)

    assert targets.cluster_spec() == ClusterSpec(_CLUSTER)
    assert targets.find_master("tenfold:///default/worker/0") == "grpc://h:2"
    assert started == words
