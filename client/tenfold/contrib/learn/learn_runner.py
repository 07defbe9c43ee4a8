"""`tf.contrib.learn.learn_runner`: makes an Experiment and runs the schedule of this task.

Without a cluster that is `train_and_evaluate`; in one, TF_CONFIG says which job this is. Follows TensorFlow 1.15's
`contrib/learn/python/learn/learn_runner.py`.
"""

from __future__ import annotations

from typing import Any

from tenfold import logging
from tenfold.contrib.learn.experiment import Experiment
from tenfold.contrib.learn.run_config import RunConfig, TaskType

#: Job → its schedule.
_SCHEDULES = {TaskType.MASTER: "train_and_evaluate", TaskType.PS: "run_std_server", TaskType.WORKER: "train"}


def run(
    experiment_fn: Any,
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: RunConfig | None = None,
    hparams: Any = None,
) -> Any:
    """Runs `schedule` of the experiment that `experiment_fn(run_config, hparams)`, or `(output_dir)`, makes; blocks.

    Raises ValueError for arguments that do not go together and unknown schedules, TypeError for what is no Experiment,
    RuntimeError for an experiment whose estimator has another configuration.
    """
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if not callable(experiment_fn):
        raise TypeError(f'Experiment builder "{experiment_fn}" is not callable.')
    if run_config is not None:
        experiment = _made(experiment_fn, run_config, hparams)
    else:
        if not output_dir:
            raise ValueError("Must specify an output directory")
        if hparams is not None:
            raise ValueError("Must set `hparams` as None for `experiment_fn` with `output_dir`.")
        experiment = _checked(experiment_fn(output_dir=output_dir))
    return _execute(experiment, schedule or _default_schedule(run_config or experiment.estimator.config))


def tune(experiment_fn: Any, tuner: Any) -> None:
    """Runs an experiment for each trial of the tuner. Blocks until it has no more."""
    while tuner.next_trial():
        tuner.run_experiment(lambda run_config, hparams: _made(experiment_fn, run_config, hparams, needed=True))


def _made(experiment_fn: Any, run_config: Any, hparams: Any, needed: bool = False) -> Experiment:
    if not isinstance(run_config, RunConfig):
        raise ValueError("`run_config` must be `tf.contrib.learn.RunConfig` instance")
    if not run_config.model_dir:
        raise ValueError("Must specify a model directory `model_dir` in `run_config`.")
    if hparams is not None:
        from tenfold.contrib.training import HParams

        if not isinstance(hparams, HParams):
            raise ValueError("`hparams` must be `HParams` instance")
    elif needed:
        raise ValueError("`hparams` cannot be `None`.")
    uid = run_config.uid()
    experiment = _checked(experiment_fn(run_config, hparams))
    config = experiment.estimator.config
    if not hasattr(config, "uid"):
        raise RuntimeError(
            "Pass `run_config` argument of the `experiment_fn` to the Estimator in Experiment. It is likely a "
            "different `RunConfig` is passed to `Estimator` or the `config` constructor argument in `Estimator` is "
            "not set."
        )
    if config.uid() != uid:
        raise RuntimeError(
            "`RunConfig` instance is expected to be used by the `Estimator` inside the `Experiment`. "
            f"expected {uid}, but got {config.uid()}"
        )
    return experiment


def _checked(experiment: Any) -> Experiment:
    if not isinstance(experiment, Experiment):
        raise TypeError(f"Experiment builder did not return an Experiment instance, got {type(experiment)} instead.")
    return experiment


def _execute(experiment: Experiment, schedule: str) -> Any:
    if callable(task := getattr(experiment, schedule, None)):
        return task()
    known = [name for name in dir(experiment) if not name.startswith("_") and callable(getattr(experiment, name))]
    logging.error("Allowed values for this experiment are: %s", known)
    if not hasattr(experiment, schedule):
        raise ValueError(f"Schedule references non-existent task {schedule}")
    raise TypeError(f"Schedule references non-callable member {schedule}")


def _default_schedule(config: Any) -> str:
    """What this task does. Raises ValueError for a job that does nothing by itself."""
    tasks = sum(len(each) for each in config.cluster_spec.as_dict().values()) if config and config.cluster_spec else 0
    if tasks <= 1:
        return "train_and_evaluate"
    if not config.task_type:
        raise ValueError("Must specify a schedule")
    if config.task_type not in _SCHEDULES:
        raise ValueError(f"No default schedule for task type: {config.task_type}")
    return _SCHEDULES[config.task_type]
