"""slim's evaluation: a number of steps of `eval_op` on one checkpoint or on each new one, with summaries at the end.

Made of contrib/training/evaluation.py. Follows TensorFlow 1.15's contrib/slim/python/slim/evaluation.py.
"""

from __future__ import annotations

from typing import Any

from tenfold import summary
from tenfold.contrib.training.evaluation import (
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    checkpoints_iterator,
    evaluate_repeatedly,
    wait_for_new_checkpoint,
)
from tenfold.contrib.training.evaluation import evaluate_once as evaluate_checkpoint
from tenfold.train.saver import Saver
from tenfold.train.scaffold import Scaffold

__all__ = ["checkpoints_iterator", "evaluate_once", "evaluation_loop", "wait_for_new_checkpoint"]

#: Stands for an argument that was not given, where None says that there is to be none.
_USE_DEFAULT: Any = 0


def _hooks(logdir: str | None, num_evals: int, summary_op: Any, summary_feeds: Any, more: Any) -> list[Any]:
    if summary_op is _USE_DEFAULT:
        summary_op = summary.merge_all()
    hooks: list[Any] = [StopAfterNEvalsHook(num_evals)]
    if summary_op is not None:
        hooks.append(SummaryAtEndHook(log_dir=logdir, summary_op=summary_op, feed_dict=summary_feeds))
    return [*hooks, *(more or ())]


def _saver(variables_to_restore: Any) -> Saver | None:
    return None if variables_to_restore is None else Saver(variables_to_restore)


def evaluate_once(
    master: str,
    checkpoint_path: str | None,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Any = None,
) -> Any:
    """Runs `eval_op` `num_evals` times on one checkpoint; returns the value of `final_op`. Blocks."""
    return evaluate_checkpoint(
        checkpoint_path,
        master=master,
        scaffold=Scaffold(init_op=initial_op, init_feed_dict=initial_op_feed_dict, saver=_saver(variables_to_restore)),
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        hooks=_hooks(logdir, num_evals, summary_op, summary_op_feed_dict, hooks),
        config=session_config,
    )


def evaluation_loop(
    master: str,
    checkpoint_dir: str,
    logdir: str | None,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    init_fn: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: Any = None,
    timeout: float | None = None,
    timeout_fn: Any = None,
    hooks: Any = None,
) -> Any:
    """`evaluate_once` for each new checkpoint of a folder; returns the last value of `final_op`.

    Blocks until `max_number_of_evaluations`, or until no checkpoint came for `timeout` seconds and `timeout_fn`, if
    given, says True.
    """
    return evaluate_repeatedly(
        checkpoint_dir,
        master=master,
        scaffold=Scaffold(
            init_op=initial_op,
            init_feed_dict=initial_op_feed_dict,
            init_fn=init_fn,
            saver=_saver(variables_to_restore),
        ),
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        eval_interval_secs=eval_interval_secs,
        hooks=_hooks(logdir, num_evals, summary_op, summary_op_feed_dict, hooks),
        config=session_config,
        max_number_of_evaluations=max_number_of_evaluations,
        timeout=timeout,
        timeout_fn=timeout_fn,
    )
