"""slim's training: `create_train_op`, and `train`, which runs it under a Supervisor until a number of steps is done.

The training step is contrib/training/training.py's; evaluation is in evaluation.py beside this file. Follows
TensorFlow 1.15's contrib/slim/python/slim/learning.py.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from tenfold import gfile, logging, summary
from tenfold.contrib.training.training import (
    USE_GLOBAL_STEP,
    clip_gradient_norms,
    multiply_gradients,
)
from tenfold.contrib.training.training import add_gradients_summaries as summarize_gradients
from tenfold.contrib.training.training import create_train_op as create_transformed
from tenfold.graph import control_dependencies, get_default_graph, name_scope
from tenfold.ops import array, control_flow, math
from tenfold.ops.lookup import tables_initializer
from tenfold.ops.variables import (
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from tenfold.profiler.timeline import Timeline
from tenfold.session import observing
from tenfold.train import saver as tf_saver
from tenfold.train import supervisor
from tenfold.train.optimizer import Optimizer
from tenfold.train.sync_replicas import SyncReplicasOptimizer
from tenfold.train.training_util import get_or_create_global_step
from tenfold.train.training_util import global_step as value_of_step
from tenfold_core import errors
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "add_gradients_summaries", "clip_gradient_norms", "create_train_op", "multiply_gradients", "train", "train_step",
]  # fmt: skip

#: Stands for an argument that was not given, where None says that there is to be none.
_USE_DEFAULT: Any = 0
_POLL_SECONDS = 1.0


def add_gradients_summaries(grads_and_vars: Any) -> list[Any]:
    """A histogram and the norm of each gradient, under the variable's name."""
    return summarize_gradients(grads_and_vars, "/")


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Any = None,
    check_numerics: bool = True,
) -> Any:
    """The loss, whose computation trains the variables once: `tf.contrib.training.create_train_op`.

    Gradients are scaled by `gradient_multipliers` (variable or its name → factor), then clipped to a norm above 0.
    """

    def transform(gradients: Any) -> Any:
        if gradient_multipliers:
            with name_scope("multiply_grads"):
                gradients = multiply_gradients(gradients, gradient_multipliers)
        if clip_gradient_norm > 0:
            with name_scope("clip_grads"):
                gradients = clip_gradient_norms(gradients, clip_gradient_norm)
        return gradients

    return create_transformed(
        total_loss,
        optimizer,
        global_step=global_step,
        update_ops=update_ops,
        variables_to_train=variables_to_train,
        transform_grads_fn=transform,
        summarize_gradients=summarize_gradients,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        check_numerics=check_numerics,
    )


def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """(loss, whether to stop) of one step; the tensors of `train_step_kwargs` say what else to do.

    These are `should_stop`, `should_log`, and `should_trace`, which needs `logdir`. Raises ValueError without it.
    """
    began = time.monotonic()
    options = metadata = None
    if "should_trace" in train_step_kwargs:
        if "logdir" not in train_step_kwargs:
            raise ValueError("logdir must be present in train_step_kwargs when should_trace is present")
        if sess.run(train_step_kwargs["should_trace"]):
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            metadata = config_pb2.RunMetadata()
    loss, step = sess.run([train_op, global_step], options=options, run_metadata=metadata)
    elapsed = time.monotonic() - began
    if metadata is not None:
        path = os.path.join(train_step_kwargs["logdir"], f"tf_trace-{step}.json")
        logging.info("Writing trace to %s", path)
        with gfile.GFile(path, "w") as file:
            file.write(Timeline(metadata.step_stats).generate_chrome_trace_format())
        if train_step_kwargs.get("summary_writer") is not None:
            train_step_kwargs["summary_writer"].add_run_metadata(metadata, f"run_metadata-{step}")
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, elapsed)
    stop = sess.run(train_step_kwargs["should_stop"]) if "should_stop" in train_step_kwargs else False
    return loss, stop


