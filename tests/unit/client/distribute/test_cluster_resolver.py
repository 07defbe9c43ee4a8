"""The cluster resolvers: what their surroundings say becomes a ClusterSpec, or a clear error."""

from __future__ import annotations

import json
import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

import tenfold as tf

resolvers = tf.distribute.cluster_resolver
CLUSTER = {"ps": ["p0:1"], "worker": ["w0:2", "w1:3"]}


def _set(monkeypatch: pytest.MonkeyPatch, **config: Any) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_simple_answers_with_what_it_was_given() -> None:
    resolver = resolvers.SimpleClusterResolver(tf.train.ClusterSpec(CLUSTER), "m:9", "worker", 1, rpc_layer="grpc")
    assert resolver.cluster_spec() == CLUSTER
    assert (resolver.task_type, resolver.task_id, resolver.environment) == ("worker", 1, "")
    assert resolver.master() == "grpc://m:9"
    assert resolver.master("ps", 0) == "grpc://p0:1"
    assert resolver.num_accelerators() == {}
    with pytest.raises(TypeError, match="cluster_spec must be a ClusterSpec"):
        resolvers.SimpleClusterResolver(CLUSTER)


def test_tf_config_is_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = resolvers.TFConfigClusterResolver()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert (resolver.cluster_spec(), resolver.master(), resolver.task_type, resolver.task_id) == ({}, "", None, None)
    _set(monkeypatch, cluster=CLUSTER, task={"type": "worker", "index": 1}, rpc_layer="grpc")
    assert resolver.cluster_spec() == CLUSTER
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.master() == "grpc://w1:3"
    assert resolver.master("ps", 0) == "grpc://p0:1"
    resolver.task_type, resolver.task_id = "ps", 0
    assert resolver.master() == "grpc://p0:1"


def test_tf_config_of_one_task_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, cluster={"worker": ["w:1"]}, task={"type": "worker", "index": 0})
    assert resolvers.TFConfigClusterResolver().master() == ""
    _set(monkeypatch, cluster=CLUSTER, session_master="grpc://elsewhere:1")
    assert resolvers.TFConfigClusterResolver().master() == "grpc://elsewhere:1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[" * 50_000, "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"task": 7}', r"task in TF_CONFIG must be an object .* not 7"),
    ],
)
def test_a_malformed_tf_config_is_an_error(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=says):
        resolvers.TFConfigClusterResolver().cluster_spec()


def test_tf_config_without_a_task_has_no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, cluster=CLUSTER)
    with pytest.raises(RuntimeError, match="does not say which task this is"):
        resolvers.TFConfigClusterResolver().master()


def _simple(**cluster: Any) -> Any:
    return resolvers.SimpleClusterResolver(tf.train.ClusterSpec(cluster))


def test_union_joins_lists_and_merges_indices() -> None:
    joined = resolvers.UnionResolver(_simple(worker=["a:1"], ps=["p:1"]), _simple(worker=["b:1"]))
    assert joined.cluster_spec() == {"worker": ["a:1", "b:1"], "ps": ["p:1"]}
    merged = resolvers.UnionResolver(_simple(worker=["a:1"]), _simple(worker={3: "d:1"}))
    assert merged.cluster_spec() == {"worker": {0: "a:1", 3: "d:1"}}
    with pytest.raises(KeyError, match="Duplicate keys"):
        resolvers.UnionResolver(_simple(worker=["a:1"]), _simple(worker={0: "d:1", 5: "e:1"})).cluster_spec()


def test_union_takes_the_rest_from_the_first() -> None:
    first = resolvers.SimpleClusterResolver(tf.train.ClusterSpec(CLUSTER), "m:9", "ps", 0, rpc_layer="grpc")
    union = resolvers.UnionResolver(first, _simple(worker=["x:1"]))
    assert (union.task_type, union.task_id, union.rpc_layer, union.master()) == ("ps", 0, "grpc", "grpc://m:9")
    union.task_type, union.task_id = "worker", 2
    assert (union.task_type, union.task_id) == ("worker", 2)
    assert union.master("worker", 2) == "grpc://x:1"
    with pytest.raises(ValueError, match="At least one ClusterResolver"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="sub-class"):
        resolvers.UnionResolver("ps")


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A job of four tasks on two nodes, of which this is the third."""
    for name, value in {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_NTASKS_PER_NODE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def scontrol(command: list[str], **options: Any) -> Any:
        assert command == ["scontrol", "show", "hostname"]
        return SimpleNamespace(stdout="node0\nnode1\n")

    monkeypatch.setattr(subprocess, "run", scontrol)
    return monkeypatch


def test_slurm_lays_jobs_over_nodes(slurm: pytest.MonkeyPatch) -> None:
    resolver = resolvers.SlurmClusterResolver({"worker": 3, "ps": 1}, gpus_per_node=4, gpus_per_task=2)
    assert resolver.get_task_info() == (None, None)
    assert resolver.cluster_spec() == {"ps": ["node0:8888"], "worker": ["node0:8889", "node1:8888", "node1:8889"]}
    assert resolver.get_task_info() == ("worker", 1)
    assert resolver.master() == "grpc://node1:8888"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert resolver.num_accelerators() == {"GPU": 4}


def test_slurm_refuses_what_does_not_fit(slurm: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="more GPUs per node"):
        resolvers.SlurmClusterResolver({"worker": 4}, gpus_per_node=1, gpus_per_task=1)
    with pytest.raises(RuntimeError, match=r"more tasks then assigned tasks.*have 3, Slurm gave 4"):
        resolvers.SlurmClusterResolver({"worker": 3}, gpus_per_node=2)
    slurm.delenv("SLURM_NTASKS_PER_NODE")
    with pytest.raises(RuntimeError, match="SLURM_NTASKS_PER_NODE"):
        resolvers.SlurmClusterResolver({"worker": 4})
    slurm.delenv("SLURM_PROCID")
    with pytest.raises(RuntimeError, match="no task of a Slurm job"):
        resolvers.SlurmClusterResolver({"worker": 4})


def test_the_server_is_trains() -> None:
    assert tf.distribute.Server is tf.train.Server
