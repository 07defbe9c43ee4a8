"""Evaluating checkpoints, once or as they come; a hook that writes the summaries of an evaluation.

One evaluation is train/evaluation.py's, which `tf.estimator` uses too. Follows TensorFlow 1.15's
contrib/training/python/training/evaluation.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging, summary
from tenfold.graph import get_default_graph
from tenfold.ops import state_ops
from tenfold.train.checkpoint_utils import checkpoints_iterator, wait_for_new_checkpoint
from tenfold.train.evaluation import StopAfterNEvalsHook, evaluate_once, get_or_create_eval_step
from tenfold.train.hooks import FinalOpsHook
from tenfold.train.monitored_session import MonitoredSession
from tenfold.train.session_creators import ChiefSessionCreator
from tenfold.train.session_run_hook import SessionRunHook
from tenfold.train.training_util import get_or_create_global_step, global_step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "StopAfterNEvalsHook", "SummaryAtEndHook", "checkpoints_iterator", "evaluate_once", "evaluate_repeatedly",
    "get_or_create_eval_step", "wait_for_new_checkpoint",
]  # fmt: skip


class SummaryAtEndHook(SessionRunHook):
    """Writes `summary_op` (default: all summaries) when the session ends, to a folder or a writer.

    Raises ValueError with neither.
    """

    def __init__(
        self, log_dir: str | None = None, summary_writer: Any = None, summary_op: Any = None, feed_dict: Any = None
    ) -> None:
        if log_dir is None and summary_writer is None:
            raise ValueError("One of log_dir or summary_writer should be used.")
        self._log_dir, self._summary_writer = log_dir, summary_writer
        self._summary_op, self._merges = summary_op, summary_op is None
        self._feed_dict = feed_dict

    def begin(self) -> None:
        # In a graph that an earlier session made final, the summaries are those of that session.
        if self._merges and not get_default_graph().finalized:
            self._summary_op = summary.merge_all()
        self._global_step = get_or_create_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._summary_writer is None:
            self._summary_writer = summary.FileWriterCache.get(str(self._log_dir))

    def end(self, session: Any) -> None:
        if self._summary_op is not None:
            step = global_step(session, self._global_step)
            self._summary_writer.add_summary(session.run(self._summary_op, self._feed_dict), step)
        self._summary_writer.flush()


def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Sequence[SessionRunHook] | None = None,
    config: Any = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:
    """Evaluates each new checkpoint of a folder, and returns the values of `final_ops` of the last evaluation.

    Blocks until `max_number_of_evaluations` or, if no checkpoint comes for `timeout` seconds, until `timeout_fn` (if
    given) says True. The arguments are those of `evaluate_once`.
    """
    step = get_or_create_eval_step()
    all_hooks = list(hooks or ())
    if eval_ops is not None:
        # Made once: the graph is final from the first evaluation on.
        counted = state_ops.assign_add(step, 1)
        for hook in all_hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(counted)
        if isinstance(eval_ops, dict):
            eval_ops = {**eval_ops, "update_eval_step": counted}
        else:
            eval_ops = [*(eval_ops if isinstance(eval_ops, (list, tuple)) else [eval_ops]), counted]
    final = FinalOpsHook(final_ops, final_ops_feed_dict)
    for done, path in enumerate(checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn), 1):
        creator = ChiefSessionCreator(
            scaffold=scaffold, master=master, config=config, checkpoint_filename_with_path=path
        )
        logging.info("Starting evaluation of %s", path)
        with MonitoredSession(creator, [*all_hooks, final]) as session:
            while eval_ops is not None and not session.should_stop():
                session.run(eval_ops, feed_dict)
        logging.info("Finished evaluation of %s", path)
        if max_number_of_evaluations is not None and done >= max_number_of_evaluations:
            break
    return final.final_ops_values
