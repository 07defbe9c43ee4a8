"""Runs as pods: the official client against the tests' own API server, whose pods are processes of this machine."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from support.task_processes import PATIENCE
from tenfold.launchers import LaunchRefusedError, Resources
from tenfold.launchers.interface import LaunchRequest
from tenfold.launchers.kubernetes import KubernetesLauncher
from tenfold.launchers.kubernetes_tasks import PodTasks

from .conformance import LauncherConformance, Lines

if TYPE_CHECKING:
    from pathlib import Path

    from support.kube.cluster import KubeCluster, Request
    from support.kube.store import StatusError
    from tenfold.launchers import TaskProcesses


pytestmark = pytest.mark.thorough

_WAITS = "import os; print('runs', os.getpid(), flush=True); import sys, threading; threading.Event().wait(600)"


class TestKubernetes(LauncherConformance):
    name = "kubernetes"

    @pytest.fixture
    def options(self, kube_options: dict[str, str]) -> dict[str, str]:
        return kube_options


def opened(options: dict[str, str], folder: Path, lines: Lines, text: str = _WAITS, **more: str) -> TaskProcesses:
    (folder / "program.py").write_text(text)
    request = LaunchRequest("test", {"ps": 1, "worker": 2}, str(folder), options={**options, **more})
    return KubernetesLauncher().open(request, lines)


# -- what stands where


def test_a_run_leaves_nothing_and_no_secret_stands_in_a_pod(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    lines = Lines()
    with opened(kube_options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/1", ["program.py"], env={"KEY": "a-secret-of-the-run"})
        lines.wait_for("worker/1", "runs")
        said = lines.wait_for("run", r"^the run is job/(tenfold-test-[0-9a-f]{6}) in namespace default$")
        assert kube.names("jobs") == [said[1]]
        shown = json.dumps([kube.store.list(kind, None) for kind in ("jobs", "pods", "services")])
        hidden = json.dumps(kube.store.list("secrets", None))
        pod = kube.store.list("pods", None)[0]
    assert "a-secret-of-the-run" not in shown
    assert "TENFOLD_TOKEN" not in shown
    assert "task.json" in hidden
    assert pod["spec"]["automountServiceAccountToken"] is False
    kube.wait_for(lambda: not any(kube.names(kind) for kind in ("jobs", "pods", "secrets", "services")))


def test_the_working_directory_is_sent(kube_options: dict[str, str], tmp_path: Path) -> None:
    lines, text = Lines(), "import os, other; print(other.WORD, os.getcwd(), flush=True)"
    (tmp_path / "other.py").write_text("WORD = 'sent'")
    (tmp_path / "random").write_bytes(os.urandom(1 << 20))  # two pieces
    with opened(kube_options, tmp_path, lines, text, sync="yes") as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        folder = lines.wait_for("worker/0", r"^sent (/.*)$")[1]
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
    assert folder != str(tmp_path)
    assert not os.path.exists(folder)


def test_a_working_directory_that_is_too_large_is_refused(kube_options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "random").write_bytes(os.urandom(8 << 20))
    with (
        pytest.raises(LaunchRefusedError, match=r"is larger than the 7\.5 MiB, packed, that can be sent to pods; "),
        opened(kube_options, tmp_path, Lines(), sync="yes"),
    ):
        pass


def test_pods_are_told_an_address_of_the_control_service_that_they_reach(
    kube_options: dict[str, str], tmp_path: Path
) -> None:
    lines, text = Lines(), "import os; print('at', os.environ['TENFOLD_CONTROL'], flush=True)"
    given = {"TENFOLD_CONTROL": "http://localhost:8080"}
    for more, told in (({}, "http://localhost:8080"), ({"control": "http://control:80"}, "http://control:80")):
        with opened(kube_options, tmp_path, lines, text, **more) as processes:
            processes.addresses({"ps": 1, "worker": 2})
            processes.start("worker/0", ["program.py"], env=given)
            lines.wait_for("worker/0", f"^at {told}$")
    said = [line for name, line in lines.all if name == "run" and "pods do not reach" in line]
    assert said == [
        "pods do not reach http://localhost:8080: give -o control=URL, by which they reach the service",
    ]


# -- what the cluster refuses, in its words


def refused(options: dict[str, str], folder: Path, **more: str) -> str:
    with pytest.raises(LaunchRefusedError) as error, opened(options, folder, Lines(), **more):
        pass
    return str(error.value)


def test_what_is_not_allowed_is_refused(kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path) -> None:
    kube.forbid("create", "jobs")
    assert refused(kube_options, tmp_path) == (
        'Kubernetes: jobs is forbidden: User "tests" cannot create resource "jobs" in API group "" in the namespace '
        '"default"'
    )


def test_a_token_that_is_not_known_is_refused(kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text(kube.kubeconfig.read_text().replace(kube.api.token, "another"))
    assert refused(kube_options, tmp_path, kubeconfig=str(wrong)) == "Kubernetes: Unauthorized"


def test_a_server_that_is_not_there_is_refused(kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text(kube.kubeconfig.read_text().replace(kube.api.url, "https://127.0.0.1:1"))
    said = refused(kube_options, tmp_path, kubeconfig=str(wrong))
    assert said.startswith("Kubernetes: https://127.0.0.1:1 does not answer: ")
    assert "Connection refused" in said


def test_a_configuration_that_is_not_there_is_refused(kube_options: dict[str, str], tmp_path: Path) -> None:
    said = refused(kube_options, tmp_path, kubeconfig=str(tmp_path / "none"))
    assert said.startswith("Kubernetes: no cluster is configured: ")


def test_a_quota_ends_the_task_that_it_does_not_let_in(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    kube.limit("pods", 1)
    lines = Lines()
    with opened(kube_options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        processes.start("worker/1", ["program.py"])
        assert processes.wait_for_exit(["worker/0", "worker/1"], PATIENCE) == ("worker/1", 1)
        error = processes.error("worker/1")
    assert error is not None
    assert error["type"] == "KubernetesRefused"
    assert "is forbidden: exceeded quota: small" in error["message"]


def test_an_image_that_there_is_not_ends_the_task(kube_options: dict[str, str], tmp_path: Path) -> None:
    with opened(kube_options, tmp_path, Lines(), image="tenfold:none") as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 1)
        assert processes.error("worker/0") == {
            "type": "ImagePullBackOff",
            "message": 'Back-off pulling image "tenfold:none": ErrImagePull: not found',
        }


def test_a_pod_that_has_no_room_is_said_and_not_waited_for_for_ever(
    kube_options: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(_WAITS)
    lines = Lines()
    request = LaunchRequest("big", {"worker": 1}, str(tmp_path), options={**kube_options, "patience": "1"})
    request = dataclasses.replace(request, resources={"worker": Resources(cores=1000)})
    with KubernetesLauncher().open(request, lines) as processes:
        processes.addresses({"worker": 1})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("run", r"^worker/0 waits: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu\.$")
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 1)
        error = processes.error("worker/0")
    assert error == {
        "type": "NotStarted",
        "message": "not within 1 s: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.",
    }


# -- what happens meanwhile


def test_watches_that_break_and_versions_that_are_too_old_lose_nothing(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    text = "import sys, os\nprint('first', flush=True)\nwhile not os.path.exists('go'): pass\nprint('last', flush=True)"
    lines = Lines()
    with opened(kube_options, tmp_path, lines, text.replace("pass", "os.sched_yield()")) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("worker/0", "first")
        before = len([each for each in kube.api.seen if each.verb == "watch"])
        kube.api.break_watches()
        kube.wait_for(lambda: len([each for each in kube.api.seen if each.verb == "watch"]) > before)
        kube.forbid("watch", "pods")  # none hears of what happens now
        kube.api.break_watches()
        (tmp_path / "go").touch()
        kube.wait_for(lambda: kube.store.list("pods", None)[0]["status"]["phase"] == "Succeeded")
        kube.store.compact()
        kube.api.refusals.clear()
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
    assert [line for name, line in lines.all if name == "worker/0"] == ["first", "last"]


def test_a_server_in_trouble_is_asked_again(kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path) -> None:
    from support.kube.store import StatusError

    troubles = iter([503, 429, 500])

    def refuse(request: Request) -> StatusError | None:
        code = next(troubles, None) if request.verb == "create" and request.resource == "pods" else None
        return None if code is None else StatusError(code, "Trouble", "later")

    kube.api.refusals.append(refuse)
    with opened(kube_options, tmp_path, Lines(), "print('ran')") as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)


def test_an_answer_that_is_lost_makes_no_second_pod(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    lost: list[str] = []

    def lose(request: Request) -> StatusError | None:
        if request.verb == "create" and request.resource in ("jobs", "pods") and request.resource not in lost:
            lost.append(request.resource)
            kube.store.create(request.resource, "default", request.body)
            raise ConnectionResetError
        return None

    kube.api.refusals.append(lose)
    lines = Lines()
    with opened(kube_options, tmp_path, lines, "print('ran')") as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
    assert lost == ["jobs", "pods"]
    assert [line for name, line in lines.all if name == "worker/0"] == ["ran"]


def test_a_pod_that_somebody_deletes_is_a_host_that_is_lost(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    lines = Lines()
    with opened(kube_options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("worker/0", "runs")
        node = processes.place("worker/0")["host"]
        kube.kubelet.lose(node)
        kube.store.delete("pods", "default", kube.names("pods")[0], 0)
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", -9)
        error = processes.error("worker/0")
        kube.kubelet.nodes.append(node)
    assert error == {"type": "HostLost", "message": f"its pod on {node} was deleted, and not by this run"}


def test_a_node_that_ends_a_pod_tells_the_program_first(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    text = (
        "import os, signal, sys, threading\nsignal.signal(15, lambda *_: (print('saved', flush=True), sys.exit(0)))\n"
        "print('runs', flush=True)\nthreading.Event().wait(600)"
    )
    lines = Lines()
    with opened(kube_options, tmp_path, lines, text) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("worker/0", "runs")
        kube.kubelet.evict(kube.names("pods")[0], "Evicted", "The node was low on resource: memory.")
        lines.wait_for("worker/0", "saved")
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)


def test_a_run_goes_on_when_nobody_takes_its_output(
    kube_options: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Gone(Lines):
        def __call__(self, name: str, line: str) -> None:
            raise BrokenPipeError

    with opened(kube_options, tmp_path, Gone(), "print('one\\ntwo')") as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", 0)
        assert processes.last_lines("worker/0", 5) == ["one", "two"]
    assert [each.message for each in caplog.records].count("the output of the run is not shown any more") == 1


def test_a_fault_in_a_thread_of_ours_ends_the_run(
    kube_options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: PodTasks, *arguments: object) -> None:
        raise ZeroDivisionError

    lines = Lines()
    with opened(kube_options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        monkeypatch.setattr(PodTasks, "on_pod", fail)
        processes.start("worker/0", ["program.py"])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", -9)
        assert processes.error("worker/0") == {
            "type": "HostLost",
            "message": "watch-pods has failed: ZeroDivisionError()",
        }


def test_a_lease_that_is_gone_ends_the_run(kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path) -> None:
    lines = Lines()
    with opened(kube_options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("worker/0", "runs")
        kube.store.delete("jobs", "default", kube.names("jobs")[0])
        assert processes.wait_for_exit(["worker/0"], PATIENCE) in (("worker/0", -9), ("worker/0", -15))
    kube.wait_for(lambda: not kube.names("pods"))


def test_a_server_that_is_silent_for_the_lease_has_ended_the_run(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    def hang_up(request: Request) -> StatusError | None:
        raise ConnectionResetError

    lines = Lines()
    with opened(kube_options, tmp_path, lines, lease="5") as processes:
        processes.addresses({"ps": 1, "worker": 2})
        processes.start("worker/0", ["program.py"])
        lines.wait_for("worker/0", "runs")
        kube.api.refusals.append(hang_up)
        kube.api.break_watches()
        assert processes.wait_for_exit(["worker/0"], PATIENCE) == ("worker/0", -9)
        error = processes.error("worker/0")
    assert error == {"type": "HostLost", "message": "the API server has not answered for 5 s"}
    # the Job controller, which is not cut off, has ended it on its side
    kube.wait_for(lambda: not kube.names("jobs") and not kube.names("pods"))


def test_the_lease_is_put_off_while_the_run_lives(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path
) -> None:
    deadlines: list[int] = []
    twice = threading.Event()

    def note(request: Request) -> StatusError | None:
        if request.verb == "patch" and request.resource == "jobs":
            deadlines.append(request.body["spec"]["activeDeadlineSeconds"])
            if len(deadlines) == 2:
                twice.set()
        return None

    kube.api.refusals.append(note)
    with opened(kube_options, tmp_path, Lines(), lease="5"):
        assert twice.wait(PATIENCE)
    assert 5 < deadlines[0] < deadlines[1] <= 12


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"image": ""}, "kubernetes: it needs an image; give -o image=NAME, with Tenfold in it"),
        ({"volume": "data"}, "kubernetes: volume=data is not CLAIM:/path"),
        ({"lease": "1"}, "kubernetes: lease=1 is not a number from 5 to 1000000"),
        ({"sync": "maybe"}, "kubernetes: sync=maybe is not one of yes, no"),
        ({"pull": "now"}, "kubernetes: pull=now is not one of Always, IfNotPresent, Never"),
    ],
)
def test_options_are_checked_before_anything_is_created(
    kube_options: dict[str, str], tmp_path: Path, more: dict[str, str], words: str
) -> None:
    with pytest.raises(LaunchRefusedError) as error:
        opened(kube_options, tmp_path, Lines(), **more)
    assert str(error.value) == words


# -- the resolver


def test_the_resolver_finds_the_pods_of_a_run(
    kube: KubeCluster, kube_options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenfold.distribute.cluster_resolver import KubernetesClusterResolver

    monkeypatch.setenv("KUBECONFIG", str(kube.kubeconfig))
    lines = Lines()
    with opened(kube_options, tmp_path, lines) as processes:
        processes.addresses({"ps": 1, "worker": 2})
        for name in ("ps/0", "worker/0", "worker/1"):
            processes.start(name, ["program.py"])
            lines.wait_for(name, "runs")
        selectors = {"ps": ["tenfold.task=ps-0"], "worker": ["tenfold.task=worker-0", "tenfold.task=worker-1"]}
        resolver = KubernetesClusterResolver(selectors, tf_server_port=2222)
        assert resolver.cluster_spec().as_dict() == {"ps": ["127.0.0.1:2222"], "worker": ["127.0.0.1:2222"] * 2}
        assert resolver.master("worker", 1) == "grpc://127.0.0.1:2222"
        kube.forbid("list", "pods")
        with pytest.raises(RuntimeError, match=r"^The pods of job 'ps' \(tenfold\.task=ps-0\) cannot be listed: pods "):
            resolver.cluster_spec()
        kube.api.refusals.clear()
        processes.kill("worker/1")
        assert processes.wait_for_exit(["worker/1"], PATIENCE) == ("worker/1", -9)
        kube.wait_for(lambda: len(kube.names("pods")) == 2)
        assert resolver.cluster_spec().as_dict()["worker"] == ["127.0.0.1:2222"]


def test_the_resolver_says_where_no_cluster_is_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    from tenfold.distribute.cluster_resolver import KubernetesClusterResolver

    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"^KubernetesClusterResolver: no cluster is configured: "):
        KubernetesClusterResolver()
