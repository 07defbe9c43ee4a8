"""A client that a generator makes of docs/openapi.json declares a cluster, opens a session and runs a step."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Masters, Service

OPENAPI = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
#: Without formatting, for which the generator would call a program; and what it may send as plain bytes.
CONFIG = """
package_name_override: generated_tenfold_client
post_hooks: []
content_type_overrides:
  application/zip: application/octet-stream
  application/x-protobuf: application/octet-stream
"""
GENERATOR = shutil.which("openapi-python-client", path=str(Path(sys.executable).parent))


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The generated package."""
    if GENERATOR is None:
        pytest.skip("openapi-python-client is not installed (pip install -e '.[dev]')")
    config = tmp_path / "config.yml"
    config.write_text(CONFIG, encoding="utf-8")
    done = subprocess.run(
        [GENERATOR, "generate", "--path", OPENAPI, "--meta", "none", "--output-path",
         tmp_path / "generated_tenfold_client", "--config", config, "--fail-on-warning"],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("generated_tenfold_client")
    for name in [name for name in sys.modules if name.partition(".")[0] == "generated_tenfold_client"]:
        del sys.modules[name]


def test_a_generated_client_runs_a_step(generated: Any, service: Service, masters: Masters) -> None:
    def call(tag: str, name: str, *args: Any, **more: Any) -> Any:
        """One operation: the whole answer."""
        module = importlib.import_module(f"generated_tenfold_client.api.{tag}.{name}")
        return module.sync_detailed(*args, client=client, **more)

    models = importlib.import_module("generated_tenfold_client.models")
    jobs = models.ClusterDeclarationJobs.from_dict({"worker": 1})
    here = models.TaskRegistration(address="127.0.0.1:2222", incarnation="a")
    inputs = [
        models.InferenceTensor(name="x", datatype=models.InferenceTensorDatatype.FP32, shape=[2], data=[1.5, "NaN"])
    ]

    with generated.Client(base_url=service.url) as client:
        declared = call("clusters", "declare_cluster", "default", body=models.ClusterDeclaration(jobs=jobs))
        registered = call("clusters", "register_task", "default", "worker", 0, body=here)
        session = call("sessions", "create_session", body=models.SessionCreation(cluster="default")).parsed
        step = models.InferenceRequest(inputs=inputs, outputs=[models.RequestedOutput(name="y")])
        answer = call("sessions", "run_step", session.name, body=step)
        refused = call("sessions", "get_session", "gone").parsed
        wrong = call(
            "sessions", "run_step", session.name, body=models.InferenceRequest(inputs=inputs, targets=[""])
        ).parsed
        spec = call("clusters", "get_spec", "default")
        unchanged = call("clusters", "get_spec", "default", if_none_match=spec.headers["etag"])
        complete = call("clusters", "list_jobs", "default", complete=True).parsed
        created = call("clusters", "get_cluster", "default").parsed.created

    assert (declared.status_code, declared.parsed.state) == (201, "waiting")
    assert registered.parsed.lease.state == "live"
    assert [each.to_dict() for each in answer.parsed.outputs] == [
        {"name": "y", "datatype": "FP32", "shape": [2], "data": [3.0, "NaN"]}
    ]
    assert masters("grpc://127.0.0.1:2222").steps == [(("x:0",), ("y:0",), ())]
    assert [part.pointer for part in wrong.errors] == ["#/targets/0"]
    assert (spec.parsed.changed, unchanged.status_code, unchanged.parsed) == (True, 304, None)
    assert [job.name for job in complete.jobs] == ["worker"]
    assert isinstance(created, datetime)
    assert (refused.type_, refused.status) == ("urn:tenfold:problem:no-such-session", 404)
