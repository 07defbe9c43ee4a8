"""The training session of an estimator: its hooks, its saver, and the loop of steps. Used by estimator.py.

A step costs what a step of MonitoredTrainingSession with the same hooks costs. Follows TF 1.15's
estimator/estimator.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging, summary
from tenfold import train as training
from tenfold.estimator.cluster_place import TaskType
from tenfold.graph import add_to_collection, get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.train.hooks import (
    CheckpointSaverHook,
    LoggingTensorHook,
    NanTensorHook,
    StepCounterHook,
    SummarySaverHook,
)
from tenfold.train.saver import Saver

if TYPE_CHECKING:
    from tenfold.estimator.model_fn import EstimatorSpec
    from tenfold.estimator.run_config import RunConfig
    from tenfold.train.hooks import CheckpointSaverListener
    from tenfold.train.session_run_hook import SessionRunHook
    from tenfold_protos.config_pb2 import ConfigProto


def train_with_spec(
    config: RunConfig,
    session_config: ConfigProto | None,
    spec: EstimatorSpec,
    hooks: list[SessionRunHook],
    global_step: Any,
    saving_listeners: list[CheckpointSaverListener],
) -> Any:
    """Runs `spec.train_op` in the default graph until a hook or the input ends it; the last loss, None without a step.

    Blocks. Raises ValueError for listeners where nothing saves.
    """
    if not any(each.op.name == "loss" for each in get_collection(GraphKeys.SUMMARIES)):
        summary.scalar("loss", spec.loss)
    add_to_collection(GraphKeys.LOSSES, spec.loss)
    worker_hooks = [*hooks, NanTensorHook(spec.loss)]
    if config.log_step_count_steps is not None:
        logged = {"loss": spec.loss, "step": global_step}
        worker_hooks.append(LoggingTensorHook(logged, every_n_iter=config.log_step_count_steps))
    worker_hooks.extend(spec.training_hooks)
    _give_saver(config, spec)
    saves = _saving_hooks(config, spec, worker_hooks, saving_listeners)
    summary_steps, count_steps = config.save_summary_steps, config.log_step_count_steps
    jobs = config.cluster_spec.jobs if config.cluster_spec else ()
    if TaskType.WORKER in jobs and TaskType.MASTER in jobs:
        # a master that evaluates now and then would write summaries at odd times: worker 0 does it
        summary_steps, count_steps = 0, None
        if config.task_type == TaskType.WORKER and config.task_id == 0:
            worker_hooks.extend(_writing_hooks(config, spec))
    session = training.MonitoredTrainingSession(
        master=config.master,
        is_chief=config.is_chief,
        checkpoint_dir=config.model_dir,
        scaffold=spec.scaffold,
        hooks=worker_hooks,
        chief_only_hooks=[*saves, *spec.training_chief_hooks],
        save_checkpoint_secs=0,  # a hook does it
        save_summaries_steps=summary_steps,
        config=session_config,
        max_wait_secs=config.session_creation_timeout_secs,
        log_step_count_steps=count_steps,
    )
    fetches = [spec.train_op, spec.loss]
    loss, stepped = None, False
    with session:
        while not session.should_stop():
            _, loss = session.run(fetches)
            stepped = True
    if not stepped:
        logging.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
    return loss


def _give_saver(config: RunConfig, spec: EstimatorSpec) -> None:
    """Adds a saver with the settings' bounds, unless the model brings one."""
    if spec.scaffold.saver or get_collection(GraphKeys.SAVERS):
        return
    saver = Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        save_relative_paths=True,
    )
    add_to_collection(GraphKeys.SAVERS, saver)


def _saving_hooks(
    config: RunConfig,
    spec: EstimatorSpec,
    worker_hooks: list[SessionRunHook],
    saving_listeners: list[CheckpointSaverListener],
) -> list[SessionRunHook]:
    """The chief's hook that saves, unless one of the given ones does; the listeners join the first that does."""
    made: list[SessionRunHook] = []
    savers = [each for each in (*worker_hooks, *spec.training_chief_hooks) if isinstance(each, CheckpointSaverHook)]
    if not savers and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        savers = [
            CheckpointSaverHook(
                config.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold,
            )
        ]
        made.extend(savers)
    if saving_listeners and not savers:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
            "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
        )
    for listener in saving_listeners:
        if listener not in savers[0]._listeners:
            savers[0]._listeners.append(listener)
    return made


def _writing_hooks(config: RunConfig, spec: EstimatorSpec) -> list[SessionRunHook]:
    hooks: list[SessionRunHook] = []
    if config.save_summary_steps and config.save_summary_steps > 0:
        hooks.append(SummarySaverHook(config.save_summary_steps, output_dir=config.model_dir, scaffold=spec.scaffold))
    if config.log_step_count_steps and config.log_step_count_steps > 0:
        hooks.append(StepCounterHook(config.log_step_count_steps, output_dir=config.model_dir))
    return hooks
