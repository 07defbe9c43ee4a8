"""The base classes of monitors, and the hook that runs them in a training.

monitors.py and validation_monitor.py have the kinds; estimators call `replace_monitors_with_hooks`. Follows TensorFlow
1.15's `contrib/learn/python/learn/monitors.py`.
"""

from __future__ import annotations

import inspect
from typing import Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunHook
from tenfold.train.training_util import get_global_step


class BaseMonitor:
    """Base of monitors: methods are called at the begin and the end of training, of epochs and of steps.

    Raises ValueError for calls in another order.
    """

    def __init__(self) -> None:
        self._begun = False
        self._current_epoch: int | None = None
        self._current_step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        """Whether workers that are not the chief run it, too."""
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Says whose training it watches."""
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Before the first step, while the graph may be changed."""
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps = max_steps
        self._begun = True

    def end(self, session: Any = None) -> None:
        """After the last step."""
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps = None
        self._begun = False

    def epoch_begin(self, epoch: int) -> None:
        """Before an epoch."""
        if self._current_epoch is not None:
            raise ValueError("epoch_begin called twice without epoch_end.")
        if epoch < 0:
            raise ValueError(f"Invalid epoch {epoch}.")
        self._current_epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """After an epoch."""
        if self._current_epoch != epoch:
            raise ValueError(f"epoch_end expected {self._current_epoch} but got {epoch}.")
        self._current_epoch = None

    def step_begin(self, step: int) -> list[Any]:
        """Before a step: the tensors, or their names, that `step_end` wants."""
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._current_step = step
        return []

    def step_end(self, step: int, output: Any) -> bool:
        """After a step; True ends the training."""
        if self._current_step != step:
            raise ValueError(f"step_end expected {self._current_step} but got {step}.")
        self._current_step = None
        return False

    def post_step(self, step: int, session: Any) -> None:
        """After `step_end` of all monitors."""


class EveryN(BaseMonitor):
    """Does its work in the first steps, and then every `every_n_steps`."""

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_successful_step: int | None = None
        self._last_active_step = 0
        self._active = False

    def every_n_step_begin(self, step: int) -> list[Any]:
        """As `step_begin`, of a step that counts."""
        return []

    def every_n_step_end(self, step: int, outputs: Any) -> bool | None:
        """As `step_end`, of a step that counts."""
        return False

    def every_n_post_step(self, step: int | None, session: Any) -> None:
        """As `post_step`, of a step that counts."""

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        due = step >= self._every_n_steps + self._last_active_step
        self._active = step <= self._first_n_steps or due or step == self._max_steps
        return self.every_n_step_begin(step) if self._active else []

    def step_end(self, step: int, output: Any) -> bool:
        super().step_end(step, output)
        return bool(self._active and self.every_n_step_end(step, output))

    def post_step(self, step: int, session: Any) -> None:
        if self._active:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        super().end(session)
        if self._last_successful_step != self._last_active_step:
            self.every_n_post_step(self._last_successful_step, session)


class RunHookAdapterForMonitors(SessionRunHook):
    """Runs monitors as a hook."""

    def __init__(self, monitors: list[Any]) -> None:
        self._monitors = monitors
        self._last_step: int | None = None
        self._step: Any = None

    def begin(self) -> None:
        self._last_step = None
        self._step = get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        if self._last_step is None:
            self._last_step = int(run_context.session.run(self._step)) + 1
        wanted: list[Any] = []
        for monitor in self._monitors:
            requests = monitor.step_begin(self._last_step)
            if requests:
                if not isinstance(requests, list):
                    raise ValueError("Monitor.step_begin should return a list.")
                wanted.extend(requests)
        return SessionRunArgs({_name(each): _element(each) for each in wanted} if wanted else None)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        result = run_values.results or {}
        for monitor in self._monitors:
            if monitor.step_end(self._last_step, result):
                run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(self._last_step, run_context.session)
        # Read by itself: fetched with the step it would be from before or after, by chance.
        self._last_step = int(run_context.session.run(self._step)) + 1

    def end(self, session: Any) -> None:
        self._last_step = None
        for monitor in self._monitors:
            takes = "session" in inspect.signature(monitor.end).parameters
            monitor.end(session=session) if takes else monitor.end()


def _name(request: Any) -> str:
    return request if isinstance(request, str) else str(request.name)


def _element(request: Any) -> Any:
    """The tensor or operation that a monitor asked for. Raises ValueError for one of another graph, or several."""
    graph = get_default_graph()
    if not isinstance(request, str):
        if getattr(request, "graph", None) is not graph:
            raise ValueError(f"Passed {request} should have graph attribute that is equal to current graph {graph}.")
        return request
    if ":" in request:
        return graph.as_graph_element(request)
    if len(graph.get_operation_by_name(request).outputs) > 1:
        raise ValueError(f"Name {request} is ambiguous, as this `Operation` has multiple outputs (at least 2).")
    return graph.as_graph_element(f"{request}:0")


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[Any]:
    """The hooks, and one hook that runs all monitors among them; only the chief runs most of these."""
    given = list(monitors_or_hooks or ())
    hooks = [each for each in given if isinstance(each, SessionRunHook)]
    monitors = [each for each in given if not isinstance(each, SessionRunHook)]
    if not estimator.config.is_chief:
        monitors = [each for each in monitors if each.run_on_all_workers]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    if monitors:
        hooks.append(RunHookAdapterForMonitors(monitors))
    return hooks
