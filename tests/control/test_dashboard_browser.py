"""The dashboard in a real Chromium, on a real service with scripted masters: what it shows of what others wrote, at any
size, with a token, and without a connection. With real runs: tests/process/test_dashboard.py.
"""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from support.browser import Browser, chromium, missing
from tenfold_control_api.runs.progress import DISTRIBUTION
from tenfold_protos.trace_pb2 import ProgramTrace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Service

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.timeout(240),
]

EVIL = "<img src=x onerror='window.hacked=1'>"
SUPERVISOR = {"host": EVIL, "pid": 1}
#: Holds once the page follows the events.
LIVE = "document.querySelector('.pulse').innerText === 'live'"
#: What a page of tables may have, however long they are.
ELEMENTS = 2000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def database(tmp_path: Path) -> str:
    """One kind is enough: what the page sees is the same."""
    return str(tmp_path / "control.db")


@pytest.fixture
def browser(shared: Browser) -> Iterator[Browser]:
    shared.resize(1280, 900)
    yield shared
    shared.open("about:blank")
    shared.complaints()


@pytest.fixture
def quiet(start_service: Callable[..., Service]) -> Service:
    """A service whose leases outlast the test."""
    return start_service(heartbeat=1.0, lease_ttl=600.0)


def client_of(service: Service) -> httpx.Client:
    return httpx.Client(base_url=service.url, trust_env=False, timeout=30)


def an_external_run(api: httpx.Client, name: str = "theirs", **report: Any) -> str:
    """A run that others started, with a task that has failed, and a curve."""
    body = {"launcher": "external", "entrypoint": ["python", EVIL], "jobs": {"worker": 2}, "submission_id": name}
    run = api.post("/v1/runs", json=body).raise_for_status().json()["name"]
    error = {"type": EVIL, "message": f"{EVIL} is not finite", "node": "loss/check", "task": "/job:worker/task:1"}
    tasks = [
        {"job": "worker", "index": 0, "state": "running", "host": EVIL, "pid": 2, "started": 1.0},
        {"job": "worker", "index": 1, "state": "failed", "exit_code": 3, "error": error, "last_lines": [EVIL, "last"]},
    ]
    told = {"state": "RUNNING", "reason": EVIL, "attempt": 1, "tasks": tasks, "supervisor": SUPERVISOR, **report}
    api.post(f"/v1/runs/{run}:report", json=told).raise_for_status()
    for index in range(2):
        points = [
            {"time": time.time() + at, "step": 10 * at, "values": {f"loss {EVIL}": math.exp(-at / 9)}}
            for at in range(9)
        ]
        progress = {"steps": 9, "global_step": 80 - 30 * index, "steps_per_second": 4.5, "points": points}
        progress["last_step"] = 320
        progress["checkpoints"] = [{"time": time.time(), "path": f"/{EVIL}-80"}]
        progress["logdirs"] = [f"/{EVIL}"]
        progress["tables"] = [a_table(EVIL, 7, kind=EVIL)]
        api.post(f"/v1/runs/{run}/tasks/worker/{index}:report", json=progress).raise_for_status()
    return str(run)


def a_table(name: str, rows: int, **figures: Any) -> dict[str, Any]:
    return {"name": name, "kind": "EmbeddingVariable", "rows": rows, "bytes": 100 * rows, **figures}


def a_cluster(api: httpx.Client, name: str, **jobs: int) -> None:
    api.put(f"/v1/clusters/{name}", json={"jobs": jobs}).raise_for_status()

    def register(job: str, index: int) -> None:
        body = {"address": f"10.0.0.1:{1000 + index}", "incarnation": "a"}
        api.put(f"/v1/clusters/{name}/tasks/{job}/{index}", json=body).raise_for_status()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(register, *zip(*((job, at) for job, size in jobs.items() for at in range(size)), strict=True)))


def pages(run: str) -> list[str]:
    return ["", "runs", f"runs/{quote(run)}", "clusters/small", "sessions", "events"]


