"""How a task's flags, environment and TF_CONFIG become settings: precedence, defaults, and messages that help."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tenfold.cli.task_settings import (
    TaskSettings,
    advertised_address,
    bind_address,
    parse_cluster,
    read_cluster,
    resolve_task,
)
from tenfold_core.address import split_address
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = {"ps": ["localhost:2222"], "worker": ["10.0.0.5:2222", "10.0.0.6:2223"]}
FULL = {"ps": {0: "localhost:2222"}, "worker": {0: "10.0.0.5:2222", 1: "10.0.0.6:2223"}}


def resolve(**given: Any) -> TaskSettings:
    """`resolve_task` with everything left out that the test does not speak of."""
    nothing: dict[str, Any] = dict.fromkeys(("job", "index", "cluster", "control", "address", "bind", "tf_config"))
    return resolve_task(**{**nothing, "cluster_name": "default", "insecure": False, **given})


def tf_config(job: str | None = "worker", index: Any = 1, cluster: Any = CLUSTER) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


class TestSources:
    def test_static_cluster(self) -> None:
        settings = resolve(job="worker", index=1, cluster=json.dumps(CLUSTER))

        assert settings == TaskSettings("worker", 1, FULL, None, "default", "10.0.0.6:2223", "0.0.0.0:2223", False)

    def test_tf_config_alone_is_enough(self) -> None:
        settings = resolve(tf_config=tf_config())

        assert (settings.job, settings.index, settings.cluster) == ("worker", 1, FULL)

    def test_flags_win_over_tf_config(self) -> None:
        settings = resolve(job="ps", index=0, tf_config=tf_config())

        assert (settings.job, settings.index, settings.address) == ("ps", 0, "localhost:2222")

    def test_a_job_named_by_hand_does_not_take_the_index_of_another(self) -> None:
        assert resolve(job="ps", tf_config=tf_config("worker", 1)).index == 0

    def test_control_service_wins_over_the_cluster_of_tf_config(self) -> None:
        settings = resolve(control="http://localhost:8080", tf_config=tf_config())

        assert (settings.job, settings.index, settings.cluster) == ("worker", 1, None)
        assert settings.control == "http://localhost:8080"

    def test_with_a_control_service_the_index_may_be_claimed(self) -> None:
        settings = resolve(job="ps", control="http://localhost:8080")

        assert (settings.index, settings.address, settings.bind) == (None, None, "127.0.0.1:0")

    def test_the_only_task_of_a_job_needs_no_index(self) -> None:
        assert resolve(job="ps", cluster=json.dumps(CLUSTER)).index == 0

    def test_cluster_from_a_file_in_either_form(self, tmp_path: Path) -> None:
        plain, whole = tmp_path / "cluster.json", tmp_path / "tf_config.json"
        plain.write_text(json.dumps(CLUSTER))
        whole.write_text(tf_config())

        assert read_cluster(str(plain)) == read_cluster(str(whole)) == FULL

    def test_sparse_indices(self) -> None:
        assert parse_cluster({"worker": {"3": "a:1", "7": "b:2"}}, "it") == {"worker": {3: "a:1", 7: "b:2"}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "which job is this task of"),
        ({"job": "ps"}, "where is the cluster"),
        ({"job": "ps", "cluster": "{}", "control": "http://h"}, "not both"),
        ({"job": "ps", "cluster": "{}"}, "must be a JSON object like"),
        ({"job": "ps", "cluster": "{bad"}, "--cluster is not valid JSON"),
        ({"job": "ps", "cluster": "/no/such/file"}, "neither a JSON object nor a readable file"),
        ({"job": "chief", "cluster": json.dumps(CLUSTER)}, "no job 'chief': it has 'ps', 'worker'"),
        ({"job": "worker", "cluster": json.dumps(CLUSTER)}, "has 2 tasks: say which"),
        ({"job": "worker", "index": 2, "cluster": json.dumps(CLUSTER)}, "has no task 2: it has 0, 1"),
        ({"job": "ps", "cluster": '{"ps": "localhost:2222"}'}, "job 'ps' must list addresses"),
        ({"job": "ps", "cluster": '{"ps": [2222]}'}, "/job:ps/task:0 must be a string HOST:PORT, not 2222"),
        ({"job": "ps", "cluster": '{"ps": ["localhost"]}'}, "/job:ps/task:0: 'localhost' is not HOST:PORT"),
        ({"job": "ps", "cluster": '{"ps": {"x": "a:1"}}'}, "task index 'x', which is not a number"),
        ({"job": "ps", "cluster": '{"ps": ["grpc://a:1"]}'}, "is not HOST:PORT"),
        ({"job": "ps", "control": "http://h", "address": "h:0"}, "port from 1 to 65535"),
        ({"job": "ps", "control": "http://h", "bind": "h:70000"}, "port from 0 to 65535"),
        ({"tf_config": "[]"}, "TF_CONFIG must be a JSON object"),
        ({"tf_config": "{"}, "TF_CONFIG is not valid JSON"),
        ({"tf_config": '{"task": 3}'}, '"task" must be an object'),
        ({"tf_config": '{"task": {"type": "ps", "index": "x"}}'}, "task.index must be a number"),
    ],
)
def test_messages(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + message.replace("(", r"\(").replace(".", r"\.")):
        resolve(**given)


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "bind", "expected"),
        [
            (None, None, "127.0.0.1:0"),
            ("localhost:2222", None, "127.0.0.1:2222"),
            ("127.0.0.2:2222", None, "127.0.0.2:2222"),
            ("[::1]:2222", None, "[::1]:2222"),
            ("worker-0:2222", None, "[::]:2222"),
            ("[fd00::1]:2222", None, "[::]:2222"),
            ("worker-0:2222", "10.0.0.1:0", "10.0.0.1:0"),
        ],
    )
    def test_where_to_listen(self, address: str | None, bind: str | None, expected: str) -> None:
        assert bind_address(address, bind) == expected

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, "127.0.0.1:4711"),
            ({"bind": "0.0.0.0:0"}, "here:4711"),
            ({"bind": "[::]:0"}, "here:4711"),
            ({"bind": "10.1.2.3:0"}, "10.1.2.3:4711"),
            ({"bind": "0.0.0.0:0", "address": "outside:80"}, "outside:80"),
        ],
    )
    def test_what_others_dial(self, given: dict[str, str], expected: str) -> None:
        settings = resolve(job="ps", control="http://localhost:8080", **given)

        assert advertised_address(settings, 4711, "here") == expected

    @pytest.mark.parametrize(("host", "expected"), [("localhost", True), ("127.9.9.9", True), ("[::1]", True)])
    def test_loopback(self, host: str, expected: bool) -> None:
        assert is_loopback(host) is expected

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "ps0", ""])
    def test_reachable(self, host: str) -> None:
        assert not is_loopback(host)

    @pytest.mark.parametrize(("text", "expected"), [("h:1", ("h", 1)), ("[::1]:65535", ("[::1]", 65535))])
    def test_split(self, text: str, expected: tuple[str, int]) -> None:
        assert split_address(text) == expected
