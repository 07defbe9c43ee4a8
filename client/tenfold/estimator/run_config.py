"""`tf.estimator.RunConfig`: how an estimator runs, and as which task of a cluster.

The task comes from TF_CONFIG, by cluster_place.py; the rest from the constructor. Follows TF 1.15's
estimator/run_config.py, with its error messages.
"""

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.distribute.cluster_resolver.tf_config import read_tf_config
from tenfold.estimator.cluster_place import ClusterPlace, TaskType, read_place
from tenfold.estimator.util import fn_args
from tenfold.train.server_lib import DEEPRECS_PROTOCOLS
from tenfold_protos import config_pb2, rewriter_config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tenfold.graph.operation import Operation
    from tenfold_core.cluster_spec import ClusterSpec
    from tenfold_protos.config_pb2 import ConfigProto

__all__ = ["RunConfig", "TaskType", "get_default_session_config"]

_USE_DEFAULT: Any = object()
_SAVE_CKPT_ERR = "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."

#: What `RunConfig.replace` may change.
_DEFAULT_REPLACEABLE_LIST = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "train_distribute",
    "device_fn",
    "protocol",
    "eval_distribute",
    "experimental_distribute",
    "experimental_max_worker_delay_secs",
    "session_creation_timeout_secs",
)

#: Property → what it must fulfil unless it is None, and the message.
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "model_dir": (bool, "model_dir should be non-empty"),
    "save_summary_steps": (lambda steps: steps >= 0, "save_summary_steps should be >= 0"),
    "save_checkpoints_steps": (lambda steps: steps >= 0, "save_checkpoints_steps should be >= 0"),
    "save_checkpoints_secs": (lambda secs: secs >= 0, "save_checkpoints_secs should be >= 0"),
    "session_config": (
        lambda config: isinstance(config, config_pb2.ConfigProto),
        "session_config must be instance of ConfigProto",
    ),
    "keep_checkpoint_max": (lambda number: number >= 0, "keep_checkpoint_max should be >= 0"),
    "keep_checkpoint_every_n_hours": (lambda hours: hours > 0, "keep_checkpoint_every_n_hours should be > 0"),
    "log_step_count_steps": (lambda steps: steps > 0, "log_step_count_steps should be > 0"),
    "tf_random_seed": (lambda seed: isinstance(seed, int), "tf_random_seed must be integer."),
    "experimental_max_worker_delay_secs": (
        lambda secs: isinstance(secs, int),
        "experimental_max_worker_delay_secs must be an integer if set.",
    ),
    "session_creation_timeout_secs": (lambda secs: secs > 0, "session_creation_timeout_secs should be > 0"),
    "device_fn": (
        lambda function: callable(function) and set(fn_args(function)) == {"op"},
        'device_fn must be callable with exactly one argument "op".',
    ),
    **dict.fromkeys(
        ("train_distribute", "eval_distribute", "experimental_distribute"),
        (
            lambda strategy: False,
            "Distribution strategies are not served: train with parameter servers (TF_CONFIG), or on several devices "
            "of one process with tf.contrib.estimator.replicate_model_fn.",
        ),
    ),
    "protocol": (
        lambda protocol: protocol in ("grpc", "grpc+verbs", *DEEPRECS_PROTOCOLS),
        f"protocol should be grpc or grpc+verbs, or one of DeepRec's: {', '.join(DEEPRECS_PROTOCOLS)}",
    ),
}


def get_default_session_config() -> ConfigProto:
    """The session's configuration where none is given: soft placement."""
    rewrites = rewriter_config_pb2.RewriterConfig(
        meta_optimizer_iterations=rewriter_config_pb2.RewriterConfig.ONE  # one pass, as TensorFlow says
    )
    return config_pb2.ConfigProto(
        allow_soft_placement=True, graph_options=config_pb2.GraphOptions(rewrite_options=rewrites)
    )


