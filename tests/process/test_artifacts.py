"""What real runs leave in their output folders: listed and downloaded by REST, by the SDK and by command."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.run_programs import Service, tenfold
from support.task_processes import CLI, PATIENCE
from tenfold.control import ControlClient, experiment_calls
from tenfold_core import errors

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

#: Leaves a page, an empty file and one of a megabyte, a task its own.
PROGRAM = """
import os, pathlib

folder = pathlib.Path(os.environ["TENFOLD_OUTPUT"])
mine = folder / os.environ["TENFOLD_TASK"].replace("/", "-")
mine.mkdir()
(mine / "page one.html").write_text("<script>alert(1)</script>")
(mine / "empty").touch()
(mine / "large.bin").write_bytes(bytes(range(256)) * 4096)
(mine / "link").symlink_to("/etc/passwd")
"""


def test_a_submitted_runs_files_are_listed_and_downloaded(
    service: Service, api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    body = {"entrypoint": ["python", "program.py"], "working_dir": str(tmp_path), "jobs": {"worker": 2}}
    run = api.post("/v1/runs", json=body).json()["name"]
    assert api.get(f"/v1/runs/{run}", params={"ended": "true", "wait": "60s"}).json()["state"] == "SUCCEEDED"
    path = f"/v1/runs/{run}/artifacts"

    first = api.get(path, params={"limit": 4}).json()
    rest = api.get(path, params={"limit": 4, "after": first["next"]}).json()
    page = api.get(f"{path}/worker-0/page one.html")
    part = api.get(f"{path}/worker-0/large.bin", headers={"Range": "bytes=254-257"})
    behind = api.get(f"{path}/worker-0/empty", headers={"Range": "bytes=0-"})
    outside = api.get(f"{path}/worker-0/link")
    monkeypatch.setattr(experiment_calls, "_PIECE", 100_000)
    with ControlClient(service.url) as client:
        listed = client.artifacts(run)
        size = client.download_artifact(run, "worker-1/large.bin", str(tmp_path / "large"))
        with pytest.raises(errors.NotFoundError, match="no file 'none'"):
            client.download_artifact(run, "none", str(tmp_path / "none"))
    shown = tenfold("artifacts", f"--control={service.url}", run)
    copied = tenfold("artifacts", f"--control={service.url}", run, "worker-0", "--to", str(tmp_path / "copy"))
    exported = tenfold("export", f"--control={service.url}", run, "--mlflow", str(tmp_path / "ml"), "--artifacts")
    wrong = tenfold("artifacts", f"--control={service.url}", run, "worker-7")

    names = [f"worker-{index}/{name}" for index in (0, 1) for name in ("empty", "large.bin", "page one.html")]
    assert [each["path"] for each in (*first["artifacts"], *rest["artifacts"])] == names
    assert [each.path for each in listed] == names
    # a program's page is no page of the service
    assert page.text == "<script>alert(1)</script>"
    assert page.headers["content-type"] == "application/octet-stream"
    assert (page.headers["content-disposition"], page.headers["content-security-policy"]) == ("attachment", "sandbox")
    assert (part.status_code, part.content) == (206, bytes((254, 255, 0, 1)))
    assert part.headers["content-range"] == f"bytes 254-257/{1 << 20}"
    assert (behind.status_code, outside.status_code) == (416, 404)
    assert size == 1 << 20
    assert (tmp_path / "large").read_bytes() == bytes(range(256)) * 4096
    assert not list(tmp_path.glob("none*"))
    assert "worker-1/large.bin" in shown.output
    assert copied.exit_code == 0, copied.output
    there = sorted(each.name for each in (tmp_path / "copy" / "worker-0").iterdir())
    assert there == ["empty", "large.bin", "page one.html"]
    assert not (tmp_path / "copy" / "worker-1").exists()
    assert exported.exit_code == 0, exported.output
    assert len(list((tmp_path / "ml").glob("*/*/artifacts/worker-*/large.bin"))) == 2
    assert (wrong.exit_code, "no file or folder 'worker-7'" in wrong.output) == (1, True)


@pytest.mark.thorough
def test_a_run_by_hand_leaves_its_files_on_its_machine(
    service: Service, api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the service is another process: it looks where its own environment says
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = [sys.executable, *CLI, "run", "--ps=0", "--workers=1", f"--control={service.url}", str(program)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    (run,) = api.get("/v1/runs").json()["runs"]
    answer = api.get(f"/v1/runs/{run['name']}/artifacts")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "state" / "tenfold" / "runs" / run["name"] / "output" / "worker-0" / "large.bin").exists()
    assert answer.json()["type"] == "urn:tenfold:problem:no-artifacts"
