"""Evaluates and exports new checkpoints, for training.py: after each save of a local training, or again and again.

Follows TF 1.15's estimator/training.py, with its error messages.
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import logging
from tenfold.estimator.train_specs import EvalSpec, assert_eval_spec
from tenfold.graph.collections import GraphKeys
from tenfold.train import hooks

if TYPE_CHECKING:
    from tenfold.estimator.estimator import Estimator
    from tenfold.session.session import BaseSession

#: Seconds between two warnings that there is nothing to evaluate.
_WARN_SECS = 600


class _EvalStatus:
    """What came of looking for a checkpoint. A local training always has a new one."""

    EVALUATED = "evaluated"
    MISSING_CHECKPOINT = "missing checkpoint"
    NO_NEW_CHECKPOINT = "no new checkpoint"


class _EvalFields(NamedTuple):
    status: str
    metrics: dict[str, Any] | None
    checkpoint_path: str | None


class _EvalResult(_EvalFields):
    """The result of one look; metrics and path belong to an evaluation. Raises ValueError or TypeError else."""

    __slots__ = ()

    def __new__(
        cls, status: str, metrics: dict[str, Any] | None = None, checkpoint_path: str | None = None
    ) -> _EvalResult:
        if status != _EvalStatus.EVALUATED:
            if metrics:
                raise ValueError(
                    f"metrics must be `None` if status is not {_EvalStatus.EVALUATED}; got status {status}, "
                    f"metrics {metrics}"
                )
            if checkpoint_path:
                raise ValueError(
                    f"checkpoint must be `None` if status is not {_EvalStatus.EVALUATED}; got status {status}, "
                    f"checkpoint_path {checkpoint_path}"
                )
            return super().__new__(cls, status, metrics, checkpoint_path)
        if not metrics:
            raise ValueError("Internal error: `Estimator.evaluate` should never return empty metrics.")
        if not isinstance(metrics, dict):
            raise TypeError(f"`Estimator.evaluate` should return dict. Given {type(metrics)}.")
        if GraphKeys.GLOBAL_STEP not in metrics:
            raise ValueError(
                f"Internal error: `Estimator.evaluate` result should have `global_step` in result. Given {metrics}"
            )
        if not checkpoint_path:
            raise ValueError("Internal error: `checkpoint_path` should never be empty.")
        return super().__new__(cls, status, metrics, checkpoint_path)


class _ContinuousEvalListener:
    """Base class of what is asked around evaluations; False ends them."""

    def before_eval(self) -> bool:
        """Whether to evaluate at all."""
        return True

    def after_eval(self, eval_result: _EvalResult) -> bool:
        """Whether to go on."""
        return True


class _Evaluator:
    """Evaluates and exports the newest checkpoint, if it is a new one."""

    def __init__(self, estimator: Estimator, eval_spec: Any, max_training_steps: int | None) -> None:
        assert_eval_spec(eval_spec)
        self._estimator, self._max_training_steps = estimator, max_training_steps
        self._eval_spec: EvalSpec = eval_spec
        self._is_final_export_triggered = False
        self._previous_ckpt_path: str | None = None
        self._last_warning_time = -math.inf

    @property
    def is_final_export_triggered(self) -> bool:
        """Whether a checkpoint of the last step was exported."""
        return self._is_final_export_triggered

    def evaluate_and_export(self) -> tuple[_EvalResult, list[Any]]:
        """(result, what each exporter returned). Blocks. Raises TypeError or ValueError for what is not a metric."""
        path = self._estimator.latest_checkpoint()
        if not path:
            self._log_err_msg("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.")
            return _EvalResult(_EvalStatus.MISSING_CHECKPOINT), []
        if path == self._previous_ckpt_path:
            self._log_err_msg(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as evaluation results are "
                "expected to be same for the same checkpoint."
            )
            return _EvalResult(_EvalStatus.NO_NEW_CHECKPOINT), []
        spec = self._eval_spec
        metrics = self._estimator.evaluate(
            input_fn=spec.input_fn, steps=spec.steps, name=spec.name, checkpoint_path=path, hooks=spec.hooks
        )
        result = _EvalResult(_EvalStatus.EVALUATED, metrics, path)
        last = self._max_training_steps
        is_the_final_export = bool(last) and metrics[GraphKeys.GLOBAL_STEP] >= last
        exported = self._export_eval_result(result, is_the_final_export)
        if is_the_final_export:
            logging.debug("Calling exporter with the `is_the_final_export=True`.")
            self._is_final_export_triggered = True
        self._last_warning_time = -math.inf
        self._previous_ckpt_path = path
        return result, exported

    def _log_err_msg(self, message: str) -> None:
        """Warns, but not too often."""
        now = time.monotonic()
        if now - self._last_warning_time > _WARN_SECS:
            logging.warning(message)
            self._last_warning_time = now

    def _export_eval_result(self, eval_result: _EvalResult, is_the_final_export: bool) -> list[Any]:
        base = os.path.join(str(self._estimator.model_dir), "export")
        path, metrics = eval_result.checkpoint_path, eval_result.metrics
        assert path is not None
        assert metrics is not None
        return [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(base, exporter.name),
                checkpoint_path=path,
                eval_result=metrics,
                is_the_final_export=is_the_final_export,
            )
            for exporter in self._eval_spec.exporters
        ]


class _NewCheckpointListenerForEvaluate(hooks.CheckpointSaverListener):
    """Evaluates after a checkpoint was saved, unless the last evaluation began less than `eval_throttle_secs` ago."""

    def __init__(
        self, evaluator: _Evaluator, eval_throttle_secs: float, continuous_eval_listener: _ContinuousEvalListener
    ) -> None:
        self._evaluator, self._eval_throttle_secs = evaluator, eval_throttle_secs
        self._continuous_eval_listener = continuous_eval_listener
        self.eval_result: _EvalResult | None = None
        self.export_results: list[Any] | None = None

    def begin(self) -> None:
        self._timer = hooks.SecondOrStepTimer(every_secs=self._eval_throttle_secs)
        self._is_first_run = True

    def after_save(self, session: BaseSession, global_step_value: int) -> bool | None:
        if self._is_first_run:
            # a checkpoint of what the training began with
            self._is_first_run = False
            return None
        if not self._continuous_eval_listener.before_eval():
            logging.info("Exiting training and evaluation loop, as requested by _ContinuousEvalListener.before_eval.")
            return True
        if not self._timer.should_trigger_for_step(global_step_value):
            logging.info("Skip the current checkpoint eval due to throttle secs (%s secs).", self._eval_throttle_secs)
            return None
        if not self._continuous_eval_listener.after_eval(self._evaluate(global_step_value)):
            logging.info("Exiting evaluation, as requested by _ContinuousEvalListener.after_eval.")
            return True
        return None

    def end(self, session: BaseSession, global_step_value: int) -> None:
        evaluated = global_step_value == self._timer.last_triggered_step()
        if not evaluated and self._continuous_eval_listener.before_eval():
            self._continuous_eval_listener.after_eval(self._evaluate(global_step_value))

    def _evaluate(self, global_step_value: int) -> _EvalResult:
        """Raises RuntimeError if there is no checkpoint, which cannot be right after a save."""
        self._timer.update_last_triggered_step(global_step_value)
        self.eval_result, self.export_results = self._evaluator.evaluate_and_export()
        if self.eval_result.status != _EvalStatus.EVALUATED:
            raise RuntimeError(
                f"There was no new checkpoint after the training. Eval status: {self.eval_result.status}"
            )
        return self.eval_result
