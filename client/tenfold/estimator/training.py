"""`tf.estimator.train_and_evaluate`: trains, evaluates and exports, by itself or as one task of a cluster.

What a task does comes from its type in RunConfig: the chief and workers train, a ps serves, an evaluator evaluates
each new checkpoint, a master of an older cluster does both. Follows TF 1.15's estimator/training.py.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.distribute.cluster_resolver.tf_config import read_tf_config
from tenfold.estimator.cluster_place import TaskType
from tenfold.estimator.estimator import Estimator
from tenfold.estimator.evaluator import (
    _ContinuousEvalListener,
    _EvalResult,
    _EvalStatus,
    _Evaluator,
    _NewCheckpointListenerForEvaluate,
)
from tenfold.estimator.train_specs import EvalSpec, TrainSpec, assert_eval_spec, validate_hooks
from tenfold.graph.collections import GraphKeys
from tenfold.train import server_lib
from tenfold.train.session_run_hook import SessionRunContext, SessionRunHook, SessionRunValues
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold.estimator.run_config import RunConfig
    from tenfold.train.hooks import CheckpointSaverListener

__all__ = ["EvalSpec", "TrainSpec", "train_and_evaluate"]

#: Seconds that a worker waits for each task before it, and at most.
_DELAY_SECS_PER_WORKER, _MAX_DELAY_SECS = 5, 60
#: Tasks that train.
_TRAINER_JOBS = (TaskType.CHIEF, TaskType.MASTER, TaskType.WORKER)


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Trains until `train_spec.max_steps`, evaluates checkpoints, and exports as `eval_spec` says.

    By itself: (metrics of the last evaluation, what the exporters returned). In a cluster, None; a ps serves until its
    server ends. Blocks. Raises TypeError for arguments of another kind, ValueError for a second evaluator and for a
    task that there is no work for. As TensorFlow 1.15's `tf.estimator.train_and_evaluate`.
    """
    assert_eval_spec(eval_spec)
    executor = _TrainingExecutor(estimator=estimator, train_spec=train_spec, eval_spec=eval_spec)
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR and config.task_id > 0:
        raise ValueError(
            "For distributed training, there can only be one `evaluator` task (with task id 0).  "
            f"Given task id {config.task_id}"
        )
    return executor.run()


class _StopAtSecsHook(SessionRunHook):
    """Asks for a stop some seconds after the beginning."""

    def __init__(self, stop_after_secs: float) -> None:
        self._stop_after_secs = stop_after_secs

    def begin(self) -> None:
        self._start_time = time.monotonic()

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if time.monotonic() - self._start_time >= self._stop_after_secs:
            run_context.request_stop()


