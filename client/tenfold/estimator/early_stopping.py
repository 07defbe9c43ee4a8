"""Hooks that end a training early, by a function or by the metrics of evaluations. tf.estimator.experimental has them.

The chief decides, and tells the other workers by a variable. Follows TF 1.15's estimator/early_stopping.py.
"""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

from tenfold import gfile, logging
from tenfold.estimator.estimator import Estimator
from tenfold.graph.collections import GraphKeys
from tenfold.ops import init_ops, state_ops, variable_scope
from tenfold.summary.summary_iterator import summary_iterator
from tenfold.train.hook_timer import SecondOrStepTimer
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tenfold.train.training_util import get_global_step
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that ends the training of all workers once `should_stop_fn()`, which the chief asks now and then, is true.

    Raises TypeError for another kind of estimator, ValueError for both periods. As TensorFlow 1.15's
    `tf.estimator.experimental.make_early_stopping_hook`: an evaluator of its own goes on waiting for checkpoints.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps)
    return _CheckForStoppingHook()


def stop_if_higher_hook(
    estimator: Estimator, metric_name: str, threshold: float, eval_dir: str | None = None, min_steps: int = 0,
    run_every_secs: float | None = 60, run_every_steps: int | None = None,
) -> SessionRunHook:  # fmt: skip
    """A hook that ends the training once the metric is above `threshold`, from step `min_steps` on.

    The metric is read from the event files of `eval_dir` (default: `estimator.eval_dir()`).
    """
    return _stop_if_threshold_crossed_hook(
        estimator, metric_name, threshold, True, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_lower_hook(
    estimator: Estimator, metric_name: str, threshold: float, eval_dir: str | None = None, min_steps: int = 0,
    run_every_secs: float | None = 60, run_every_steps: int | None = None,
) -> SessionRunHook:  # fmt: skip
    """A hook that ends the training once the metric is below `threshold`; else as `stop_if_higher_hook`."""
    return _stop_if_threshold_crossed_hook(
        estimator, metric_name, threshold, False, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_no_increase_hook(
    estimator: Estimator, metric_name: str, max_steps_without_increase: int, eval_dir: str | None = None,
    min_steps: int = 0, run_every_secs: float | None = 60, run_every_steps: int | None = None,
) -> SessionRunHook:  # fmt: skip
    """A hook that ends the training when the metric has not grown for so many steps; else as `stop_if_higher_hook`."""
    return _stop_if_no_metric_improvement_hook(
        estimator, metric_name, max_steps_without_increase, True, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_no_decrease_hook(
    estimator: Estimator, metric_name: str, max_steps_without_decrease: int, eval_dir: str | None = None,
    min_steps: int = 0, run_every_secs: float | None = 60, run_every_steps: int | None = None,
) -> SessionRunHook:  # fmt: skip
    """A hook that ends the training when the metric has not sunk for so many steps; else as `stop_if_higher_hook`."""
    return _stop_if_no_metric_improvement_hook(
        estimator, metric_name, max_steps_without_decrease, False, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, float]]:
    """Step → name → value, in the order of steps, of all event files in the folder; {} where there is none."""
    found: dict[int, dict[str, float]] = {}
    pattern = os.path.join(eval_dir, "events.out.tfevents.*")
    for path in gfile.Glob(pattern) if gfile.Exists(eval_dir) else ():
        for event in summary_iterator(path):
            values = event.summary.value if event.HasField("summary") else ()
            numbers = {value.tag: value.simple_value for value in values if value.HasField("simple_value")}
            if numbers:
                found.setdefault(event.step, {}).update(numbers)
    return dict(sorted(found.items()))


def _stop_if_threshold_crossed_hook(
    estimator: Estimator, metric_name: str, threshold: float, higher_is_better: bool, eval_dir: str | None,
    min_steps: int, run_every_secs: float | None, run_every_steps: int | None,
) -> SessionRunHook:  # fmt: skip
    folder = estimator.eval_dir() if eval_dir is None else eval_dir
    crossed = operator.gt if higher_is_better else operator.lt

    def stop_if_threshold_crossed_fn() -> bool:
        for step, metrics in read_eval_metrics(folder).items():
            if step >= min_steps and crossed(metrics[metric_name], threshold):
                logging.info(
                    'At step %s, metric "%s" has value %s which is %s the configured threshold (%s) for early '
                    "stopping.",
                    step,
                    metric_name,
                    metrics[metric_name],
                    "greater than" if higher_is_better else "less than",
                    threshold,
                )
                return True
        return False

    return make_early_stopping_hook(estimator, stop_if_threshold_crossed_fn, run_every_secs, run_every_steps)


def _stop_if_no_metric_improvement_hook(
    estimator: Estimator, metric_name: str, max_steps_without_improvement: int, higher_is_better: bool,
    eval_dir: str | None, min_steps: int, run_every_secs: float | None, run_every_steps: int | None,
) -> SessionRunHook:  # fmt: skip
    folder = estimator.eval_dir() if eval_dir is None else eval_dir
    better = operator.gt if higher_is_better else operator.lt

    def stop_if_no_metric_improvement_fn() -> bool:
        best: float | None = None
        best_step = 0
        for step, metrics in read_eval_metrics(folder).items():
            if step < min_steps:
                continue
            if best is None or better(metrics[metric_name], best):
                best, best_step = metrics[metric_name], step
            if step - best_step >= max_steps_without_improvement:
                logging.info(
                    'No %s in metric "%s" for %s steps, which is greater than or equal to max steps (%s) configured '
                    "for early stopping.",
                    "increase" if higher_is_better else "decrease",
                    metric_name,
                    step - best_step,
                    max_steps_without_improvement,
                )
                return True
        return False

    return make_early_stopping_hook(estimator, stop_if_no_metric_improvement_fn, run_every_secs, run_every_steps)


def _get_or_create_stop_var() -> Any:
    """The variable by which the chief tells the workers."""
    with variable_scope.variable_scope("signal_early_stopping", reuse=variable_scope.AUTO_REUSE):
        return variable_scope.get_variable(
            "STOP",
            shape=[],
            dtype=dtypes.bool_,
            initializer=init_ops.Constant(False),
            collections=[GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _StopOnPredicateHook(SessionRunHook):
    """The chief's: asks the function, and sets the variable. Raises TypeError for what cannot be called."""

    def __init__(
        self,
        should_stop_fn: Callable[[], bool],
        run_every_secs: float | None = 60,
        run_every_steps: int | None = None,
    ) -> None:
        if not callable(should_stop_fn):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop_fn = should_stop_fn
        self._timer = SecondOrStepTimer(every_secs=run_every_secs, every_steps=run_every_steps)

    def begin(self) -> None:
        self._global_step_tensor = get_global_step()
        self._stop_var = _get_or_create_stop_var()
        self._stop_op = state_ops.assign(self._stop_var, True)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = run_values.results
        if not self._timer.should_trigger_for_step(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._should_stop_fn():
            logging.info("Requesting early stopping at global step %d", step)
            run_context.session.run(self._stop_op)
            run_context.request_stop()


class _CheckForStoppingHook(SessionRunHook):
    """The other workers': reads the variable with every step."""

    def begin(self) -> None:
        self._stop_var = _get_or_create_stop_var()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._stop_var)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results:
            logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()