def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Callable[..., Any] = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Any = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Any = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Trains until `number_of_steps` of the global step, or the input's end; returns the last loss.

    The chief initializes or restores from `logdir`, and saves there; others wait for it, and `startup_delay_steps`
    more. `sync_optimizer` is one or a list of SyncReplicasOptimizer. A lost server leads to a new session. Blocks.
    Raises ValueError for arguments that contradict each other.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None:
        for name, given in (
            ("summary_op", summary_op is not _USE_DEFAULT),
            ("saver", saver is not None),
            ("trace_every_n_steps", trace_every_n_steps is not None),
        ):
            if given:
                raise ValueError(f"Cannot provide {name} because logdir=None")
    synced = [sync_optimizer] if isinstance(sync_optimizer, SyncReplicasOptimizer) else sync_optimizer
    if synced is not None and startup_delay_steps > 0:
        raise ValueError("startup_delay_steps must be zero when sync_optimizer is supplied.")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")
    graph = graph or get_default_graph()
    with graph.as_default():
        if global_step is None:
            global_step = get_or_create_global_step()
        saver = saver or tf_saver.Saver()
        for each in synced or ():
            if not isinstance(each, SyncReplicasOptimizer):
                raise ValueError("`sync_optimizer` must be a tf.train.SyncReplicasOptimizer.")
        with name_scope("init_ops"):
            if init_op is _USE_DEFAULT:
                init_op = global_variables_initializer()
            if ready_op is _USE_DEFAULT:
                ready_op = report_uninitialized_variables()
            if local_init_op is _USE_DEFAULT:
                local_init_op = control_flow.group(local_variables_initializer(), tables_initializer())
            ready_for_local_init_op: Any = None
            if synced is not None:
                with control_dependencies([] if local_init_op is None else [local_init_op]):
                    starts = [each.chief_init_op if is_chief else each.local_step_init_op for each in synced]
                    local_init_op = control_flow.group(*starts)
                ready_for_local_init_op = control_flow.group(*[each.ready_for_local_init_op for each in synced])
        if summary_op is _USE_DEFAULT:
            summary_op = summary.merge_all()
        tokens = runners = None
        if is_chief and synced is not None:
            tokens = [each.get_init_tokens_op() for each in synced]
            runners = [each.get_chief_queue_runner() for each in synced]
        if train_step_kwargs is _USE_DEFAULT:
            train_step_kwargs = _step_tensors(
                global_step, number_of_steps, log_every_n_steps, trace_every_n_steps if is_chief else None, logdir
            )
    sv = supervisor.Supervisor(
        graph=graph,
        is_chief=is_chief,
        logdir=logdir,
        init_op=init_op,
        init_feed_dict=init_feed_dict,
        local_init_op=local_init_op,
        ready_for_local_init_op=ready_for_local_init_op,
        ready_op=ready_op,
        summary_op=summary_op,
        summary_writer=supervisor.Supervisor.USE_DEFAULT if summary_writer is _USE_DEFAULT else summary_writer,
        global_step=global_step,
        saver=saver,
        save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs,
        init_fn=init_fn,
    )
    if summary_writer is not None:
        train_step_kwargs["summary_writer"] = sv.summary_writer
    delay = 0 if is_chief else min(startup_delay_steps, number_of_steps or sys.maxsize)

    def attempt() -> Any:
        loss = None
        with sv.managed_session(master, start_standard_services=False, config=session_config) as sess:
            logging.info("Starting Session.")
            if number_of_steps is not None and observing.observer is not None:
                observing.observer.note_stop(number_of_steps)
            if session_wrapper is not None:
                logging.info("Wrapping session with wrapper function: %s", session_wrapper)
                sess = session_wrapper(sess)
            if is_chief and logdir:
                sv.start_standard_services(sess)
            while delay and value_of_step(sess, global_step) < delay:
                # A worker that is told to stop while it waits does.
                if sv.coord.wait_for_stop(_POLL_SECONDS):
                    break
            threads = sv.start_queue_runners(sess)
            logging.info("Starting Queues.")
            if tokens is not None:
                sv.start_queue_runners(sess, runners)
                sess.run(tokens)
            try:
                while not sv.should_stop():
                    loss, stop = train_step_fn(sess, train_op, global_step, train_step_kwargs)
                    if stop:
                        logging.info("Stopping Training.")
                        sv.request_stop()
                        break
            except errors.OutOfRangeError as error:
                logging.info("Caught OutOfRangeError. Stopping Training. %s", error)
            if logdir and sv.is_chief:
                logging.info("Finished training! Saving model to disk.")
                sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
                sv.stop(threads, close_summary_writer=True, ignore_live_threads=ignore_live_threads)
        return loss

    while True:
        try:
            return attempt()
        except errors.AbortedError:
            # A server was lost: a new session finds what the chief has saved.
            logging.info("Retrying training!")


def _step_tensors(
    global_step: Any, number_of_steps: int | None, log_every: int, trace_every: int | None, logdir: str | None
) -> dict[str, Any]:
    """What `train_step` looks at: whether to stop, to log, to trace."""
    with name_scope("train_step"):
        stop = array.constant(False)
        if number_of_steps:
            stop = math.greater_equal(global_step, number_of_steps)
        tensors: dict[str, Any] = {"should_stop": stop}
        if log_every > 0:
            tensors["should_log"] = math.equal(math.mod(global_step, log_every), 0)
        if trace_every is not None:
            tensors["should_trace"] = math.equal(math.mod(global_step, trace_every), 0)
            tensors["logdir"] = logdir
        return tensors
