"""`InMemoryEvaluatorHook` and `make_stop_at_checkpoint_step_hook`, which tf.estimator.experimental has.

Follows TF 1.15's estimator/hooks/hooks.py, with its error messages.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from tenfold.estimator.checks import check_hooks_type
from tenfold.estimator.estimator import load_global_step_from_checkpoint_dir
from tenfold.graph import Graph, get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, control_flow, state_ops
from tenfold.session import observing
from tenfold.train.hook_timer import SecondOrStepTimer
from tenfold.train.hooks import StopAtStepHook
from tenfold.train.saving_hooks import global_step_read
from tenfold.train.scaffold import Scaffold
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold.estimator.estimator import Estimator
    from tenfold.session.session import BaseSession
    from tenfold.train.coordinator import Coordinator


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates the model before, during (every `every_n_iter` steps) and after a training, without checkpoints.

    The arguments are those of `Estimator.evaluate`. Values of global variables are copied into a session of the
    evaluation's own. Raises ValueError for a cluster, for models with a saver, an init_fn or saveable objects of
    their own, and for a period below 1. As TensorFlow 1.15's `tf.estimator.experimental.InMemoryEvaluatorHook`.
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        name: str | None = None,
        every_n_iter: int | None = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        self._estimator, self._input_fn = estimator, input_fn
        self._eval_dir = os.path.join(estimator.model_dir, f"eval_{name}" if name else "eval")
        self._hooks = [*check_hooks_type(hooks), *estimator._convert_eval_steps_to_hooks(steps)]
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        """Builds the evaluation's graph."""
        self._timer.reset()
        self._iter_count = 0
        self._graph = Graph()
        with self._graph.as_default():
            self._scaffold, self._update_op, self._eval_dict, self._all_hooks = self._estimator._evaluate_build_graph(
                self._input_fn, self._hooks, checkpoint_path=None
            )
            if self._scaffold.saver is not None:
                raise ValueError("InMemoryEvaluator does not support custom saver")
            if self._scaffold.init_fn is not None:
                raise ValueError("InMemoryEvaluator does not support custom init_fn")
            #: Name → variable of the evaluation.
            self._eval_vars = {each.name: each for each in get_collection(GraphKeys.GLOBAL_VARIABLES)}
            self._placeholders = {name: array.placeholder(each.dtype) for name, each in self._eval_vars.items()}

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Evaluates the model as it is before the training."""
        if get_collection(GraphKeys.SAVEABLE_OBJECTS):
            raise ValueError("InMemoryEvaluator does not support saveables other than global variables.")
        # variables that only one of the two graphs has stay as they are
        trained = get_collection(GraphKeys.GLOBAL_VARIABLES)
        self._train_vars = {each.name: each for each in trained if each.name in self._eval_vars}
        with self._graph.as_default():
            copies = (state_ops.assign(self._eval_vars[name], self._placeholders[name]) for name in self._train_vars)
            self._var_feed_op = control_flow.group(*copies)
        self._evaluate(session)

    def _evaluate(self, train_session: BaseSession) -> None:
        values = train_session.run(self._train_vars)
        feeds = {self._placeholders[name]: value for name, value in values.items()}

        def feed_variables(scaffold: Scaffold, session: BaseSession) -> None:
            session.run(self._var_feed_op, feed_dict=feeds)

        with self._graph.as_default():
            self._estimator._evaluate_run(
                checkpoint_path=None,
                scaffold=Scaffold(init_fn=feed_variables, copy_from_scaffold=self._scaffold),
                update_op=self._update_op,
                eval_dict=self._eval_dict,
                all_hooks=self._all_hooks,
                output_dir=self._eval_dir,
            )
        self._timer.update_last_triggered_step(self._iter_count)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._iter_count += 1
        if self._timer.should_trigger_for_step(self._iter_count):
            self._evaluate(run_context.session)

    def end(self, session: BaseSession) -> None:
        self._evaluate(session)


class _StopAtCheckpointStepHook(SessionRunHook):
    """Asks for a stop once a checkpoint of `model_dir` has the global step `last_step`.

    From that step on it waits `wait_after_file_check_secs` after each look. Raises ValueError for a missing argument,
    RuntimeError if the graph has no global step.
    """

    def __init__(self, model_dir: str, last_step: int, wait_after_file_check_secs: float = 30) -> None:
        if last_step is None:
            raise ValueError("last_step must be specified.")
        if model_dir is None:
            raise ValueError("model_dir must be specified.")
        self._model_dir, self._last_step = model_dir, last_step
        self._wait_after_file_check_secs = wait_after_file_check_secs

    def begin(self) -> None:
        self._global_step_tensor = global_step_read("StopAtCheckpointStepHook")
        if observing.observer is not None:
            observing.observer.note_stop(self._last_step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results + 1 < self._last_step:
            return
        if load_global_step_from_checkpoint_dir(self._model_dir) >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait_after_file_check_secs)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """A hook that ends the chief's training at `last_step`, and that of a worker once a checkpoint has that step."""
    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)
