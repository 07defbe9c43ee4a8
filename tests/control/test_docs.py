"""The snippets of docs/rest.md, run one after the other by a shell against a real service."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Masters, Service

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rest.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_snippets_of_the_page(start_service: Callable[..., Service], masters: Masters, tmp_path: Path) -> None:
    service = start_service(heartbeat=0.1, lease_ttl=30.0, allow_runs=True)
    (tmp_path / "trainer.py").write_text("print('trained')")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = "\n".join(blocks).replace("http://127.0.0.1:8080", service.url)
    script = script.replace("curl -sS", r"curl -sS --fail-with-body -w '\n'").replace("wait=2s", "wait=10ms")
    script = script.replace("/home/me/mnist", str(tmp_path))

    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin"},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines() if line]
    answers = [each for each in printed if isinstance(each, dict)]
    with ControlClient(service.url) as client:
        run = client.wait_for_run(answers[-2]["name"])
    assert len(blocks) == 8
    assert [each for each in printed if each not in answers] == [304]
    assert (answers[-2]["submission_id"], run["state"]) == ("mnist-1", "SUCCEEDED"), run
    assert [event["action"] for event in answers[-1]["events"]][:2] == ["ready", "ready"]
    assert answers[-4]["outputs"] == [{"name": "y:0", "datatype": "FP32", "shape": [2], "data": [3.0, "NaN"]}]
    assert answers[-3]["state"] == "closed"
    assert masters("grpc://127.0.0.1:2223").steps == [(("x:0",), ("y:0",), ())]