class _TrainingExecutor:
    """What each type of task does: `run_TYPE`. Raises TypeError for arguments of another kind."""

    def __init__(
        self,
        estimator: Any,
        train_spec: Any,
        eval_spec: Any,
        train_hooks: Iterable[SessionRunHook] | None = None,
        continuous_eval_listener: Any = None,
    ) -> None:
        if not isinstance(estimator, Estimator):
            raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
        if not isinstance(train_spec, TrainSpec):
            raise TypeError(f"`train_spec` must have type `tf.estimator.TrainSpec`. Got: {type(train_spec)}")
        if eval_spec and not isinstance(eval_spec, EvalSpec):
            raise TypeError(
                f"`eval_spec` must be either `None` or have type `tf.estimator.EvalSpec`. Got: {type(eval_spec)}"
            )
        if continuous_eval_listener and not isinstance(continuous_eval_listener, _ContinuousEvalListener):
            raise TypeError("`continuous_eval_listener` must have type `_ContinuousEvalListener`.")
        self._estimator, self._train_spec, self._eval_spec = estimator, train_spec, eval_spec
        self._train_hooks = validate_hooks(train_hooks)
        self._continuous_eval_listener = continuous_eval_listener or _ContinuousEvalListener()

    @property
    def estimator(self) -> Estimator:
        return self._estimator

    def run(self) -> Any:
        """Does this task's work, and returns what `train_and_evaluate` returns."""
        config = self._estimator.config
        if not config.cluster_spec and config.task_type != TaskType.EVALUATOR:
            logging.info("Running training and evaluation locally (non-distributed).")
            return self.run_local()
        if not config.task_type:
            raise ValueError(
                "`estimator.config` must have task_type set. This usually means TF_CONFIG environment is not set "
                "correctly."
            )
        if config.task_type == "local":
            raise ValueError(
                "`task.type` in TF_CONFIG cannot be `local`. Leaving `cluster` and `task` properties in TF_CONFIG "
                "absent triggers train and evaluate `Estimator` locally (non-distributed)."
            )
        methods = [name for name in dir(self) if name.startswith("run_") and callable(getattr(self, name))]
        supported = [name[len("run_") :] for name in methods if name != "run_local"]
        if config.task_type not in supported:
            raise ValueError(f"Task type {config.task_type} is not supported. Supported task types are {supported}")
        # run_chief, run_worker, run_ps, run_evaluator, …
        getattr(self, f"run_{config.task_type}")()
        return None

    def run_chief(self) -> None:
        """Trains."""
        self._start_distributed_training()

    def run_worker(self) -> None:
        """Trains, after a delay: a worker that joins early disturbs a model that has just begun."""
        self._start_distributed_training()

    def run_master(self) -> None:
        """Trains, and evaluates what it saves."""
        assert_eval_spec(self._eval_spec)
        listener = _NewCheckpointListenerForEvaluate(
            self._new_evaluator(), self._eval_spec.throttle_secs, _ContinuousEvalListener()
        )
        self._start_distributed_training(saving_listeners=[listener])

    def run_evaluator(self) -> None:
        """Evaluates each new checkpoint until that of the last step."""
        self._start_continuous_evaluation()

    def run_ps(self) -> None:
        """Serves until the server ends. tf.train.Server.join says when that is, and that it ends the program."""
        server = self._start_std_server(self._estimator.config)
        assert server is not None
        server.join()

    def run_local(self) -> tuple[Any, Any]:
        """Trains, and evaluates what is saved."""
        assert_eval_spec(self._eval_spec)
        config = self._estimator.config
        logging.info(
            "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is "
            "determined based on RunConfig arguments: save_checkpoints_steps %s or save_checkpoints_secs %s.",
            config.save_checkpoints_steps,
            config.save_checkpoints_secs,
        )
        listener = _NewCheckpointListenerForEvaluate(
            self._new_evaluator(), self._eval_spec.throttle_secs, self._continuous_eval_listener
        )
        self._train([listener])
        result = listener.eval_result or _EvalResult(status=_EvalStatus.MISSING_CHECKPOINT)
        return result.metrics, listener.export_results

    def _new_evaluator(self) -> _Evaluator:
        return _Evaluator(self._estimator, self._eval_spec, self._train_spec.max_steps)

    def _train(self, saving_listeners: list[CheckpointSaverListener] | None) -> None:
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=[*self._train_spec.hooks, *self._train_hooks],
            saving_listeners=saving_listeners,
        )

    def _start_std_server(self, config: RunConfig) -> server_lib.Server | None:
        """This task's server, which lives as long as the program; None in a cluster of one task that trains.

        Raises RuntimeError if the settings do not say which task it is.
        """
        if not config.cluster_spec or not config.task_type or config.task_id is None:
            raise RuntimeError(
                "Could not start server; be sure to specify cluster_spec, task_type, and task in RunConfig or set the "
                "TF_CONFIG environment variable."
            )
        if not config.master:
            jobs = config.cluster_spec.jobs
            alone = len(jobs) == 1 and len(config.cluster_spec.job_tasks(jobs[0])) == 1
            if not alone or config.task_type not in _TRAINER_JOBS:
                raise RuntimeError(
                    "Could not start server; be sure to specify master in RunConfig or set the TF_CONFIG environment "
                    "variable."
                )
            logging.info("Skip starting Tensorflow server as there is only one node in the cluster.")
            return None
        logging.info("Start Tensorflow server.")
        # of the session's configuration only what concerns the devices; its filters are the session's own
        session_config = config_pb2.ConfigProto(log_device_placement=False)
        if config.session_config is not None:
            session_config.gpu_options.CopyFrom(config.session_config.gpu_options)
        server = server_lib.Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=session_config,
            start=False,
            protocol=config.protocol,
        )
        server.start()
        return server

    def _start_distributed_training(self, saving_listeners: list[CheckpointSaverListener] | None = None) -> None:
        config = self._estimator.config
        # before the delay: the other tasks wait for this server
        if not _is_google_env():
            self._start_std_server(config)
        if config.task_type == TaskType.WORKER:
            most = config.experimental_max_worker_delay_secs
            longest = _MAX_DELAY_SECS if most is None else int(most)
            delay = min(longest, (config.task_id + 1) * _DELAY_SECS_PER_WORKER)
            if delay > 0:
                logging.info("Waiting %d secs before starting training.", delay)
                time.sleep(delay)
        self._train(saving_listeners)

    def _start_continuous_evaluation(self) -> None:
        """Evaluates again and again until a checkpoint of the last step was, or a listener ends it."""
        assert_eval_spec(self._eval_spec)
        delay = self._eval_spec.start_delay_secs
        if delay:
            logging.info("Waiting %f secs before starting eval.", delay)
            time.sleep(delay)
        evaluator, last = self._new_evaluator(), self._train_spec.max_steps
        should_stop = False
        while not should_stop:
            result, should_stop = self._execute_evaluator_once(
                evaluator, self._continuous_eval_listener, self._eval_spec.throttle_secs
            )
            if not should_stop and result is not None and result.status == _EvalStatus.EVALUATED:
                assert result.metrics is not None
                step = result.metrics.get(GraphKeys.GLOBAL_STEP)
                if step and last and step >= last:
                    logging.info("Exiting evaluation, global_step=%s >= train max_steps=%s", step, last)
                    return

    def _execute_evaluator_once(
        self, evaluator: _Evaluator, continuous_eval_listener: _ContinuousEvalListener, throttle_secs: float
    ) -> tuple[_EvalResult | None, bool]:
        """(result, whether to end), and waits until the next evaluation may begin."""
        assert_eval_spec(self._eval_spec)
        start = time.monotonic()
        if not continuous_eval_listener.before_eval():
            logging.info("Exiting evaluation, as requested by _ContinuousEvalListener.before_eval.")
            return None, True
        result, _ = evaluator.evaluate_and_export()
        if not continuous_eval_listener.after_eval(result):
            logging.info("Exiting evaluation, as requested by _ContinuousEvalListener.after_eval.")
            return result, True
        rest = throttle_secs - (time.monotonic() - start)
        if rest > 0:
            logging.info("Waiting %f secs before starting next eval run.", rest)
            time.sleep(rest)
        elif throttle_secs == 0 and result.status != _EvalStatus.EVALUATED:
            logging.warning(
                "EvalSpec.throttle_secs is set as 0. This might overload the job before finding (next) new checkpoint. "
                "Please consider to increase it."
            )
        return result, False


def _is_google_env() -> bool:
    """Whether TF_CONFIG says that the servers are there already."""
    tf_config = read_tf_config()
    if not tf_config:
        logging.warning("TF_CONFIG should not be empty in distributed environment.")
    return bool(tf_config.get("environment") == "google")