def test_what_others_wrote_is_text_and_nothing_else(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        run = an_external_run(api)
        a_cluster(api, "small", ps=1)
        evil = {"state": "lost", "reason": EVIL}
        api.post("/v1/clusters/small/tasks/ps/0:end", json=evil).raise_for_status()
        for page in pages(run):
            browser.open(f"{quiet.url}/#/{page}")
            browser.until(LIVE)
            if page != "sessions":
                browser.until_shown(EVIL)
            assert browser.execute("return window.hacked") is None
            assert browser.execute("return document.querySelectorAll('main img').length") == 0
            assert browser.complaints() == []


def test_a_failure_shows_node_task_and_last_lines(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        run = an_external_run(api)
    browser.open(f"{quiet.url}/#/runs/{run}")

    browser.until_shown("loss/check", "#failures")

    failures = browser.text("#failures")
    assert "worker/1" in failures
    assert "exit code 3" in failures
    assert "/job:" not in failures
    assert browser.execute("return document.querySelector('#failures dd code[title]').title") == "/job:worker/task:1"
    assert "last" in failures
    assert "25% of 320 · 24 s left" in browser.text(".tiles")
    # worker/1 has seen step 50 of 80
    assert "30 steps behind" in browser.text("main")
    assert f"tenfold tensorboard {run}" in browser.text("#tensorboard")


def test_nothing_is_loaded_from_elsewhere(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        run = an_external_run(api)
        a_cluster(api, "small", ps=1)
    for page in pages(run):
        browser.open(f"{quiet.url}/#/{page}")
        browser.until(LIVE)
        loaded = browser.execute("return performance.getEntriesByType('resource').map((each) => each.name)")

        assert len(loaded) > 10
        assert [url for url in loaded if not url.startswith(quiet.url + "/")] == []
        assert browser.complaints() == []


@pytest.mark.parametrize("width", [320, pytest.param(400, marks=pytest.mark.thorough)])
def test_a_narrow_screen_needs_no_scrolling_sideways(quiet: Service, browser: Browser, width: int) -> None:
    with client_of(quiet) as api:
        run = an_external_run(api)
        a_cluster(api, "small", ps=2, worker=3)
    browser.resize(width, 800)
    for page in pages(run):
        browser.open(f"{quiet.url}/#/{page}")
        browser.until(f"{LIVE} && document.querySelector('.table, .cluster')")

        assert browser.execute("return document.documentElement.scrollWidth") <= width, page


@pytest.mark.thorough
def test_a_thousand_tasks_are_shown_in_pages(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        a_cluster(api, "large", ps=100, worker=900)
    began = time.monotonic()
    browser.open(f"{quiet.url}/#/clusters/large")
    browser.until("document.querySelectorAll('#tasks tbody tr').length === 50")
    took = time.monotonic() - began

    assert took < 20
    assert "50 of 1,000" in browser.text("#tasks .pager")
    assert browser.execute("return document.querySelectorAll('*').length") < ELEMENTS
    browser.press("Next", "#tasks")
    browser.until_shown("100 of 1,000", "#tasks .pager")
    browser.write("input[type=search]", "worker/899")
    browser.until("document.querySelectorAll('#tasks tbody tr').length === 1")


def a_finished_run(api: httpx.Client, name: str, lr: float, **more: Any) -> str:
    body = {"launcher": "external", "entrypoint": ["python", "t.py"], "jobs": {"worker": 1}, "submission_id": name}
    given = {"display_name": f"{EVIL} {name}", "parameters": {"lr": lr, "batch": 32, **more}}
    run = api.post("/v1/runs", json={**body, **given}).raise_for_status().json()["name"]
    points = [{"time": 1.0 + at, "step": at, "values": {"loss": math.exp(-at * lr)}} for at in range(9)]
    told = {"steps": 9, "global_step": 8, "points": points}
    api.post(f"/v1/runs/{run}/tasks/worker/0:report", json=told).raise_for_status()
    end = {"state": "SUCCEEDED", "reason": "", "supervisor": {"host": "h", "pid": 1}}
    api.post(f"/v1/runs/{run}:report", json=end).raise_for_status()
    return str(run)


@pytest.mark.thorough
def test_runs_are_ticked_and_compared(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        for at, optimizer in enumerate(("adam", EVIL, "adam")):
            a_finished_run(api, f"run{at}", lr=0.01 * 10**at, optimizer=optimizer)
    browser.open(f"{quiet.url}/#/runs")
    browser.until("document.querySelectorAll('#runs tbody input').length === 3")
    browser.execute("document.querySelectorAll('#runs tbody input').forEach((each) => each.click())")
    browser.until_shown("Compare 3 runs", "#compare")
    browser.execute("document.querySelector('#compare').click()")
    browser.until("document.querySelectorAll('#coordinates polyline').length === 3")

    heads = browser.execute(
        "return [...document.querySelectorAll('#values th')].map((each) => each.innerText.split(/\\W/)[0])"
    )
    assert heads == ["run", "state", "lr", "optimizer", "loss"]
    assert browser.execute("return document.querySelectorAll('#coordinates line').length") == 3
    assert browser.execute("return document.querySelector('[data-plot=loss]').dataset.points") == "9"
    browser.execute("document.querySelector('#values tbody input').click()")
    browser.until("document.querySelectorAll('#coordinates polyline').length === 2")
    browser.press("Show 5 columns in which they agree")
    browser.until_shown("batch", "#values thead")
    assert browser.execute("return window.hacked") is None
    assert browser.complaints() == []
    browser.open(browser.execute("return location.href"))
    browser.until("document.querySelectorAll('#values tbody tr').length === 3")


@pytest.mark.thorough
def test_what_a_run_uses_is_drawn_and_its_logs_are_saved(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        run = an_external_run(api)
        for at in range(3):
            figures = {"resident_bytes": 5e8, "cpu_seconds": float(at), "bytes_sent": 1e6 * at, "bytes_received": 0.0}
            figures["variable_bytes"] = 1e6
            spread = dict(zip(DISTRIBUTION, (-1.0, -0.5, 0.25, 0.5, 1.0, 3.5 + at), strict=True))
            point = {"time": 1.0 + at, "step": at, "distributions": {f"w {EVIL}": spread}}
            told = {"steps": 9 + at, "figures": figures, "points": [point]}
            api.post(f"/v1/runs/{run}/tasks/worker/0:report", json=told).raise_for_status()
    browser.open(f"{quiet.url}/#/runs/{run}")
    traffic = ("bytes sent per second", "bytes received per second")
    for plot in ("memory", "bytes of variables", "norms", "processor cores", *traffic):
        browser.until(f'document.querySelector("[data-plot={plot!r}]")')

    assert "477 MiB" in browser.text("[data-plot=memory]")
    assert "977 KiB" in browser.text("[data-plot='bytes of variables']")
    assert "5.5" in browser.text("[data-plot=norms]")
    spread = browser.text("[data-plot^=spread]")
    assert ("highest 1" in spread, "median 0.25" in spread) == (True, True)
    assert browser.execute("return window.hacked") is None
    # nobody kept its logs here: the button says so
    browser.press("Download", "#logs")
    browser.until_shown("has no logs here", "#logs .refusal")


def a_traced_step() -> bytes:
    """What worker/0 traced: a step of 100 µs with a wide node of its own, two short ones, and one on ps/0."""
    trace = ProgramTrace()
    step = trace.step.add(begin_nanos=1_000_000, end_nanos=1_100_000, fetch=["loss:0"])
    nodes = {
        "/job:worker/replica:0/task:0/device:CPU:0": [
            ("wide", "MatMul", 10, 50),
            ("a", "Add", 61, 1),
            ("b", "Add", 63, 1),
        ],
        "/job:ps/replica:0/task:0/device:CPU:0": [(EVIL, "Assign", 20, 30)],
    }
    for device, found in nodes.items():
        stats = step.step_stats.dev_stats.add(device=device)
        for name, op, at, took in found:
            node = stats.node_stats.add(node_name=name, timeline_label=f"{name} = {op}()", thread_id=7)
            node.all_start_nanos, node.all_end_rel_nanos = 1_000_000 + at * 1000, took * 1000
            node.output.add().tensor_description.allocation_description.requested_bytes = 4096
    return trace.SerializeToString()


def test_a_traced_step_is_a_timeline(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        run = an_external_run(api)
        browser.open(f"{quiet.url}/#/runs/{run}")
        browser.press("Trace", ".head")
        orders: dict[int, Any] = {}
        while len(orders) < 2:
            for index in range(2):
                report = api.post(f"/v1/runs/{run}/tasks/worker/{index}:report", json={})
                orders |= {index: told} if (told := report.raise_for_status().json()["trace"]) else {}
        for index, order in orders.items():
            path = f"/v1/runs/{run}/traces/{order['id']}/tasks/worker/{index}"
            content = b"" if index else a_traced_step()
            api.put(path, content=content, headers={"Content-Type": "application/x-protobuf"}).raise_for_status()
    canvas = "#trace canvas"
    shown = "document.querySelector('#trace canvas')?.dataset"
    browser.until(f"{shown}?.slices === '5'")
    width = browser.execute(f"return document.querySelector('{canvas}').clientWidth")

    def place(moment: float) -> float:
        """In the row, from microseconds."""
        return 168 + (width - 168) * moment / 100

    # ps/0 and its thread; worker/0, its client and its thread
    rows = {"ps thread": 55, "client": 97, "thread": 115}
    told = {}
    for name, (row, moment) in {"evil": ("ps thread", 30), "wide": ("thread", 30), "step": ("client", 5)}.items():
        browser.point_until(canvas, place(moment), rows[row], "document.querySelector('.timeline .readout')")
        told[name] = browser.text(".timeline .readout")
    browser.point_until(canvas, place(80), rows["thread"], "!document.querySelector('.timeline .readout')")
    browser.point(canvas, place(61.5), rows["thread"], click=True)
    browser.until(f"Number({shown}.from) > 60 && Number({shown}.to) < 63")
    browser.press("Whole step", "#trace")

    browser.until(f"{shown}.from === '0' && {shown}.to === '100'")
    assert told["evil"] == f"Assign  30 µs\n{EVIL}\nps/0 · CPU:0 thread 7 · at 20 µs\n4.0 KiB"
    assert told["wide"].startswith("MatMul  50 µs\nwide\nworker/0 · CPU:0 thread 7")
    assert told["step"].startswith("Session.run  100 µs\nworker/0 · client")
    assert "worker/1: it ran no step" in browser.text("#trace")
    assert "MatMul\t1\t50 µs\t50 µs\twide on worker/0\n" in browser.text("#trace-ops")
    assert "Add\t2\t2 µs\t1 µs" in browser.text("#trace-ops")
    assert browser.execute("return window.hacked") is None
    assert browser.complaints() == []


def test_uneven_variables_are_warned_of(quiet: Service, browser: Browser) -> None:
    mib = 1024 * 1024
    with client_of(quiet) as api:
        api.put("/v1/clusters/uneven", json={"jobs": {"ps": 4}}).raise_for_status()
        for index, size in enumerate((700 * mib, 10 * mib, 20 * mib, 30 * mib)):
            body = {"address": f"10.0.0.1:{1000 + index}", "incarnation": "a"}
            answer = api.put(f"/v1/clusters/uneven/tasks/ps/{index}", json=body).raise_for_status()
            lease = answer.json()["lease"]["id"]
            figures = {"variables": 3, "variable_bytes": size, "resident_bytes": 2 * size}
            api.post(f"/v1/leases/{lease}:renew", json={"figures": figures}).raise_for_status()
    browser.open(f"{quiet.url}/#/clusters/uneven")

    browser.until_shown("ps/0 holds 700 MiB, 3.7 times the mean", "#variables")

    assert "3 variables" in browser.text("#variables")
    assert "1.4 GiB" in browser.text("#tasks")


def test_tables_are_summed_up_and_uneven_ones_warned_of(quiet: Service, browser: Browser) -> None:
    mib = 1024 * 1024
    counted = {"waiting": 1000, "evicted": 5, "quota_bytes": 9, "lookups": 40, "found": 30}
    with client_of(quiet) as api:
        api.put("/v1/clusters/tables", json={"jobs": {"ps": 3}}).raise_for_status()
        for index, size in enumerate((90 * mib, 3 * mib, 6 * mib)):
            body = {"address": f"10.0.0.1:{1000 + index}", "incarnation": "a"}
            answer = api.put(f"/v1/clusters/tables/tasks/ps/{index}", json=body).raise_for_status()
            user = a_table(f"user/part_{index}", 5000 if index else 20_000, **counted)
            own = [a_table(f"t{at}", 10, kind="HashTable") for at in range(300)] if index == 1 else []
            figures = {"tables": [user, *own], "table_rows": 1, "table_bytes": size, "tables_left_out": index}
            lease = answer.json()["lease"]["id"]
            api.post(f"/v1/leases/{lease}:renew", json={"figures": figures}).raise_for_status()
    browser.open(f"{quiet.url}/#/clusters/tables")

    browser.until_shown("ps/0 holds 90.0 MiB, 2.7 times the mean", "#tables")

    row = browser.execute(
        "return [...document.querySelectorAll('#all-tables tbody tr')[0].cells].map((c) => c.innerText)"
    )
    assert row[:6] == ["user", "3", "30,000", "27,000", "3,000", "15"]
    assert row[7:10] == ["27 B", "75.0%", "2.00\N{MULTIPLICATION SIGN}"]
    # 301 tables, of which the service tells 256, and three that the tasks did not tell of
    assert "48 parts of tables, the smallest, are not listed." in browser.text("#tables")
    assert browser.execute("return document.querySelectorAll('#all-tables tbody tr').length") == 20
    browser.press("user", "#all-tables")
    browser.until_shown("20,000 rows", "#all-tables")
    assert "75.0% of 40 lookups" in browser.text("#all-tables")
    assert browser.complaints() == []


def test_models_that_follow_a_training_are_listed(
    start_service: Callable[..., Service], browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "models.json").write_text(json.dumps({"ctr": {"follows": "trained", "path": EVIL}}))
    service = start_service(heartbeat=1.0, lease_ttl=600.0, models_folder=str(tmp_path / "models"))
    browser.open(f"{service.url}/#/")
    browser.until_shown("trained", "#all-models")
    assert "unloaded" in browser.text("#all-models")
    assert browser.complaints() == []


def test_the_token_is_asked_for_and_kept_in_the_tab(start_service: Callable[..., Service], browser: Browser) -> None:
    service = start_service(token="let me in")
    browser.open(f"{service.url}/#/events")
    browser.write("#token", "wrong")
    browser.until("document.querySelector('#token').value === ''")
    browser.write("#token", "let me in")
    browser.until(LIVE)
    with httpx.Client(base_url=service.url, trust_env=False, headers={"Authorization": "Bearer let me in"}) as api:
        api.put("/v1/clusters/seen", json={"jobs": {"ps": 1}}).raise_for_status()
    browser.until_shown("its jobs are ps=1")

    assert browser.execute("return sessionStorage.length") == 1
    assert browser.execute("return localStorage.length + document.cookie.length") == 0


def test_a_lost_connection_is_told_and_mended(start_service: Callable[..., Service], browser: Browser) -> None:
    first = start_service()
    port = int(first.url.rpartition(":")[2])
    browser.open(f"{first.url}/#/")
    browser.until(LIVE)

    first.stop()
    browser.until_shown("The control service does not answer.")
    assert browser.text(".pulse") == "no connection"
    second = start_service(port=port)
    browser.until(LIVE)
    with client_of(second) as api:
        api.put("/v1/clusters/afterwards", json={"jobs": {"ps": 1}}).raise_for_status()
    browser.until_shown("afterwards")


def test_a_session_is_closed_after_a_question(service: Service, browser: Browser) -> None:
    with client_of(service) as api:
        a_cluster(api, "default", worker=1)
        name = api.post("/v1/sessions", json={"cluster": "default"}).raise_for_status().json()["name"]
    browser.open(f"{service.url}/#/sessions/{name}")
    browser.until_shown(name, "h1")
    browser.until("document.querySelector('.card')")

    browser.press("Close", ".head")
    browser.until("document.querySelector('dialog').open")
    browser.press("Close the session", "dialog")

    browser.until_shown("No session is open.")
    with client_of(service) as api:
        assert api.get(f"/v1/sessions/{name}").status_code == 404


def test_the_keyboard_reaches_what_the_mouse_does(quiet: Service, browser: Browser) -> None:
    with client_of(quiet) as api:
        a_cluster(api, "small", ps=1, worker=2)
    browser.open(f"{quiet.url}/#/clusters/small")
    browser.until("document.querySelector('#tasks .unfold')")

    names = browser.execute(
        "return [...document.querySelectorAll('a[href], button, input, select')].map((each) => "
        "[each.tabIndex, each.innerText || each.ariaLabel || each.labels?.[0]?.innerText || each.title || ''])"
    )

    assert [name for index, name in names if index < 0] == []
    assert "" not in [name.strip() for _, name in names]
