"""RunConfig: which task TF_CONFIG says this is, what its session sees, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tenfold as tf

RunConfig = tf.estimator.RunConfig
CLUSTER = {"chief": ["h:1"], "ps": ["h:2", "h:3"], "worker": ["h:4", "h:5"]}
OLD = {"master": ["h:1"], "ps": ["h:2"], "worker": ["h:3"]}


def config_of(monkeypatch: pytest.MonkeyPatch, tf_config: Any, **arguments: Any) -> Any:
    monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))
    return RunConfig(**arguments)


def task(cluster: dict[str, list[str]] | None, job: Any = None, index: Any = None, **more: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"cluster": cluster} if cluster is not None else {}
    known = {"type": job, "index": index}
    return {**described, "task": {name: value for name, value in known.items() if value is not None}, **more}


#: TF_CONFIG → (type, index, is_chief, master, evaluation_master, ps, workers, global id, device filters).
PLACES: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    ({}, ("worker", 0, True, "", "", 0, 1, 0, None)),
    (
        {"session_master": "grpc://a", "eval_session_master": "grpc://b"},
        ("worker", 0, True, "grpc://a", "grpc://b", 0, 1, 0, None),
    ),
    (
        task(CLUSTER, "chief", 0),
        ("chief", 0, True, "grpc://h:1", "", 2, 3, 0, ["/job:ps", "/job:chief"]),
    ),
    (
        task(CLUSTER, "worker", "1"),
        ("worker", 1, False, "grpc://h:5", "", 2, 3, 2, ["/job:ps", "/job:worker/task:1"]),
    ),
    (
        task(CLUSTER, "ps", 1),
        ("ps", 1, False, "grpc://h:3", "", 2, 3, 4, ["/job:ps", "/job:worker", "/job:chief", "/job:master"]),
    ),
    (
        task(CLUSTER, "evaluator", 0, eval_session_master="grpc://e"),
        ("evaluator", 0, False, "", "grpc://e", 0, 0, None, None),
    ),
    (task({"chief": ["h:1"]}, "chief", 0), ("chief", 0, True, "", "", 0, 1, 0, ["/job:ps", "/job:chief"])),
    (
        task(CLUSTER, "chief", 0, session_master="grpc://other"),
        ("chief", 0, True, "grpc://other", "", 2, 3, 0, ["/job:ps", "/job:chief"]),
    ),
    (task(OLD, "master", 0), ("master", 0, True, "grpc://h:1", "", 1, 2, 0, ["/job:ps", "/job:master"])),
    (task(OLD, "worker", 0), ("worker", 0, False, "grpc://h:3", "", 1, 2, 1, ["/job:ps", "/job:worker/task:0"])),
]


@pytest.mark.parametrize(("tf_config", "place"), PLACES)
def test_places(monkeypatch: pytest.MonkeyPatch, tf_config: dict[str, Any], place: tuple[Any, ...]) -> None:
    config = config_of(monkeypatch, tf_config)

    filters = None if config.session_config is None else list(config.session_config.device_filters)
    assert (
        *(config.task_type, config.task_id, config.is_chief, config.master, config.evaluation_master),
        *(config.num_ps_replicas, config.num_worker_replicas, config.global_id_in_cluster, filters),
    ) == place
    assert bool(config.cluster_spec) == (config.task_type != "evaluator" and "cluster" in tf_config)


#: TF_CONFIG → error and its words.
NO_PLACES: list[tuple[dict[str, Any], type[Exception], str]] = [
    (task(None, "chief"), ValueError, "task type must be WORKER"),
    (task(None, "worker", 1), ValueError, "task index must be 0"),
    (task({"worker": ["h:1"]}, "worker", 0), ValueError, 'must have one "chief" node'),
    (task({"chief": ["h:1", "h:2"]}, "chief", 0), ValueError, 'must have only one "chief" node'),
    (task(CLUSTER, None, 0), ValueError, "task type must be set"),
    (task(CLUSTER, "ps"), ValueError, "task index must be set"),
    (task(CLUSTER, "ps", -1), ValueError, "Task index must be non-negative number"),
    (task(CLUSTER, "ps", 2), ValueError, "2 is not a valid task_id for task_type ps"),
    (task(CLUSTER, "other", 0), ValueError, "other is not a valid task_type"),
    (task({**OLD, "chief": ["h:9"]}, "chief", 0), ValueError, "job `chief` is not supported"),
    (task(OLD, "evaluator", 0), ValueError, "`evaluator` is not supported"),
    ({"service": ["x"]}, TypeError, 'If "service" is set in TF_CONFIG, it must be a dict'),
    ({"model_dir": ""}, ValueError, "model_dir in TF_CONFIG should be non-empty"),
]


@pytest.mark.parametrize(("tf_config", "error", "words"), NO_PLACES)
def test_no_places(
    monkeypatch: pytest.MonkeyPatch, tf_config: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        config_of(monkeypatch, tf_config)


#: Arguments → the words of the error.
REFUSED = [
    ({"save_checkpoints_steps": 1, "save_checkpoints_secs": 1}, "cannot be both set"),
    ({"model_dir": ""}, "model_dir should be non-empty"),
    ({"save_summary_steps": -1}, "save_summary_steps should be >= 0"),
    ({"save_checkpoints_steps": -1}, "save_checkpoints_steps should be >= 0"),
    ({"save_checkpoints_secs": -1}, "save_checkpoints_secs should be >= 0"),
    ({"session_config": {}}, "session_config must be instance of ConfigProto"),
    ({"keep_checkpoint_max": -1}, "keep_checkpoint_max should be >= 0"),
    ({"keep_checkpoint_every_n_hours": 0}, "keep_checkpoint_every_n_hours should be > 0"),
    ({"log_step_count_steps": 0}, "log_step_count_steps should be > 0"),
    ({"tf_random_seed": 1.0}, "tf_random_seed must be integer"),
    ({"device_fn": lambda x: "/cpu:0"}, 'device_fn must be callable with exactly one argument "op"'),
    (
        {"protocol": "carrier pigeon"},
        r"grpc\+verbs, or one of DeepRec's: grpc\+\+, star_server, star_",
    ),
    ({"experimental_max_worker_delay_secs": 1.5}, "must be an integer if set"),
    ({"session_creation_timeout_secs": 0}, "session_creation_timeout_secs should be > 0"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_what_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RunConfig(**arguments)


def test_defaults_and_replacing() -> None:
    config = RunConfig(model_dir="/somewhere")

    assert (config.save_checkpoints_secs, config.save_checkpoints_steps, config.save_summary_steps) == (600, None, 100)
    assert (config.keep_checkpoint_max, config.log_step_count_steps, config.tf_random_seed) == (5, 100, None)
    other = config.replace(save_checkpoints_steps=7, tf_random_seed=3)
    assert (other.save_checkpoints_secs, other.save_checkpoints_steps, other.tf_random_seed) == (None, 7, 3)
    assert config.save_checkpoints_secs == 600
    with pytest.raises(ValueError, match="Replacing master is not supported"):
        config.replace(master="grpc://x")
    with pytest.raises(AttributeError):
        config.model_dir = "/elsewhere"


def test_the_folder_of_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_of(monkeypatch, {"model_dir": "/a"}).model_dir == "/a"
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        config_of(monkeypatch, {"model_dir": "/a"}, model_dir="/b")


@pytest.mark.parametrize("protocol", ["grpc", "grpc++", "star_server"])
def test_protocols_of_deeprec_are_taken(protocol: str) -> None:
    assert RunConfig(protocol=protocol).protocol == protocol
