"""`/metrics`: every task's figures, the active runs, the service's process; as Prometheus and Grafana read it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tenfold_control_api.serving.figures import MODEL_FIGURES
from tenfold_core.build_info import build_info
from tenfold_core.task_metrics import PEER_METRICS, QUEUE_METRICS, TABLE_METRICS, TASK_METRICS

from .conftest import declare, register
from .test_figures import FIGURES, renew
from .test_runs import program_report, report

if TYPE_CHECKING:
    import httpx

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "grafana" / "tenfold.json"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian's package prometheus has it)"
)


def promtool(*what: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", "check", *what], input=given, capture_output=True, text=True, timeout=30)


async def a_whole_scrape(api: httpx.AsyncClient) -> str:
    """The scrape of a service that has some of everything: tasks with figures and without, one lost, a run, a step."""
    await declare(api, ps=1, worker=2)
    worker = (await register(api, "worker", 0))["lease"]["id"]
    await register(api, "ps", 0)
    await renew(api, worker, FIGURES)
    lost = (await register(api, "worker", 1))["lease"]["id"]
    await renew(api, lost, FIGURES)
    await api.post(f"/v1/leases/{lost}:release", json={"state": "lost"})
    run = {"entrypoint": ["python", "x.py"], "working_dir": "/x", "jobs": {"worker": 1}, "launcher": "external"}
    path = f"/v1/runs/{(await api.post('/v1/runs', json={**run, 'submission_id': 'mine'})).json()['name']}"
    await api.post(f"{path}:report", json=report())
    for step in (5, 6):
        told = program_report(step, steps_per_second=2.5)
        assert (await api.post(f"{path}/tasks/worker/0:report", json=told)).is_success
    session = (await api.post("/v1/sessions", json={"cluster": "default", "graph_def": ""})).json()["name"]
    await api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]})
    answer = await api.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text


def parsed(scrape: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Name of a sample → its labels and values."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(scrape):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def test_tasks_by_cluster_job_and_index(api: httpx.AsyncClient) -> None:
    found = parsed(await a_whole_scrape(api))

    who = {"cluster": "default", "job": "worker", "task": "0"}
    for metric in TASK_METRICS[:-1]:
        assert found[metric.name] == [(who, FIGURES[metric.member])], metric
    assert [labels["job"] for labels, _ in found["tenfold_task_heartbeat_age_seconds"]] == ["ps", "worker"]
    assert found["tenfold_task_peer_received_bytes_total"] == [({**who, "peer": "/job:ps/replica:0/task:0"}, 20.0)]
    assert found["tenfold_task_queue_capacity"] == [({**who, "queue": "tokens"}, 8.0)]
    assert found["tenfold_task_table_found_total"] == [({**who, "table": "user/part_0"}, 4.0)]
    assert {metric.name for metric in (*PEER_METRICS, *QUEUE_METRICS, *TABLE_METRICS)} <= found.keys()


async def test_runs_build_and_process(api: httpx.AsyncClient) -> None:
    found = parsed(await a_whole_scrape(api))

    (info, _) = found["tenfold_run_info"][0]
    assert (info["submission"], info["state"]) == ("mine", "RUNNING")
    assert found["tenfold_run_global_step"] == [({"run": info["run"]}, 6.0)]
    assert found["tenfold_run_steps_per_second"] == [({"run": info["run"]}, 2.5)]
    assert found["tenfold_build_info"] == [(build_info(), 1.0)]
    assert found["process_resident_memory_bytes"][0][1] > 1e6
    assert found["process_cpu_seconds_total"][0][1] > 0


@needs_promtool
async def test_promtool_has_nothing_to_say(api: httpx.AsyncClient) -> None:
    scrape = await a_whole_scrape(api)

    done = await asyncio.to_thread(promtool, "metrics", given=scrape)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


# -- the Grafana dashboard


def expressions() -> list[str]:
    """What its panels and variables ask for, in PromQL."""
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    variables = [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    return [*asked, *(re.fullmatch(r"label_values\((.*), \w+\)", query)[1] for query in variables)]  # type: ignore[index]


async def test_the_dashboard_names_only_what_a_scrape_has(api: httpx.AsyncClient) -> None:
    found = parsed(await a_whole_scrape(api))

    asked = {name for each in expressions() for name in re.findall(r"\b(?:tenfold|process)_\w+", each)}

    # no model follows a training here
    models = {f"tenfold_model_{name}" for name in MODEL_FIGURES}
    assert asked <= found.keys() | models
    assert models <= asked
    everything = {metric.name for metric in (*TASK_METRICS, *PEER_METRICS, *QUEUE_METRICS, *TABLE_METRICS)}
    assert everything <= asked, "a metric of tasks has no panel"


def test_the_dashboard_has_places_and_names_of_its_own() -> None:
    board: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = board["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({panel["title"] for panel in panels}) == len(panels)
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels]
    assert len(set(places)) == len(panels)
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in panels)


@needs_promtool
def test_promtool_reads_what_the_dashboard_asks(tmp_path: Path) -> None:
    plain = [
        each.replace("$__rate_interval", "1m").replace("$cluster", ".*").replace("$job", ".*") for each in expressions()
    ]
    rules = [{"record": f"asked:{number}", "expr": each} for number, each in enumerate(plain)]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))

    done = promtool("rules", str(file))

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(plain)} rules found" in done.stdout
