"""What `tenfold status` prints: golden output at 80 columns."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from tenfold.cli.status import rendered
from tenfold.cli.tables import age

NOW = datetime(2026, 11, 24, 12, 0, 0, tzinfo=UTC)


def task(job: str, index: int, state: str, since: str, reason: str, address: str | None = None) -> dict[str, Any]:
    return {
        "name": f"/job:{job}/replica:0/task:{index}",
        "job": job,
        "index": index,
        "state": state,
        "since": f"2026-11-24T{since}.000Z",
        "reason": reason,
        "address": address,
    }


def run(name: str, state: str, reason: str, progress: dict[str, Any] | None) -> dict[str, Any]:
    times = {"created": "2026-11-24T11:00:00Z", "started": "2026-11-24T11:00:01Z", "ended": None}
    return {"name": name, "state": state, "reason": reason, "progress": progress, **times}


def table(name: str, rows: int) -> dict[str, Any]:
    nothing = dict.fromkeys(("admitted", "waiting", "evicted", "lookups", "found"))
    sizes = {"parts": 2, "rows": rows, "bytes": 80, "quota_bytes": 80, "unevenness": 1.2, "kind": "HashTable"}
    return {"name": name, **sizes, **nothing}


def shown(
    jobs: list[dict[str, Any]] | None,
    runs: list[dict[str, Any]],
    service: dict[str, Any] | None = None,
    tables: dict[str, Any] | None = None,
) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(rendered("default", jobs, runs, service, tables, NOW, 80))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= 80
    return "\n".join(lines)


def test_a_cluster_with_a_lost_worker_and_a_run() -> None:
    jobs = [
        {"tasks": [task("ps", 0, "ready", "11:59:18", "registered", "127.0.0.1:2222")], "missing_tasks": []},
        {
            "tasks": [
                task("worker", 0, "finished", "11:10:00", "finished with exit code 0", "127.0.0.1:40123"),
                task("worker", 1, "lost", "09:00:00", "ended by SIGKILL", "worker-1.example.org:2222"),
            ],
            "missing_tasks": ["/job:worker/replica:0/task:1"],
        },
    ]
    runs = [
        run("run-0123456789ab", "RUNNING", "its tasks run", {"global_step": 1234, "steps_per_second": 85.31}),
        run("run-ba9876543210", "FAILED", "worker/0 ended with exit code 1: InvalidArgumentError, node x", None),
    ]

    assert shown(jobs, runs) == (
        "runs\n"
        "run               state    since   progress                   why\n"
        "run-0123456789ab  RUNNING  59 min  step 1,234 · 85.3 steps/s  its tasks run\n"
        "run-ba9876543210  FAILED   59 min                             worker/0 ended wi…\n"
        "cluster default\n"
        "task      state     since   address                    why\n"
        "ps/0      ready     42 s    127.0.0.1:2222             registered\n"
        "worker/0  finished  50 min  127.0.0.1:40123            finished with exit code 0\n"
        "worker/1  lost      3 h     worker-1.example.org:2222  ended by SIGKILL\n"
        "/job:worker/task:1 is lost: ended by SIGKILL"
    )


def test_a_complete_cluster_without_runs() -> None:
    jobs = [{"tasks": [task("ps", 0, "ready", "11:59:59", "registered", "127.0.0.1:2222")], "missing_tasks": []}]

    assert shown(jobs, []) == (
        "cluster default\n"
        "task  state  since  address         why\n"
        "ps/0  ready  1 s    127.0.0.1:2222  registered\n"
        "complete"
    )


def test_the_largest_tables_of_the_cluster() -> None:
    jobs = [{"tasks": [task("ps", 0, "ready", "11:59:59", "registered", "127.0.0.1:2222")], "missing_tasks": []}]
    tables = {"tables": [table(f"t{at}", 100 - at) for at in range(7)], "left_out": 3, "unevenness": None}

    assert shown(jobs, [], tables={**tables, "largest": None}).splitlines()[3:] == [
        "tables of the cluster",
        "rows  memory  uneven  parts  table",
        *(f"{100 - at:<4}  80 B    1.20    2      t{at} (HashTable)" for at in range(5)),
        "… and 7 more parts of tables",
        "complete",
    ]


def test_gpus_of_tasks_that_are_ready() -> None:
    gpu = {"device_type": "GPU", "physical_device_desc": "device: 0, name: NVIDIA H200, compute capability: 9.0"}
    there, gone = (task("worker", at, state, "11:59:59", "x", "h:1") for at, state in ((0, "ready"), (1, "finished")))
    jobs = [{"tasks": [{**there, "devices": [gpu, gpu]}, {**gone, "devices": [gpu]}], "missing_tasks": []}]

    assert shown(jobs, []).splitlines()[-2:] == ["/job:worker/task:0 has 2 GPUs: NVIDIA H200", "complete"]


def test_who_lets_in_whoever_comes_is_said() -> None:
    ready, gone = (task("worker", at, state, "11:59:59", "x", "h:1") for at, state in ((0, "ready"), (1, "finished")))
    ps = task("ps", 0, "ready", "11:59:59", "registered", "0.0.0.0:2222")
    jobs = [
        {"tasks": [{**ps, "insecure": True}], "missing_tasks": []},
        {"tasks": [{**ready, "insecure": False}, {**gone, "insecure": True}], "missing_tasks": []},
    ]

    assert shown(jobs, [], {"insecure": True}) == (
        "cluster default\n"
        "task      state     since  address       why\n"
        "ps/0      ready     1 s    0.0.0.0:2222  registered\n"
        "worker/0  ready     1 s    h:1           x\n"
        "worker/1  finished  1 s    h:1           x\n"
        "complete\n"
        "insecure: anyone who reaches the control service may run code there\n"
        "insecure: anyone who reaches /job:ps/task:0 may run code there"
    )
    assert shown(None, [], {"insecure": True}) == (
        "cluster default is not declared\ninsecure: anyone who reaches the control service may run code there"
    )
    assert "insecure" not in shown(jobs[1:], [], {"insecure": False})


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("2026-11-24T12:00:03Z", "0 s"),
        ("2026-11-24T11:58:01Z", "119 s"),
        ("2026-11-24T11:58:00Z", "2 min"),
        ("2026-11-24T09:59:00Z", "2 h"),
        ("2026-11-21T12:00:00Z", "3 d"),
    ],
)
def test_ages(since: str, text: str) -> None:
    assert age(since, NOW) == text
