"""`ClusterSpec` and `ServerDef`: TF1's API, and errors that name the job and the task."""

from __future__ import annotations

from typing import Any

import pytest

from tenfold import train
from tenfold.train.server_lib import make_server_def
from tenfold_core import errors
from tenfold_core.cluster_spec import ClusterSpec
from tenfold_protos import cluster_pb2, config_pb2, tensorflow_server_pb2

DENSE = {"worker": ["w0:1", "w1:2"], "ps": ["p0:3"]}
SPARSE: dict[str, Any] = {"worker": {1: "w1:2", 4: "w4:5"}, "ps": ["p0:3"]}


def test_dense_jobs() -> None:
    spec = ClusterSpec(DENSE)

    assert spec.jobs == ["worker", "ps"]
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [0, 1]
    assert spec.task_address("worker", 1) == "w1:2"
    assert spec.job_tasks("worker") == ["w0:1", "w1:2"]
    assert spec.as_dict() == DENSE
    assert str(spec) == "ClusterSpec({'ps': ['p0:3'], 'worker': ['w0:1', 'w1:2']})"


def test_sparse_jobs() -> None:
    spec = ClusterSpec(SPARSE)

    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [1, 4]
    assert spec.job_tasks("worker") == [None, "w1:2", None, None, "w4:5"]
    assert spec.as_dict() == SPARSE


def test_job_without_tasks() -> None:
    spec = ClusterSpec({"ps": []})

    assert spec
    assert spec.as_dict() == {"ps": {}}
    assert spec.job_tasks("ps") == []
    assert not ClusterSpec({})


@pytest.mark.parametrize("cluster", [DENSE, SPARSE, {}])
def test_round_trips(cluster: dict[str, Any]) -> None:
    spec = ClusterSpec(cluster)

    assert ClusterSpec(spec) == spec
    assert ClusterSpec(spec.as_cluster_def()) == spec
    assert ClusterSpec(cluster_pb2.ClusterDef.FromString(spec.as_cluster_def().SerializeToString())) == spec
    assert spec == cluster


def test_equality() -> None:
    assert ClusterSpec({"a": ["x:1"]}) == ClusterSpec({"a": {0: b"x:1"}})
    assert ClusterSpec({"a": ["x:1"]}) != ClusterSpec({"a": ["x:2"]})
    assert ClusterSpec({"a": ["x:1"]}) == {"a": {0: "x:1"}}
    assert ClusterSpec({"a": ["x:1"]}) != {"a": 5}
    assert ClusterSpec({"a": ["x:1"]}) != 5


def test_jobs_are_sorted_in_the_proto() -> None:
    one = ClusterSpec({"b": ["x:1"], "a": ["y:1"]}).as_cluster_def()
    two = ClusterSpec({"a": ["y:1"], "b": ["x:1"]}).as_cluster_def()

    assert one == two


def test_the_proto_is_a_copy() -> None:
    spec = ClusterSpec(DENSE)

    spec.as_cluster_def().job[0].tasks[0] = "changed:1"

    assert spec == DENSE


@pytest.mark.parametrize(
    ("cluster", "error", "text"),
    [
        (5, TypeError, "`cluster` must be a dictionary"),
        ({"a": "x:1"}, TypeError, "The tasks for job 'a' must be a list or a dictionary from integers to strings."),
        ({5: ["x:1"]}, TypeError, "Job name 5 must be bytes or unicode"),
        ({"a": [7]}, TypeError, "Task address 7 of /job:a/task:0 must be bytes or unicode"),
        ({"a": {"0": "x:1"}}, TypeError, "Task index '0' of job 'a' must be an integer"),
        ({"a": {-1: "x:1"}}, ValueError, "Task index -1 of job 'a' must not be negative"),
        ({"a": ["grpc://x:1"]}, ValueError, '"host:port", without a scheme'),
    ],
)
def test_bad_clusters(cluster: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ClusterSpec(cluster)


def test_unknown_jobs_and_tasks() -> None:
    spec = ClusterSpec(DENSE)

    for look_up in (spec.num_tasks, spec.task_indices, spec.job_tasks):
        with pytest.raises(ValueError, match=r"No such job in cluster: 'nope'; its jobs are \['ps', 'worker'\]"):
            look_up("nope")
    with pytest.raises(ValueError, match="No such job in cluster: 'nope'"):
        spec.task_address("nope", 0)
    with pytest.raises(ValueError, match=r"No task with index 9 in job 'ps'; its tasks are \[0\]"):
        spec.task_address("ps", 9)


def test_server_def_from_a_cluster() -> None:
    config = config_pb2.ConfigProto(log_device_placement=True)

    definition = make_server_def(DENSE, "worker", 1, None, config)

    assert (definition.job_name, definition.task_index, definition.protocol) == ("worker", 1, "grpc")
    assert ClusterSpec(definition.cluster) == DENSE
    assert definition.default_session_config == config


def test_server_def_fills_in_what_leaves_no_choice() -> None:
    definition = make_server_def({"local": {3: "localhost:0"}}, None, None, None, None)

    assert (definition.job_name, definition.task_index) == ("local", 3)


def test_server_def_overrides() -> None:
    given = tensorflow_server_pb2.ServerDef(
        cluster=ClusterSpec(DENSE).as_cluster_def(), job_name="ps", task_index=0, protocol="grpc"
    )

    definition = make_server_def(given, "worker", 1, None, None)

    assert (definition.job_name, definition.task_index, definition.protocol) == ("worker", 1, "grpc")
    assert given.job_name == "ps"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((5, None, None, None), TypeError, "Could not convert `server_or_cluster_def`"),
        ((DENSE, None, None, None), ValueError, "Must specify an explicit `job_name`"),
        (({}, None, None, None), ValueError, "has no jobs.*TF_CONFIG is empty.*tenfold run"),
        ((DENSE, "worker", None, None), ValueError, "Must specify an explicit `task_index`"),
        ((DENSE, "nope", 0, None), ValueError, "No such job in cluster: 'nope'"),
        ((DENSE, "ps", 1, None), ValueError, "No task with index 1 in job 'ps'"),
        ((DENSE, "ps", 0, "http"), errors.NotFoundError, "'http'; the protocol served is 'grpc'"),
    ],
)
def test_bad_server_defs(arguments: tuple[Any, Any, Any, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make_server_def(*arguments, None)


@pytest.mark.parametrize("protocol", [None, "grpc", "grpc++", "star_server", "star_server_lite"])
def test_protocols_of_deeprec_are_taken_for_grpc(protocol: str | None) -> None:
    assert make_server_def(DENSE, "ps", 0, protocol, None).protocol == "grpc"


def test_every_name_of_tf_train_is_there() -> None:
    for name in train.__all__:
        assert hasattr(train, name), name
        assert name in dir(train)
    with pytest.raises(AttributeError, match="has no attribute 'Nope'"):
        _ = train.Nope
