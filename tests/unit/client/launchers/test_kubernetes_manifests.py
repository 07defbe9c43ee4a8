"""The manifests of `tenfold render kubernetes`: each kind says the same of the tasks, and is what its API takes.

Schemas of the core objects are checked by tests/launchers/test_manifests.py, where a library has them. Those of JobSet
and TrainJob come with their own projects: here are tables of what they require and allow, as of JobSet v1alpha2 and
Trainer v1alpha1.
"""

from __future__ import annotations

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tenfold.cli.main import cli
from tenfold.launchers import LaunchRefusedError, Resources
from tenfold.launchers.interface import checked_options
from tenfold.launchers.kubernetes import KubernetesLauncher
from tenfold.launchers.kubernetes_manifests import Kind, Success, Workload, manifests
from tenfold.launchers.kubernetes_objects import settings_of
from tenfold.runs.plan import RunPlan

#: Field → what it may be; "!" marks those that must be there. Of spec, from their API types.
_JOB_SET = {
    "network": dict, "successPolicy": dict, "failurePolicy": dict, "replicatedJobs!": list, "startupPolicy": dict,
    "suspend": bool, "coordinator": dict, "managedBy": str, "ttlSecondsAfterFinished": int, "volumeClaimPolicies": list,
}  # fmt: skip
_REPLICATED = {"name!": str, "groupName": str, "template!": dict, "replicas": int, "dependsOn": list}
_NETWORK = {"enableDNSHostnames": bool, "subdomain": str, "publishNotReadyAddresses": bool}
_SUCCESS = {"operator!": str, "targetReplicatedJobs": list}
_FAILURE = {"maxRestarts": int, "restartStrategy": str, "rules": list}
_RUNTIME = {"mlPolicy": dict, "podGroupPolicy": dict, "template": dict}
_TRAIN_JOB = {
    "runtimeRef!": dict, "initializer": dict, "trainer": dict, "runtimePatches": list, "suspend": bool,
    "activeDeadlineSeconds": int, "managedBy": str,
}  # fmt: skip
_TRAINER = {
    "image": str, "command": list, "args": list, "env": list, "numNodes": int, "resourcesPerNode": dict,
    "numProcPerNode": int,
}  # fmt: skip
_RUNTIME_REF = {"name!": str, "apiGroup": str, "kind": str}


def workload(success: Success = "all", jobs: dict[str, int] | None = None, **more: Any) -> Workload:
    jobs, resources = jobs or {"ps": 1, "worker": 2}, {"worker": Resources(cores=2)}
    plan = RunPlan(jobs, ("trainer.py", "--rate", "$(x)"), resources=resources, **more)
    return Workload("digits", plan, settings_of({"image": "i:1"}), success, 3, "digits-token")


def check(found: dict[str, Any], table: dict[str, type]) -> None:
    required = {name.removesuffix("!") for name in table if name.endswith("!")}
    types = {name.removesuffix("!"): kind for name, kind in table.items()}
    assert required <= set(found) <= set(types)
    for name, value in found.items():
        assert isinstance(value, types[name]), name


def check_job_set(spec: dict[str, Any]) -> None:
    check(spec, _JOB_SET)
    check(spec["network"], _NETWORK)
    check(spec["successPolicy"], _SUCCESS)
    check(spec["failurePolicy"], _FAILURE)
    for each in spec["replicatedJobs"]:
        check(each, _REPLICATED)
    names = [each["name"] for each in spec["replicatedJobs"]]
    assert set(spec["successPolicy"]["targetReplicatedJobs"]) <= set(names)


