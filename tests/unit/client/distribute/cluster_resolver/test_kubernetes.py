"""The resolver that asks Kubernetes, with a client that a program gives it. tests/launchers asks a server over HTTP."""

from __future__ import annotations

import builtins
from types import SimpleNamespace
from typing import Any

import pytest

import tenfold as tf

Resolver = tf.distribute.cluster_resolver.KubernetesClusterResolver


def pod(name: str, phase: str = "Running", pod_ip: str | None = None, host_ip: str | None = None) -> Any:
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name), status=SimpleNamespace(phase=phase, pod_ip=pod_ip, host_ip=host_ip)
    )


class Client:
    def __init__(self, pods: dict[str, list[Any]]) -> None:
        self._pods = pods

    def list_pod_for_all_namespaces(self, label_selector: str) -> Any:
        if label_selector not in self._pods:
            raise ConnectionError("nobody answers")
        return SimpleNamespace(items=self._pods[label_selector])


def test_jobs_are_the_pods_of_their_selectors_by_name() -> None:
    client = Client(
        {
            "job-name=w": [pod("w-1", pod_ip="10.0.0.2"), pod("w-0", pod_ip="10.0.0.1")],
            "job-name=v": [pod("v-0", host_ip="10.1.0.1")],
            "job-name=p": [pod("p-0", pod_ip="fd00::1", host_ip="10.1.0.1")],
        }
    )
    resolver = Resolver({"worker": ["job-name=w", "job-name=v"], "ps": ["job-name=p"]}, override_client=client)
    assert resolver.cluster_spec().as_dict() == {
        "worker": ["10.0.0.1:8470", "10.0.0.2:8470", "10.1.0.1:8470"],
        "ps": ["[fd00::1]:8470"],
    }
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == (None, None, "grpc")
    assert resolver.master() == ""
    assert resolver.master("worker", 1) == "grpc://10.0.0.2:8470"
    resolver.task_type, resolver.task_id = "worker", 2
    assert resolver.master(rpc_layer="link") == "link://10.1.0.1:8470"
    assert tf.contrib.cluster_resolver.KubernetesClusterResolver is Resolver


def test_without_a_mapping_workers_are_those_of_the_documented_label() -> None:
    client = Client({"job-name=tensorflow": [pod("a", pod_ip="10.0.0.1")]})
    found = Resolver(tf_server_port=2222, override_client=client).cluster_spec().as_dict()
    assert found == {"worker": ["10.0.0.1:2222"]}


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([pod("w", "Pending")], r"^Pod 'w' is not running; phase: 'Pending'$"),
        ([pod("w")], r"^Pod 'w' runs, and has no address yet$"),
        (None, r"^The pods of job 'worker' \(job-name=tensorflow\) cannot be listed: nobody answers$"),
    ],
)
def test_what_is_not_there_is_named(pods: list[Any] | None, words: str) -> None:
    resolver = Resolver(override_client=Client({} if pods is None else {"job-name=tensorflow": pods}))
    with pytest.raises(RuntimeError, match=words):
        resolver.cluster_spec()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def none(name: str, *arguments: Any, **others: Any) -> Any:
        if name == "kubernetes":
            raise ImportError(name)
        return imported(name, *arguments, **others)

    monkeypatch.setattr(builtins, "__import__", none)
    with pytest.raises(ImportError, match=r"pip install 'tenfold\[kubernetes\]', or override_client"):
        Resolver()
