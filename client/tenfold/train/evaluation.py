"""Evaluating a checkpoint once: a session that runs update ops until a hook or the input ends it, then final ops.

The step of an evaluation is a local variable of its own. Used by tf.estimator. Follows TF 1.15's
training/evaluation.py.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import control_dependencies, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, init_ops, state_ops, variable_scope
from tenfold.train.hooks import FinalOpsHook
from tenfold.train.monitored_session import MonitoredSession
from tenfold.train.session_creators import ChiefSessionCreator
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.train.scaffold import Scaffold
    from tenfold_protos.config_pb2 import ConfigProto

#: From how many evaluations on only about ten of them are logged.
_MANY = 20


def get_or_create_eval_step() -> Any:
    """The counter of evaluation steps: the one item of EVAL_STEP, made if there is none. ValueError for several."""
    found = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return variable_scope.get_variable(
        "eval_step",
        shape=[],
        dtype=dtypes.int64,
        initializer=init_ops.Zeros(),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )


class StopAfterNEvalsHook(SessionRunHook):
    """Asks for a stop after `num_evals` steps of `evaluate_once` (None: never), and logs progress."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals, self._log_progress = num_evals, log_progress
        self._evals_completed: Any = None
        self._log_frequency = 1 if num_evals is None or num_evals < _MANY else num_evals // 10

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        done = run_values.results["evals_completed"]
        if self._log_progress:
            if self._num_evals is None:
                logging.info("Evaluation [%d]", done)
            elif done % self._log_frequency == 0 or done == self._num_evals:
                logging.info("Evaluation [%d/%d]", done, self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


def evaluate_once(
    checkpoint_path: str | None,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Any = None,
    feed_dict: Mapping[Any, Any] | None = None,
    final_ops: Any = None,
    final_ops_feed_dict: Mapping[Any, Any] | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
) -> Any:
    """Restores the checkpoint, and runs `eval_ops` until a hook or the input ends it; the values of `final_ops` then.

    Without `eval_ops` no step runs. Blocks. As TensorFlow 1.15's `training.evaluation._evaluate_once`.
    """
    eval_step = get_or_create_eval_step()
    all_hooks = list(hooks or ())
    if eval_ops is not None:
        counted = state_ops.assign_add(eval_step, 1, use_locking=True)
        if isinstance(eval_ops, dict):
            eval_ops["update_eval_step"] = counted
            awaited = list(eval_ops.values())
        else:
            eval_ops = [*(eval_ops if isinstance(eval_ops, (list, tuple)) else [eval_ops]), counted]
            awaited = eval_ops
        with control_dependencies(awaited):
            completed = array.identity(eval_step.read_value())
        for hook in all_hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(completed)
    logging.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.localtime()))
    creator = ChiefSessionCreator(scaffold, master=master, config=config, checkpoint_filename_with_path=checkpoint_path)
    final = FinalOpsHook(final_ops, final_ops_feed_dict)
    with MonitoredSession(creator, [*all_hooks, final]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    logging.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime()))
    return final.final_ops_values
