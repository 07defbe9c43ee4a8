"""What pods are made of: options, names, resources, and that nothing secret is in them."""

from __future__ import annotations

import io
import json

import pytest

from tenfold.launchers.interface import LaunchRefusedError, LaunchRequest, Resources
from tenfold.launchers.kubernetes_objects import (
    PodSettings,
    container,
    job_labels,
    label,
    pod_spec,
    resources_of,
    settings_of,
)
from tenfold.launchers.kubernetes_run import PIECE_BYTES, RunObjects

_OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "run", "uid": "u"}


def objects(jobs: dict[str, int], *, sync: bool = True, **options: str) -> RunObjects:
    settings = settings_of({"image": "tenfold:1", **options})
    resources = {"worker": Resources(cores=2, memory=3 << 30, gpus=1)}
    return RunObjects("run", "space", settings, LaunchRequest("r", jobs, "/work", resources=resources), sync)


def test_options_make_settings() -> None:
    assert settings_of({"image": "a/b:1"}) == PodSettings("a/b:1")
    found = settings_of({"image": "i", "volume": "data:/data,out:/out", "nodes": "zone=a", "user": "7", "grace": "9"})
    assert found.claims == (("data", "/data"), ("out", "/out"))
    assert (found.nodes, found.user, found.grace) == ((("zone", "a"),), 7, 9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "it needs an image; give -o image=NAME"),
        ({"image": "-x"}, "image=-x is not a name of one"),
        ({"image": "i", "user": "0"}, "user=0 is not a number from 1 to 2147483647"),
        ({"image": "i", "port": "99999999999999999999999"}, "is not a number from 1 to 65535"),
        ({"image": "i", "volume": "data:here"}, "volume=data:here is not CLAIM:/path"),
        ({"image": "i", "nodes": "gpu"}, "nodes=gpu is not LABEL=VALUE"),
        ({"image": "i", "priority": "A B"}, "priority=A B is not a name of a Kubernetes object"),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(LaunchRefusedError) as refused:
        settings_of(options)
    assert words in str(refused.value)


def test_names_become_labels() -> None:
    assert label("Train_er.py-77") == "train-er-py-77"
    assert label("9lives") == "lives"
    assert len(label("a" * 200)) == 30
    assert job_labels(["ps", "my_job"]) == {"ps": "ps", "my_job": "my-job"}
    with pytest.raises(LaunchRefusedError, match="'77' cannot be part of a Kubernetes name"):
        label("77")
    with pytest.raises(LaunchRefusedError, match="the jobs a_b and A-b would have the same name"):
        job_labels(["a_b", "A-b"])


def test_a_task_gets_what_was_asked_for() -> None:
    assert resources_of(None, "g") == resources_of(Resources(), "g") == {}
    found = {"cpu": "2", "memory": "1536Mi", "g": "1"}
    assert resources_of(Resources(2, 1536 << 20, 1), "g") == {"requests": found, "limits": found}
    assert resources_of(Resources(memory=1000), "g")["limits"] == {"memory": "1000"}


def test_a_container_may_do_little() -> None:
    settings = settings_of({"image": "i", "volume": "data:/data", "pull_secret": "registry", "service_account": "me"})
    only = container(settings, ["a.py"], [], Resources(cores=4))
    spec = pod_spec(settings, only)
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert {"name": "OPENBLAS_NUM_THREADS", "value": "4"} in only["env"]
    assert [each["mountPath"] for each in only["volumeMounts"]] == ["/tmp", "/data"]
    assert {each["name"] for each in spec["volumes"]} == {each["name"] for each in only["volumeMounts"]}
    assert (spec["imagePullSecrets"], spec["serviceAccountName"]) == ([{"name": "registry"}], "me")


def test_addresses_are_names_of_the_service_and_no_port_is_there_twice() -> None:
    run = objects({"ps": 1, "worker": 2}, port="3000")
    assert run.addresses({"ps": 1, "worker": 2}) == {
        "ps": ["ps-0.run.space.svc:3000"],
        "worker": ["worker-0.run.space.svc:3001", "worker-1.run.space.svc:3002"],
    }
    with pytest.raises(LaunchRefusedError, match="3 tasks have no room from port 65534 on"):
        objects({"ps": 1, "worker": 2}, port="65534").ports()


def test_a_pod_has_the_name_that_its_address_says_and_no_secret() -> None:
    run = objects({"ps": 1, "worker": 2})
    pod = run.pod("run-worker-1-1", "worker/1", 2, _OWNER)
    secret = run.task_secret("run-worker-1-1", "worker/1", ["a.py"], [], {"KEY": "hidden"}, _OWNER)
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("worker-1", "run")
    assert "hidden" not in json.dumps(pod)
    assert json.loads(secret["stringData"]["task.json"])["env"] == {"KEY": "hidden"}
    sources = pod["spec"]["volumes"][-1]["projected"]["sources"]
    assert [each["secret"]["name"] for each in sources] == ["run-worker-1-1", "run-files-0", "run-files-1"]
    assert pod["metadata"]["ownerReferences"] == secret["metadata"]["ownerReferences"] == [_OWNER]
    assert "workingDir" not in pod["spec"]["containers"][0]
    there = objects({"worker": 1}, sync=False).pod("p", "worker/0", 0, _OWNER)
    assert there["spec"]["containers"][0]["workingDir"] == "/work"


def test_a_package_goes_in_pieces_and_one_that_is_too_large_does_not() -> None:
    run = objects({"worker": 1})
    secrets = run.files(io.BytesIO(b"x" * (PIECE_BYTES + 1)), _OWNER)
    assert [list(each["data"]) for each in secrets] == [["package-000"], ["package-001"]]
    with pytest.raises(LaunchRefusedError, match=r"/work is larger than the 7\.5 MiB"):
        run.files(io.BytesIO(b"x" * (10 * PIECE_BYTES + 1)), _OWNER)


def test_the_lease_starts_nothing_and_ends() -> None:
    spec = objects({"worker": 1}).lease(300)["spec"]
    assert (spec["parallelism"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (0, 300, 0)
