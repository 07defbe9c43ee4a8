"""`tf.contrib.learn.monitors.ValidationMonitor`: evaluates new checkpoints while a model trains, and may end it early.

Follows TensorFlow 1.15's `contrib/learn/python/learn/monitors.py`.
"""

from __future__ import annotations

import copy
import time
from typing import Any

from tenfold import logging
from tenfold.contrib.learn.monitor_base import EveryN
from tenfold.estimator.estimator import Estimator as CoreEstimator
from tenfold.train import checkpoint_management


class ValidationMonitor(EveryN):
    """Evaluates every `every_n_steps` if there is a new checkpoint.

    With `early_stopping_rounds` it ends training once the metric has not become better for so many steps. Raises
    ValueError without `x` and `input_fn`, for a metric that there is not, and for what `tf.estimator` does not take.
    """

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float | None = 5,
    ) -> None:
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self.x, self.y, self.batch_size, self.metrics = x, y, batch_size, metrics
        self.input_fn, self.eval_steps, self.hooks, self.name = input_fn, eval_steps, hooks, name
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self._best_step: int | None = None
        self._best_value: Any = None
        self._best_metrics: Any = None
        self._early_stopped = False
        self._latest_path: str | None = None
        self._checked: float | None = None
        self._check_interval_secs = check_interval_secs

    @property
    def early_stopped(self) -> bool:
        """Whether it has ended the training."""
        return self._early_stopped

    @property
    def best_step(self) -> int | None:
        """The step with the best value so far."""
        return self._best_step

    @property
    def best_value(self) -> Any:
        """The best value so far."""
        return self._best_value

    @property
    def best_metrics(self) -> Any:
        """All metrics of that step."""
        return self._best_metrics

    def _evaluate(self) -> dict[str, Any]:
        shared = {"input_fn": self.input_fn, "steps": self.eval_steps, "hooks": self.hooks, "name": self.name}
        own = {"x": self.x, "y": self.y, "batch_size": self.batch_size, "metrics": self.metrics}
        if isinstance(self._estimator, CoreEstimator):
            if any(value is not None for value in own.values()):
                raise ValueError(
                    "tf.estimator.Estimator does not support following arguments: x, y, batch_size, metrics. Should "
                    "set as `None` in ValidationMonitor"
                )
            own = {}
        found: dict[str, Any] = self._estimator.evaluate(**shared, **own)
        return found

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        now = time.monotonic()
        interval = self._check_interval_secs
        if interval is not None and self._checked is not None and now - self._checked <= interval:
            return False
        self._checked = now
        path = checkpoint_management.latest_checkpoint(self._estimator.model_dir)
        if path is None or path == self._latest_path:
            logging.debug("Skipping evaluation at step %d: there is no new checkpoint.", step)
            return False
        self._latest_path = path
        found = self._evaluate()
        logging.info("Validation (step %d): %s", step, ", ".join(f"{key} = {value}" for key, value in found.items()))
        return self.early_stopping_rounds is not None and self._stops(step, found)

    def _stops(self, step: int, found: dict[str, Any]) -> bool:
        if self.early_stopping_metric not in found:
            raise ValueError(f"Metric {self.early_stopping_metric} missing from outputs {set(found)}.")
        value = found[self.early_stopping_metric]
        best = self._best_value
        if best is None or (value < best if self.early_stopping_metric_minimize else value > best):
            self._best_value, self._best_step = value, step
            self._best_metrics = copy.deepcopy(found)
        assert self._best_step is not None
        assert self.early_stopping_rounds is not None
        if step - self._best_step < self.early_stopping_rounds:
            return False
        logging.info(
            "Stopping. Best step: %d with %s = %s.", self._best_step, self.early_stopping_metric, self._best_value
        )
        self._early_stopped = True
        return True
