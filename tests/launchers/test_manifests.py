"""The manifests of `tenfold render kubernetes` by kubectl into the tests' API server, whose controllers run it; and
what we send to an API server against the published schemas, where a library has them."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.task_processes import PATIENCE
from tenfold.launchers.interface import LaunchRequest, Resources
from tenfold.launchers.kubernetes_manifests import Kind, Workload, manifests
from tenfold.launchers.kubernetes_objects import settings_of
from tenfold.launchers.kubernetes_run import RunObjects
from tenfold.runs.plan import RunPlan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.kube.cluster import KubeCluster


pytestmark = pytest.mark.thorough

_EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "between_graph.py"
_OPTIONS = {
    "image": "registry.example/tenfold:1",
    "pull": "IfNotPresent",
    "pull_secret": "registry",
    "volume": "data:/data",
    "nodes": "zone=a",
    "priority": "low",
    "service_account": "trainer",
}
#: Fails in its first life, as worker 0; then it is the example.
_FAILS_ONCE = """
import os, runpy, sys
marker, example = sys.argv[1:3]
if os.environ["TENFOLD_TASK"] == "worker/0" and not os.path.exists(marker):
    open(marker, "w").close()
    sys.exit(3)
sys.argv = [example, *sys.argv[3:]]
runpy.run_path(example, run_name="__main__")
"""


@pytest.fixture
def kubectl(kube: KubeCluster, kube_options: dict[str, str]) -> Iterator[Any]:
    """Runs kubectl; its output. Afterwards nothing is left."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed: make engines")

    def run(*arguments: str, text: str = "") -> str:
        cache = kube.kubeconfig.parent / "kubectl"
        command = [program, "--kubeconfig", str(kube.kubeconfig), "--cache-dir", str(cache)]
        done = subprocess.run(
            [*command, *arguments], input=text, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run
    for resource in ("jobsets", "trainjobs", "clustertrainingruntimes", "jobs", "pods", "services", "secrets"):
        for each in kube.store.list(resource, None):
            kube.store.remove(resource, each["metadata"]["namespace"], each["metadata"]["name"])


def rendered(options: dict[str, str], kind: Kind, *program: str) -> str:
    pods = [f"-o{name}={options[name]}" for name in ("image", "python", "port", "grace")]
    command = [sys.executable, "-m", "tenfold.cli", "render", "kubernetes", "--as", kind, "--name", "digits", *pods]
    command += ["--ps", "1", "--workers", "2", *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def finished(kube: KubeCluster) -> dict[str, str]:
    """Job → Complete or Failed, of those that have ended."""
    found = {}
    for job in kube.store.list("jobs", None):
        for condition in job.get("status", {}).get("conditions", ()):
            found[job["metadata"]["name"]] = condition["type"]
    return found


def test_plain_jobs_train_and_their_parameter_servers_end(
    kube: KubeCluster, kube_options: dict[str, str], kubectl: Any
) -> None:
    kubectl("create", "secret", "generic", "digits-token", "--from-literal=token=0123456789abcdef0123456789abcdef")
    text = rendered(kube_options, "plain", str(_EXAMPLE), "--steps", "60")
    assert kubectl("apply", "--validate=false", "-f", "-", text=text).split("\n")[:3] == [
        "service/digits created",
        "job.batch/digits-ps created",
        "job.batch/digits-worker created",
    ]
    kube.wait_for(lambda: finished(kube) == {"digits-ps": "Complete", "digits-worker": "Complete"}, 2 * PATIENCE)


def test_a_job_set_trains_through_a_failure_and_ends_its_parameter_servers(
    kube: KubeCluster, kube_options: dict[str, str], kubectl: Any, tmp_path: Path
) -> None:
    kubectl("create", "secret", "generic", "digits-token", "--from-literal=token=0123456789abcdef0123456789abcdef")
    program = tmp_path / "fails_once.py"
    program.write_text(_FAILS_ONCE)
    text = rendered(kube_options, "jobset", str(program), str(tmp_path / "marker"), str(_EXAMPLE), "--steps", "60")
    kubectl("apply", "--validate=false", "-f", "-", text=text)
    kube.wait_for(
        lambda: (kube.store.get("jobsets", "default", "digits").get("status") or {}).get("terminalState") is not None,
        2 * PATIENCE,
    )
    assert kube.store.get("jobsets", "default", "digits")["status"] == {"restarts": 1, "terminalState": "Completed"}
    kube.wait_for(lambda: all(pod["status"]["phase"] == "Succeeded" for pod in kube.store.list("pods", None)))


def test_a_train_job_and_its_runtime_are_taken(kube: KubeCluster, kube_options: dict[str, str], kubectl: Any) -> None:
    text = rendered(kube_options, "trainjob", str(_EXAMPLE))
    dry = kubectl("apply", "--validate=false", "--dry-run=client", "-f", "-", text=text)
    assert dry.split("\n")[0] == "clustertrainingruntime.trainer.kubeflow.org/tenfold-digits created (dry run)"
    assert kube.names("trainjobs") == []
    kubectl("apply", "--validate=false", "-f", "-", text=text)
    assert (kube.names("clustertrainingruntimes"), kube.names("trainjobs")) == (["tenfold-digits"], ["digits"])


def test_the_token_has_to_be_there(kube: KubeCluster, kube_options: dict[str, str], kubectl: Any) -> None:
    kubectl("apply", "--validate=false", "-f", "-", text=rendered(kube_options, "plain", str(_EXAMPLE)))

    def waiting() -> list[str]:
        pods = kube.store.list("pods", None)
        statuses = [each for pod in pods for each in (pod.get("status") or {}).get("containerStatuses", ())]
        return [each["state"]["waiting"]["message"] for each in statuses if "waiting" in each["state"]]

    kube.wait_for(lambda: waiting() == ['secrets "digits-token" not found'] * 3)


def test_the_lines_of_the_page_run(
    kube: KubeCluster, kube_options: dict[str, str], kubectl: Any, tmp_path: Path
) -> None:
    """As they stand, but for ports, which all pods of this machine share. `pip install` is not run."""
    page = (_EXAMPLE.parents[1] / "docs" / "launchers" / "kubernetes.md").read_text(encoding="utf-8")
    _, run, render = page.partition("```sh\n")[2].partition("```")[0].strip().splitlines()
    programs, image = tmp_path / "programs", tmp_path / "image"
    for folder in (programs, image):
        folder.mkdir()
        (folder / "trainer.py").write_text(_EXAMPLE.read_text(encoding="utf-8"))
    for name, command in (("python3", ""), ("tenfold", "-m tenfold.cli")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        (programs / name).chmod(0o755)
    kube.kubelet.images |= {
        f"registry.example/tenfold:{metadata.version('tenfold')}": ("/", str(programs)),
        "registry.example/trainer:7": (str(image), str(programs)),
    }
    variables = {**os.environ, "KUBECONFIG": str(kube.kubeconfig), "PATH": f"{programs}:{os.environ['PATH']}"}

    def typed(line: str) -> str:
        line = line.replace(" -o image=", f" -o port={kube_options['port']} -o image=")
        shell = ["bash", "-euc", line]
        done = subprocess.run(
            shell, cwd=programs, env=variables, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    assert sorted(re.findall(r"worker (\d): global step 2\d\d, ", typed(run))) == ["0", "1", "2", "3"]
    kubectl("create", "secret", "generic", "digits-token", "--from-literal=token=0123456789abcdef0123456789abcdef")
    typed(render)
    kubectl("apply", "--validate=false", "-f", str(programs / "digits.yaml"))
    kube.wait_for(
        lambda: (kube.store.get("jobsets", "default", "digits").get("status") or {}).get("terminalState") is not None,
        2 * PATIENCE,
    )
    assert kube.store.get("jobsets", "default", "digits")["status"] == {"restarts": 0, "terminalState": "Completed"}


# -- published schemas


def objects() -> dict[str, dict[str, Any]]:
    """All kinds of objects of the core API that we send."""
    resources = {"worker": Resources(2, 4 << 30, 1)}
    plan = RunPlan({"ps": 1, "worker": 2}, ("trainer.py",), resources=resources)
    workload = Workload("digits", plan, settings_of(_OPTIONS), "all", 3, "digits-token", "/data", "http://control:80")
    found = {f"plain {each['kind']} {each['metadata']['name']}": each for each in manifests(workload, "plain")}
    for each in manifests(workload, "jobset")[0]["spec"]["replicatedJobs"]:
        spec = each["template"]["spec"]
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": each["name"]}, "spec": spec}
        found[f"a Job of a JobSet, {each['name']}"] = job
    request = LaunchRequest("r", {"ps": 1, "worker": 2}, "/work", resources=resources)
    run = RunObjects("run", "space", settings_of(_OPTIONS), request, False)
    owner = run.owner({"metadata": {"uid": "6a1b"}})
    found["the lease"] = run.lease(300)
    found["the service"] = run.service(owner)
    found["a pod"] = run.pod("p", "worker/0", 2, owner)
    found["a task's secret"] = run.task_secret("p", "worker/0", ["a.py"], [], {}, owner)
    found["a secret of files"] = run.files(io.BytesIO(b"x"), owner)[0]
    return found


@pytest.mark.parametrize("name", list(objects()))
def test_objects_are_what_the_published_schemas_say(name: str) -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed: make engines")
    schemas.validate(objects()[name], schemas.latest_version(), strict=True)


def test_the_tests_would_notice_a_field_that_there_is_not() -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed: make engines")
    wrong = objects()["a pod"]
    wrong["spec"]["containers"][0]["securityContext"]["readOnly"] = True
    with pytest.raises(schemas.ValidationError):
        schemas.validate(wrong, schemas.latest_version(), strict=True)