def jobs_of(kind: Kind, found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Name of the Job that there will be → its spec, by the rules of each API."""
    if kind == "plain":
        return {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "Job"}
    spec = found[0]["spec"] if kind == "jobset" else found[0]["spec"]["template"]["spec"]
    return {f"digits-{each['name']}-0": each["template"]["spec"] for each in spec["replicatedJobs"]}


def environment(spec: dict[str, Any]) -> dict[str, Any]:
    only = spec["template"]["spec"]["containers"][0]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in only["env"]}


@pytest.mark.parametrize("kind", ["jobset", "trainjob", "plain"])
def test_the_cluster_that_tasks_are_told_is_the_one_that_there_will_be(kind: Kind) -> None:
    jobs = jobs_of(kind, manifests(workload(), kind))
    # a pod of an indexed Job is called like the Job and its index, and the service is the subdomain
    there = [f"{name}-{index}.digits" for name, spec in jobs.items() for index in range(spec["completions"])]
    for spec in jobs.values():
        assert (spec["completionMode"], spec["parallelism"]) == ("Indexed", spec["completions"])
        told = environment(spec)
        config = json.loads(told["TF_CONFIG"].replace("$(TENFOLD_INDEX)", "1"))
        addresses = [address for tasks in config["cluster"].values() for address in tasks]
        assert [address.partition(":")[0] for address in addresses] == there
        assert len({address.partition(":")[2] for address in addresses}) == 3
        assert config["task"]["index"] == 1
        assert told["TENFOLD_TASK"] == f"{config['task']['type']}/$(TENFOLD_INDEX)"
        assert list(told).index("TENFOLD_INDEX") < list(told).index("TF_CONFIG")


@pytest.mark.parametrize("kind", ["jobset", "trainjob", "plain"])
def test_the_token_is_a_reference_and_the_programs_dollars_are_its_own(kind: Kind) -> None:
    for spec in jobs_of(kind, manifests(workload(), kind)).values():
        assert environment(spec)["TENFOLD_TOKEN"] == {"secretKeyRef": {"name": "digits-token", "key": "token"}}
        only = spec["template"]["spec"]["containers"][0]
        assert only["args"] == ["--end", "/run/tenfold-end", "trainer.py", "--rate", "$$(x)"]
        assert only["securityContext"]["readOnlyRootFilesystem"] is True
        assert spec["template"]["spec"]["securityContext"]["runAsNonRoot"] is True


def test_flags_have_the_index_too() -> None:
    spec = jobs_of("jobset", manifests(workload(guide_flags=True), "jobset"))["digits-worker-0"]
    arguments = spec["template"]["spec"]["containers"][0]["args"]
    assert arguments[-2:] == ["--job_name=worker", "--task_index=$(TENFOLD_INDEX)"]


def test_a_job_set_ends_with_its_workers_and_starts_anew_together() -> None:
    spec = manifests(workload(jobs={"ps": 1, "worker": 2, "evaluator": 1}), "jobset")[0]["spec"]
    check_job_set(spec)
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["worker", "evaluator"]}
    assert spec["failurePolicy"] == {"maxRestarts": 3}
    assert {each["template"]["spec"]["backoffLimit"] for each in spec["replicatedJobs"]} == {0}


@pytest.mark.parametrize(
    ("jobs", "counted", "policy"),
    [
        ({"ps": 1, "chief": 1, "worker": 2}, "chief", None),
        ({"ps": 1, "worker": 2}, "worker", {"rules": [{"succeededIndexes": "0"}]}),
    ],
)
def test_a_job_set_may_end_with_its_chief(jobs: dict[str, int], counted: str, policy: dict[str, Any] | None) -> None:
    spec = manifests(workload("chief", jobs), "jobset")[0]["spec"]
    check_job_set(spec)
    assert spec["successPolicy"]["targetReplicatedJobs"] == [counted]
    chief = next(each for each in spec["replicatedJobs"] if each["name"] == counted)
    assert chief["template"]["spec"].get("successPolicy") == policy


def test_a_train_job_refers_to_its_runtime() -> None:
    runtime, job = manifests(workload(), "trainjob")
    check(runtime["spec"], _RUNTIME)
    check_job_set(runtime["spec"]["template"]["spec"])
    check(job["spec"], _TRAIN_JOB)
    check(job["spec"]["trainer"], _TRAINER)
    check(job["spec"]["runtimeRef"], _RUNTIME_REF)
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert job["spec"]["runtimeRef"]["kind"] == runtime["kind"] == "ClusterTrainingRuntime"
    steps = [each for each in runtime["spec"]["template"]["spec"]["replicatedJobs"] if "metadata" in each["template"]]
    assert [each["name"] for each in steps] == ["worker"]
    # the Trainer looks for a container of that name
    assert steps[0]["template"]["spec"]["template"]["spec"]["containers"][0]["name"] == "node"
    assert job["spec"]["trainer"]["numNodes"] == steps[0]["template"]["spec"]["completions"] == 2


def test_plain_jobs_end_by_themselves() -> None:
    found = manifests(workload(), "plain")
    assert [each["kind"] for each in found] == ["Service", "Job", "Job"]
    assert found[0]["spec"]["clusterIP"] == "None"
    for spec in jobs_of("plain", found).values():
        assert environment(spec)["TENFOLD_STOP_WITH_WORKERS"] == "1"
        assert (spec["template"]["spec"]["subdomain"], spec["template"]["spec"]["restartPolicy"]) == ("digits", "Never")
        assert found[0]["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()


def test_what_kubernetes_cannot_do_is_refused() -> None:
    with pytest.raises(LaunchRefusedError, match="plain Jobs have nobody who ends the others"):
        manifests(workload("chief"), "plain")
    with pytest.raises(LaunchRefusedError, match="options of Python"):
        manifests(workload(interpreter=("-O",)), "jobset")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "sync=no", "-o", "image=i"], "manifests have no option 'sync'; they have image, "),
        ([], "it needs an image"),
        (["-o", "image=i", "--name", "A_b"], "'A_b' is not a valid name"),
        (["-o", "image=i", "--as", "plain", "--success", "chief"], "use --as jobset, or --success all"),
    ],
)
def test_the_command_refuses_in_a_line(arguments: list[str], words: str) -> None:
    done = CliRunner().invoke(cli, ["render", "kubernetes", *arguments, "trainer.py"])
    assert done.exit_code == 2
    assert words in " ".join(done.output.replace("│", " ").split())


def test_the_command_writes_yaml_that_says_what_has_to_be_there_first() -> None:
    yaml = pytest.importorskip("yaml")
    command = ["render", "kubernetes", "-o", "image=i:1", "--name", "digits", "--cores", "2", "--workers", "4"]
    done = CliRunner().invoke(cli, [*command, "trainer.py", "--rate", "0.1"])
    assert done.exit_code == 0, done.output
    assert "#   kubectl create secret generic digits-token --from-literal=token=$(openssl rand -hex 32)" in done.output
    (found,) = yaml.safe_load_all(done.output)
    assert (found["kind"], found["metadata"]["name"]) == ("JobSet", "digits")
    assert [each["template"]["spec"]["completions"] for each in found["spec"]["replicatedJobs"]] == [1, 4]
    assert "&id" not in done.output


def test_the_page_types_what_the_commands_take() -> None:
    pytest.importorskip("yaml")
    page = (Path(__file__).resolve().parents[4] / "docs" / "launchers" / "kubernetes.md").read_text(encoding="utf-8")
    _, run, render = page.partition("```sh\n")[2].partition("```")[0].strip().splitlines()
    options = [word for before, word in pairwise(shlex.split(run)) if before == "-o"]
    assert checked_options(KubernetesLauncher(), dict(each.split("=", 1) for each in options))
    command, _, file = render.partition(" > ")
    done = CliRunner().invoke(cli, shlex.split(command)[1:])
    assert (done.exit_code, file) == (0, "digits.yaml"), done.output
    assert "kind: JobSet" in done.output
    for option in re.findall(r"`-o ([a-z_]+)=", page):
        assert option in KubernetesLauncher.options, option
