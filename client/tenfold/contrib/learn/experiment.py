"""`tf.contrib.learn.Experiment`: an estimator with its inputs, and the schedules by which a cluster trains it.

learn_runner.py runs the schedule that fits the task. Follows TensorFlow 1.15's
`contrib/learn/python/learn/experiment.py`.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.contrib.learn import monitor_base as monitor_lib
from tenfold.contrib.learn.export_strategy import ExportStrategy
from tenfold.contrib.learn.interfaces import Evaluable, Trainable
from tenfold.contrib.learn.run_config import Environment, RunConfig
from tenfold.contrib.learn.validation_monitor import ValidationMonitor
from tenfold.estimator.estimator import Estimator as CoreEstimator
from tenfold.estimator.util import fn_args
from tenfold.graph.collections import GraphKeys
from tenfold.train import checkpoint_management, server_lib
from tenfold.train.hooks import CheckpointSaverHook, CheckpointSaverListener, GlobalStepWaiterHook

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Experiment"]

#: How long no checkpoint may come before a continuous evaluation says so again.
_WARN_SECONDS = 600


class _EvalAndExportListener(CheckpointSaverListener):
    """Evaluates and exports each new checkpoint."""

    def __init__(self, eval_fn: Any, export_fn: Any, model_dir: str) -> None:
        self._eval_fn = eval_fn
        self._export_fn = export_fn
        self._model_dir = model_dir
        self._latest_path: str | None = None
        self.eval_result: Any = None
        self.export_results: Any = None

    def after_save(self, session: Any, global_step_value: int) -> None:
        path = checkpoint_management.latest_checkpoint(self._model_dir)
        if not path or path == self._latest_path:
            logging.warning("Skipping evaluation since there is no new checkpoint in %s.", self._model_dir)
            return
        self._latest_path = path
        self.eval_result = self._eval_fn(name="intermediate_export", checkpoint_path=path)
        self.export_results = self._export_fn(self.eval_result, checkpoint_path=path)


class Experiment:
    """Trains and evaluates an estimator of `tf.contrib.learn` or `tf.estimator`.

    Raises ValueError for another estimator, and for arguments that the kind of estimator does not take. Methods block;
    `delay_secs` are slept before the work begins. As TensorFlow 1.15's `tf.contrib.learn.Experiment`.
    """

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Any,
        eval_input_fn: Any,
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
        check_interval_secs: float | None = 5,
    ) -> None:
        self._core_estimator_used = isinstance(estimator, CoreEstimator)
        if self._core_estimator_used:
            if eval_metrics is not None:
                raise ValueError(
                    "`eval_metrics` must be `None` with `tf.estimator.Estimator`. Use `eval_metric_ops` in "
                    "`tf.estimator.EstimatorSpec` instead."
                )
        elif not isinstance(estimator, Evaluable):
            raise ValueError("`estimator` must implement `tf.contrib.learn.Evaluable` or `tf.estimator.Estimator`.")
        elif not isinstance(estimator, Trainable):
            raise ValueError("`estimator` must implement `tf.contrib.learn.Trainable`or `tf.estimator.`Estimator`.")
        elif saving_listeners is not None:
            raise ValueError("`saving_listeners` must be `None` with `tf.contrib.learn.Estimator`.")
        if train_steps_per_iteration is not None and not isinstance(train_steps_per_iteration, int):
            raise ValueError("`train_steps_per_iteration` must be an integer.")
        self._estimator = estimator
        self._train_input_fn = train_input_fn
        self._eval_input_fn = eval_input_fn
        self._eval_metrics = eval_metrics
        self._train_steps = train_steps
        self._eval_steps = eval_steps
        self._local_eval_frequency = local_eval_frequency
        self._eval_delay_secs = eval_delay_secs
        self._continuous_eval_throttle_secs = continuous_eval_throttle_secs
        self._checkpoint_and_export = checkpoint_and_export
        self._saving_listeners = saving_listeners
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._check_interval_secs = check_interval_secs
        self._delay_workers_by_global_step = delay_workers_by_global_step
        self._train_monitors = list(train_monitors or ())
        self._eval_hooks = list(eval_hooks or ())
        self._set_export_strategies(export_strategies)
        self._train_steps_per_iteration = train_steps_per_iteration

    @property
    def estimator(self) -> Any:
        """The estimator."""
        return self._estimator

    @property
    def eval_metrics(self) -> Any:
        """The metrics of evaluations."""
        return self._eval_metrics

    @property
    def train_steps(self) -> int | None:
        """The step that training goes up to."""
        return self._train_steps

    @property
    def eval_steps(self) -> int | None:
        """The number of steps of an evaluation."""
        return self._eval_steps

    def _set_export_strategies(self, values: Any) -> None:
        found = [values] if isinstance(values, ExportStrategy) else list(values or ())
        for value in found:
            if not isinstance(value, ExportStrategy):
                raise ValueError(
                    "`export_strategies` must be an ExportStrategy, an iterable of ExportStrategy, or `None`, found "
                    f"{value}."
                )
        self._export_strategies = tuple(found)

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks or monitors of training."""
        self._train_monitors.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> Any:
        """Sets the strategies; returns those of before."""
        before = self._export_strategies
        self._set_export_strategies(new_export_strategies)
        return before

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains; in a cluster starts this task's server before, if TF_CONFIG says `environment: cloud`.

        Later workers begin later, by 5 seconds each, if `delay_secs` is None.
        """
        config = self._estimator.config
        if isinstance(config, RunConfig):
            distributed = config.cluster_spec and config.master
            if distributed and config.environment == Environment.LOCAL:
                logging.warning(
                    "ClusterSpec and master are provided, but environment is set to 'local'. Set environment to "
                    "'cloud' if you intend to use the distributed runtime."
                )
            elif distributed and config.environment != Environment.GOOGLE:
                self._start_server()
        elif config.cluster_spec and config.master:
            raise ValueError(
                "For distributed runtime, Experiment class only works with tf.contrib.learn.RunConfig for now, but "
                f"provided {type(config)}"
            )
        hooks: list[Any] = []
        if delay_secs is None:
            task_id = config.task_id or 0
            delay_secs = min(60, task_id * 5)
            if self._delay_workers_by_global_step:
                hooks.append(GlobalStepWaiterHook(int(8000.0 * math.log(task_id + 1))))
                delay_secs = 0
        _delay(delay_secs, "training")
        return self._call_train(
            max_steps=self._train_steps,
            hooks=self._train_monitors + hooks,
            saving_listeners=self._saving_listeners,
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """Evaluates once."""
        _delay(self._eval_delay_secs if delay_secs is None else delay_secs, "eval")
        return self._call_evaluate(name=name or "one_pass")

    def local_run(self) -> Any:
        """`train_and_evaluate`, evaluating every `local_eval_frequency` steps."""
        with _kept(self, "_min_eval_frequency"):
            self._min_eval_frequency = self._local_eval_frequency or 0
            return self.train_and_evaluate()

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Any = None,
        name: str = "continuous",
    ) -> None:
        """Evaluates each new checkpoint, until one is of the last step or the predicate is false."""
        self._continuous_eval(
            self._eval_input_fn,
            name,
            delay_secs,
            throttle_delay_secs,
            evaluate_checkpoint_only_once,
            continuous_eval_predicate_fn,
        )

    def continuous_eval_on_train_data(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        continuous_eval_predicate_fn: Any = None,
        name: str = "continuous_on_train_data",
    ) -> None:
        """The same on the input of training, without exports."""
        self._continuous_eval(
            self._train_input_fn,
            name,
            delay_secs,
            throttle_delay_secs,
            predicate=continuous_eval_predicate_fn,
            export=False,
        )

    def _continuous_eval(
        self,
        input_fn: Any,
        name: str,
        delay_secs: float | None,
        throttle_delay_secs: float | None,
        only_once: bool = True,
        predicate: Any = None,
        export: bool = True,
    ) -> None:
        goes_on = _predicate(predicate)
        _delay(self._eval_delay_secs if delay_secs is None else delay_secs, "eval")
        throttle = self._continuous_eval_throttle_secs if throttle_delay_secs is None else throttle_delay_secs
        previous: str | None = None
        result: Any = None
        warned: float | None = None
        while goes_on is None or goes_on(result, previous):
            if self._has_training_stopped(result):
                logging.info("Exiting continuous eval, since training has come to step %s.", self._train_steps)
                return
            begun = time.monotonic()
            path = checkpoint_management.latest_checkpoint(self._estimator.model_dir)
            if not path or (only_once and path == previous):
                result = {}
                if warned is None or begun - warned > _WARN_SECONDS:
                    logging.warning("There is no new checkpoint in %s to evaluate yet.", self._estimator.model_dir)
                    warned = begun
            else:
                result = self._call_evaluate(input_fn=input_fn, name=name, checkpoint_path=path) or {}
                if export:
                    self._maybe_export(result, checkpoint_path=path)
                warned = None
                previous = path
            _delay(throttle - (time.monotonic() - begun), "the next evaluation")

    def _has_training_stopped(self, result: Any) -> bool:
        step = (result or {}).get(GraphKeys.GLOBAL_STEP)
        return bool(step and self._train_steps and step >= self._train_steps)

    def train_and_evaluate(self) -> tuple[Any, list[Any]]:
        """Trains with evaluations in between, then evaluates and exports: (result, what was exported)."""
        config = self._estimator.config
        listener: _EvalAndExportListener | None = None
        with _kept(self, "_train_monitors"):
            self._train_monitors = list(self._train_monitors)
            if self._checkpoint_and_export and (config.save_checkpoints_secs or config.save_checkpoints_steps):
                listener = _EvalAndExportListener(self._call_evaluate, self._maybe_export, self._estimator.model_dir)
                self._train_monitors.append(
                    CheckpointSaverHook(
                        checkpoint_dir=self._estimator.model_dir,
                        save_secs=config.save_checkpoints_secs,
                        save_steps=config.save_checkpoints_steps,
                        listeners=[listener],
                    )
                )
            elif self._min_eval_frequency:
                self._train_monitors.append(
                    ValidationMonitor(
                        input_fn=self._eval_input_fn,
                        eval_steps=self._eval_steps,
                        metrics=self._eval_metrics,
                        every_n_steps=self._min_eval_frequency,
                        check_interval_secs=self._check_interval_secs,
                        hooks=self._eval_hooks,
                    )
                )
            self.train(delay_secs=0)
        if listener is not None:
            return listener.eval_result, listener.export_results
        result = self._call_evaluate()
        return result, self._maybe_export(result)

    def continuous_train_and_eval(self, continuous_eval_predicate_fn: Any = None) -> tuple[Any, Any]:
        """Trains some steps and evaluates, in turns, until the last step or the predicate is false."""
        goes_on = _predicate(continuous_eval_predicate_fn)
        steps = self._train_steps_per_iteration
        if steps is None:
            steps = 1000 if self._train_steps is None else int(self._train_steps / 10)
        result: Any = None
        exported: Any = None
        checkpoint: str | None = None
        while goes_on is None or goes_on(result, checkpoint if result else None):
            if self._has_training_stopped(result):
                break
            self._call_train(steps=steps, hooks=self._train_monitors, saving_listeners=self._saving_listeners)
            checkpoint = checkpoint_management.latest_checkpoint(self._estimator.model_dir)
            result = self._call_evaluate(name="one_pass", checkpoint_path=checkpoint)
            exported = self._maybe_export(result)
        return result, exported

    def _maybe_export(self, eval_result: Any, checkpoint_path: str | None = None) -> list[Any]:
        base = os.path.join(self._estimator.model_dir, "export")
        return [
            each.export(
                self._estimator,
                os.path.join(base, each.name),
                checkpoint_path=checkpoint_path,
                eval_result=eval_result,
            )
            for each in self._export_strategies
        ]

    def run_std_server(self) -> None:
        """Starts this task's server, and serves until the process ends."""
        self._start_server().join()

    def test(self) -> Any:
        """One step of training and one of evaluation."""
        self._call_train(steps=1, hooks=self._train_monitors, saving_listeners=self._saving_listeners)
        result = self._call_evaluate(steps=1, name="one_pass", hooks=())
        self._maybe_export(result)
        return result

    def _start_server(self) -> server_lib.Server:
        config = self._estimator.config
        if not config.cluster_spec or not config.task_type or not config.master or config.task_id is None:
            raise ValueError(
                "Could not start server; be sure to specify cluster_spec, task_type, master, and task in RunConfig or "
                "set the TF_CONFIG environment variable."
            )
        server = server_lib.Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=config.tf_config,
            start=False,
        )
        server.start()
        return server

    def _call_train(
        self, steps: Any = None, hooks: Any = None, max_steps: Any = None, saving_listeners: Any = None
    ) -> Any:
        hooks = monitor_lib.replace_monitors_with_hooks(hooks, self._estimator)
        shared = {"input_fn": self._train_input_fn, "steps": steps, "max_steps": max_steps}
        if self._core_estimator_used:
            return self._estimator.train(**shared, hooks=hooks, saving_listeners=saving_listeners)
        return self._estimator.fit(**shared, monitors=hooks)

    def _call_evaluate(
        self,
        input_fn: Any = None,
        steps: int | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
    ) -> Any:
        own = {} if self._core_estimator_used else {"metrics": self._eval_metrics}
        return self._estimator.evaluate(
            input_fn=input_fn or self._eval_input_fn,
            steps=self._eval_steps if steps is None else steps,
            name=name,
            checkpoint_path=checkpoint_path,
            hooks=self._eval_hooks if hooks is None else list(hooks),
            **own,
        )


def _delay(seconds: float, what: str) -> None:
    if seconds > 0:
        logging.info("Waiting %d secs before starting %s.", seconds, what)
        time.sleep(seconds)


def _predicate(function: Any) -> Any:
    """A predicate of results and the checkpoint, from one that may take the results alone. Raises ValueError."""
    if function is None:
        return None
    if not callable(function):
        raise ValueError("`continuous_eval_predicate_fn` must be a callable, or None.")
    if "checkpoint_path" in fn_args(function):
        return lambda results, path: function(results, checkpoint_path=path)
    return lambda results, path: function(results)


@contextlib.contextmanager
def _kept(owner: Any, attribute: str) -> Iterator[None]:
    before = getattr(owner, attribute)
    try:
        yield
    finally:
        setattr(owner, attribute, before)