class _Kept:
    """A property that gives what the constructor got; `RunConfig.replace` changes it in a copy."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, config: Any, owner: type) -> Any:
        return self if config is None else getattr(config, f"_{self._name}")

    def __set__(self, config: Any, value: Any) -> None:
        raise AttributeError(f"{self._name} cannot be set: use RunConfig.replace({self._name}=...)")


class RunConfig:
    """Settings of an estimator's runs; in a cluster, which TF_CONFIG describes, also its task.

    At most one of `save_checkpoints_steps` and `save_checkpoints_secs` may be given (default: 600 seconds; None for
    both saves nothing). `device_fn(op)` places operations instead of `tf.train.replica_device_setter`. Raises
    ValueError for values that make no sense, and for a TF_CONFIG that does not say which task this is. As TensorFlow
    1.15's `tf.estimator.RunConfig`. Where TF_CONFIG is not set and a control service gives the place, it blocks as
    `read_tf_config` does.
    """

    model_dir = _Kept()
    tf_random_seed = _Kept()
    save_summary_steps = _Kept()
    save_checkpoints_steps = _Kept()
    save_checkpoints_secs = _Kept()
    session_config = _Kept()
    keep_checkpoint_max = _Kept()
    keep_checkpoint_every_n_hours = _Kept()
    log_step_count_steps = _Kept()
    train_distribute = _Kept()
    device_fn = _Kept()
    protocol = _Kept()
    eval_distribute = _Kept()
    experimental_max_worker_delay_secs = _Kept()
    session_creation_timeout_secs = _Kept()

    _session_config: ConfigProto | None
    _cluster_spec: ClusterSpec
    _task_type: str
    _task_id: int
    _master: str
    _evaluation_master: str
    _num_ps_replicas: int
    _num_worker_replicas: int
    _global_id_in_cluster: int | None
    _is_chief: bool
    _service: Mapping[str, Any] | None

    def __init__(
        self,
        model_dir: str | os.PathLike[str] | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: Any = _USE_DEFAULT,
        save_checkpoints_secs: Any = _USE_DEFAULT,
        session_config: ConfigProto | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Callable[[Operation], Any] | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if save_checkpoints_steps is _USE_DEFAULT and save_checkpoints_secs is _USE_DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, 600
        elif save_checkpoints_secs is _USE_DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _USE_DEFAULT:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError(_SAVE_CKPT_ERR)
        tf_config = read_tf_config()
        if tf_config:
            logging.info("TF_CONFIG environment variable: %s", tf_config)
        RunConfig._replace(
            self,
            _DEFAULT_REPLACEABLE_LIST,
            model_dir=_model_dir(tf_config, None if model_dir is None else os.fspath(model_dir)),
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            train_distribute=train_distribute,
            device_fn=device_fn,
            protocol=protocol,
            eval_distribute=eval_distribute,
            experimental_distribute=experimental_distribute,
            experimental_max_worker_delay_secs=experimental_max_worker_delay_secs,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        place = read_place(tf_config)
        for name in ClusterPlace.__dataclass_fields__:
            setattr(self, f"_{name}", getattr(place, name))
        self._maybe_overwrite_session_config_for_distributed_training()

    def _maybe_overwrite_session_config_for_distributed_training(self) -> None:
        """Gives the session of a cluster's task its default. Subclasses may leave it out."""
        if not self._session_config and self._cluster_spec:
            self._session_config = self._get_default_session_config_distributed()

    def _get_default_session_config_distributed(self) -> ConfigProto | None:
        """Device filters: trainers see the parameter servers and themselves, so none waits for another trainer."""
        filters = {
            TaskType.MASTER: ["/job:ps", "/job:master"],
            TaskType.CHIEF: ["/job:ps", "/job:chief"],
            TaskType.WORKER: ["/job:ps", f"/job:worker/task:{self._task_id}"],
            TaskType.PS: ["/job:ps", "/job:worker", "/job:chief", "/job:master"],
        }.get(self._task_type)
        if filters is None:
            return None
        config = get_default_session_config()
        config.device_filters.extend(filters)
        return config

    @property
    def cluster_spec(self) -> ClusterSpec:
        """The training cluster; empty for a program by itself, and for an evaluator."""
        return self._cluster_spec

    @property
    def evaluation_master(self) -> str:
        """The target of evaluations' sessions."""
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def master(self) -> str:
        """The target of training's sessions; "" without a cluster."""
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        return self._num_ps_replicas

    @property
    def num_worker_replicas(self) -> int:
        """Workers and the chief."""
        return self._num_worker_replicas

    @property
    def task_id(self) -> int:
        return self._task_id

    @property
    def global_id_in_cluster(self) -> int | None:
        """Number among all tasks: the chief is 0, parameter servers come last; None for an evaluator."""
        return self._global_id_in_cluster

    @property
    def task_type(self) -> str:
        return self._task_type

    @property
    def service(self) -> Mapping[str, Any] | None:
        """What TF_CONFIG has under `service`."""
        return self._service

    def replace(self, **kwargs: Any) -> RunConfig:
        """A copy with other values of the constructor's arguments.

        Setting one of the two periods of checkpoints clears the other. Raises ValueError for another name, or a value
        that the constructor refuses.
        """
        changed: RunConfig = RunConfig._replace(copy.deepcopy(self), _DEFAULT_REPLACEABLE_LIST, **kwargs)
        return changed

    @staticmethod
    def _replace(config: Any, allowed_properties_list: Collection[str] | None = None, **kwargs: Any) -> Any:
        """Sets and checks; subclasses pass a longer list."""
        allowed = list(allowed_properties_list or ())
        for name, value in kwargs.items():
            if name not in allowed:
                raise ValueError(f"Replacing {name} is not supported. Allowed properties are {allowed}.")
            setattr(config, f"_{name}", value)
        steps, secs = (f"save_checkpoints_{each}" in kwargs for each in ("steps", "secs"))
        if steps and secs:
            if config.save_checkpoints_steps is not None and config.save_checkpoints_secs is not None:
                raise ValueError(_SAVE_CKPT_ERR)
        elif steps and config.save_checkpoints_steps is not None:
            config._save_checkpoints_secs = None
        elif secs and config.save_checkpoints_secs is not None:
            config._save_checkpoints_steps = None
        for name, (holds, message) in _CHECKS.items():
            value = getattr(config, f"_{name}")
            if value is not None and not holds(value):
                raise ValueError(message)
        return config


def _model_dir(tf_config: Mapping[str, Any], model_dir: str | None) -> str | None:
    """The folder that the constructor or TF_CONFIG names. Raises ValueError if they differ, or one is empty."""
    told = tf_config.get("model_dir")
    if model_dir == "":
        raise ValueError("model_dir should be non-empty.")
    if told == "":
        raise ValueError("model_dir in TF_CONFIG should be non-empty.")
    if told:
        if model_dir and told != model_dir:
            raise ValueError(
                "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in "
                f'TF_CONFIG. model_dir: {model_dir}\nTF_CONFIG["model_dir"]: {told}.\n'
            )
        logging.info("Using model_dir in TF_CONFIG: %s", told)
    return model_dir or told
