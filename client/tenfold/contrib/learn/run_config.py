"""`tf.contrib.learn.RunConfig`: that of `tf.estimator` with its older arguments, and an older reading of TF_CONFIG.

Here a chief is worker 0, or the master where TF_CONFIG says `environment: cloud`. Follows TensorFlow 1.15's
`contrib/learn/python/learn/estimators/run_config.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold.distribute.cluster_resolver.tf_config import read_tf_config
from tenfold.estimator import run_config as core
from tenfold_core.cluster_spec import ClusterSpec
from tenfold_protos import config_pb2

#: Settings that may differ between two runs of one model. Under TensorFlow's name: subclasses read it.
_DEFAULT_UID_WHITE_LIST = (
    *("tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "session_config"),
    *("keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps"),
)


class Environment:
    """What TF_CONFIG says of where the cluster is."""

    CLOUD = "cloud"
    GOOGLE = "google"
    LOCAL = "local"


class TaskType:
    """The jobs of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"


class ClusterConfig:
    """The place of this task in the cluster of TF_CONFIG. Raises ValueError for a place that is not there."""

    def __init__(self, master: str | None = None, evaluation_master: str | None = None) -> None:
        config: Any = read_tf_config() or {}
        task = config.get("task", {})
        self._task_type = task.get("type")
        self._task_id = int(task.get("index") or 0)
        self._cluster_spec = ClusterSpec(config.get("cluster", {}))
        self._master = _master(self._cluster_spec, self._task_type, self._task_id) if master is None else master
        self._evaluation_master = evaluation_master or ""
        sizes = {job: len(addresses) for job, addresses in self._cluster_spec.as_dict().items()}
        self._num_ps_replicas = sizes.get(TaskType.PS, 0)
        self._num_worker_replicas = sizes.get(TaskType.WORKER, 0) + sizes.get(TaskType.MASTER, 0)
        self._environment = config.get("environment", Environment.LOCAL)
        chief_job = TaskType.MASTER if self._environment == Environment.CLOUD else TaskType.WORKER
        self._is_chief = self._task_id == 0 and self._task_type in (None, chief_job)

    @property
    def environment(self) -> str:
        """One of `Environment`."""
        return str(self._environment)

    @staticmethod
    def get_task_id() -> int:
        """The index of this task in its job, 0 without TF_CONFIG."""
        config: Any = read_tf_config() or {}
        return int(config.get("task", {}).get("index") or 0)

    # The rest are the names of tf.estimator's RunConfig.
    cluster_spec = core.RunConfig.cluster_spec
    evaluation_master = core.RunConfig.evaluation_master
    is_chief = core.RunConfig.is_chief
    master = core.RunConfig.master
    num_ps_replicas = core.RunConfig.num_ps_replicas
    num_worker_replicas = core.RunConfig.num_worker_replicas
    task_id = core.RunConfig.task_id
    task_type = core.RunConfig.task_type


class RunConfig(ClusterConfig, core.RunConfig):
    """Settings of an estimator's runs. As TensorFlow 1.15's `tf.contrib.learn.RunConfig`.

    `num_cores`, `log_device_placement` and `gpu_memory_fraction` are for servers that an Experiment starts. Raises
    ValueError as `tf.estimator.RunConfig` does.
    """

    _USE_DEFAULT = 0

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: float | None = _USE_DEFAULT,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: config_pb2.ConfigProto | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if save_checkpoints_secs == RunConfig._USE_DEFAULT:
            save_checkpoints_secs = None if save_checkpoints_steps is not None else 600
        # tf.estimator's own constructor asks for a chief in the cluster, which is a later name of the master.
        core.RunConfig._replace(
            self,
            core._DEFAULT_REPLACEABLE_LIST,
            model_dir=core._model_dir(read_tf_config() or {}, model_dir or None),
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            # That both are set is only refused where a checkpoint is to be saved.
            save_checkpoints_secs=save_checkpoints_secs if save_checkpoints_steps is None else None,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            train_distribute=None,
            device_fn=None,
            protocol=protocol,
            eval_distribute=None,
            experimental_distribute=None,
            experimental_max_worker_delay_secs=None,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        self._save_checkpoints_secs = save_checkpoints_secs
        self._service = self._global_id_in_cluster = None
        ClusterConfig.__init__(self, master=master, evaluation_master=evaluation_master)
        self._tf_config = config_pb2.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=config_pb2.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )

    @property
    def tf_config(self) -> config_pb2.ConfigProto:
        """The configuration of a server of this task."""
        return self._tf_config

    def uid(self, whitelist: Any = None) -> str:
        """A text that two runs of one model have in common; `whitelist` names the settings that may differ."""
        ignored = {f"_{name}" for name in (_DEFAULT_UID_WHITE_LIST if whitelist is None else whitelist)}
        state = {key: value for key, value in sorted(vars(self).items()) if key not in ignored}
        state["_cluster_spec"] = dict(sorted(self._cluster_spec.as_dict().items()))
        return ", ".join(f"{key}={value!r}" for key, value in state.items())


def _master(cluster: ClusterSpec, task_type: str | None, task_id: int) -> str:
    jobs = cluster.as_dict()
    if not jobs or not task_type or (len(jobs) == 1 and len(cluster.job_tasks(cluster.jobs[0])) == 1):
        return ""
    note = "Note that these values may be coming from the TF_CONFIG environment variable."
    if task_type not in jobs:
        raise ValueError(f"{task_type} is not a valid task_type in the cluster_spec:\n{cluster}\n\n{note}")
    addresses = cluster.job_tasks(task_type)
    if not 0 <= task_id < len(addresses):
        raise ValueError(
            f"{task_id} is not a valid task_id for task_type {task_type} in the cluster_spec:\n{cluster}\n\n{note}"
        )
    return f"grpc://{addresses[task_id]}"
