"""Submitted programs that leave processes behind, and what programs see of the service's environment."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from support.run_programs import Service
from tenfold_control_api.runs.supervisors import passes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from support.gates import Gate
    from tenfold.cli.children import Children

#: Starts what goes its own way, says at the gate that it is there, and waits for a signal.
PROGRAM = """
import json, os, signal, socket, sys, time

def once():
    os.write(told, b"x")
    signal.pause()

def hydra():
    # each head is followed by another one in a session of its own, for longer than any test waits
    os.write(told, b"x")
    end = time.monotonic() + 120
    while time.monotonic() < end:
        time.sleep(0.002)
        if os.fork():
            os._exit(0)
        os.setsid()

asked, told = os.pipe()
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    for fd in (0, 1, 2):
        os.close(fd)
    # the kernel closes it when the last process that has it is gone
    kept = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    kept.sendall(b"left")
    globals()[sys.argv[2]]()
os.wait()
os.read(asked, 1)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
with open("environment", "w") as file:
    json.dump(dict(os.environ), file)
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as gate:
    gate.sendall(b"there")
    gate.recv(1)
if sys.argv[3] == "stay":
    signal.pause()
"""
ADMIN = "tenfold-of-an-admin"
#: As an operator's shell may have them.
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "secret-1",
    "AWS_SESSION_TOKEN": "secret-2",
    "DATABASE_URL": "postgresql://u:secret-3@db/x",
    "PGPASSWORD": "secret-4",
    "GITHUB_TOKEN": "secret-5",
    "OTEL_EXPORTER_OTLP_HEADERS": "api-key=secret-6",
    "MY_SETTING": "secret-7",
    "TENFOLD_TOKEN": ADMIN,
    "GOOGLE_APPLICATION_CREDENTIALS": "/secret-8.json",
}
USUAL = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "7"}


@pytest.fixture
def api(children: Children, tmp_path: Path) -> Iterator[httpx.Client]:
    more = {"TENFOLD_CONTROL_RUN_ENVIRONMENT": "DATA_FOLDER", "DATA_FOLDER": "/data"}
    service = Service(children, tmp_path, **SECRETS, **USUAL, **more)
    with service.client() as client:
        client.headers["Authorization"] = f"Bearer {ADMIN}"
        yield client


def submit(api: httpx.Client, folder: Path, gate: Gate, kind: str, then: str) -> str:
    work = folder / "work"
    work.mkdir()
    (work / "program.py").write_text(PROGRAM)
    body: dict[str, Any] = {
        "entrypoint": ["python", "program.py", str(gate.port), kind, then],
        "working_dir": str(work),
        "jobs": {"worker": 1},
        "stop_grace": 1.0,
    }
    answer = api.post("/v1/runs", json=body)
    assert answer.is_success, answer.text
    gate.wait_for("there", "left")
    name: str = answer.json()["name"]
    return name


def ended(api: httpx.Client, run: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/v1/runs/{run}", params={"wait": "60s", "ended": "true"}).json()
    return found


def here(folder: Path) -> list[psutil.Process]:
    """The processes that work in the folder, whatever has become of their parents."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="only Linux tells of orphans")
@pytest.mark.parametrize(
    ("kind", "then"),
    [
        ("once", "stay"),
        pytest.param("once", "end", marks=pytest.mark.thorough),
        # it wins now and then where others use all cores: only a cgroup could end it for sure
        pytest.param("hydra", "stay", marks=pytest.mark.long),
    ],
)
def test_a_program_that_forks_twice_leaves_nothing(
    api: httpx.Client, gate: Gate, tmp_path: Path, kind: str, then: str
) -> None:
    run = submit(api, tmp_path, gate, kind, then)
    before = here(tmp_path / "work")
    gate.tell("there", "go")
    if then == "stay":
        api.post(f"/v1/runs/{run}:stop", json={})
    over = ended(api, run)
    gate.there["left"].settimeout(5.0)
    gone = gate.there["left"].recv(1)
    left = [process for process in here(tmp_path / "work") if "supervise" not in " ".join(process.cmdline())]

    assert over["state"] == ("STOPPED" if then == "stay" else "SUCCEEDED")
    assert before
    assert (gone, left) == (b"", [])


def test_programs_see_nothing_of_the_service_s_secrets(api: httpx.Client, gate: Gate, tmp_path: Path) -> None:
    run = submit(api, tmp_path, gate, "once", "end")
    gate.tell("there", "go")
    ended(api, run)
    seen = json.loads((tmp_path / "work" / "environment").read_text())

    assert not [name for name, value in seen.items() if name in SECRETS or "secret-" in value or ADMIN in value]
    assert {name: seen.get(name) for name in USUAL} == USUAL
    assert seen["DATA_FOLDER"] == "/data"
    assert {"PATH", "HOME", "TENFOLD_TOKEN_FILE", "TF_CONFIG"} <= seen.keys()


@pytest.mark.parametrize(
    ("name", "passed"),
    [
        *((name, True) for name in ("PATH", "HOME", "LANG", "LC_CTYPE", "TZ", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")),
        *((name, True) for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "XDG_CACHE_HOME")),
        *((name, False) for name in SECRETS),
        *((name, False) for name in ("TF_CONFIG", "TENFOLD_DATABASE", "PYTHON_KEYRING_BACKEND", "CONDA_TOKEN")),
        *((name, False) for name in ("NVIDIA_API_KEY", "SSH_AUTH_SOCK", "KUBECONFIG", "http_proxy", "path")),
    ],
)
def test_which_variables_programs_get(name: str, passed: bool) -> None:
    assert passes(name) is passed
