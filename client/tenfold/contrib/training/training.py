"""`create_train_op` and `train`: the training step of a loss, gradients clipped, scaled or summarized, and its loop.

contrib/slim/learning.py has slim's forms of them. Follows TensorFlow 1.15's
contrib/training/python/training/training.py.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from tenfold import logging, summary
from tenfold.graph import control_dependencies, convert_to_tensor, get_default_graph, name_scope
from tenfold.graph.collections import GraphKeys
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.ops import clip, control_flow
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.generated_ops import check_numerics as checked_numerics
from tenfold.ops.variables import trainable_variables
from tenfold.train.monitored_session import MonitoredTrainingSession
from tenfold.train.optimizer import Optimizer
from tenfold.train.training_util import get_or_create_global_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Pairs = Sequence[tuple[Any, Any]]

#: Says that the global step is to be found or made; None says that there is to be none.
USE_GLOBAL_STEP = 0


def _with_values(gradient: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(change(gradient.values), gradient.indices, gradient.dense_shape)
    return change(gradient)


def add_gradients_summaries(grads_and_vars: Pairs, separator: str = "_") -> list[Any]:
    """A histogram and the norm of each gradient, named after its variable with `separator` behind it."""
    summaries = []
    for gradient, var in grads_and_vars:
        if gradient is None:
            logging.info("Var %s has no gradient", var.op.name)
            continue
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        summaries.append(summary.histogram(f"{var.op.name}{separator}gradient", values))
        summaries.append(summary.scalar(f"{var.op.name}{separator}gradient_norm", clip.global_norm([values])))
    return summaries


def clip_gradient_norms(gradients_to_variables: Pairs, max_norm: Any) -> list[tuple[Any, Any]]:
    """The pairs, each gradient with a norm of at most `max_norm`."""
    return [
        (gradient if gradient is None else _with_values(gradient, lambda g: clip.clip_by_norm(g, max_norm)), var)
        for gradient, var in gradients_to_variables
    ]


def clip_gradient_norms_fn(max_norm: Any) -> Callable[[Pairs], list[tuple[Any, Any]]]:
    """`clip_gradient_norms` as a function for `transform_grads_fn`."""
    return lambda pairs: clip_gradient_norms(pairs, max_norm)


def multiply_gradients(grads_and_vars: Any, gradient_multipliers: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The pairs, the gradients of some variables scaled: `gradient_multipliers` is variable or its name → factor.

    Raises ValueError for anything but a list and a dictionary that is not empty, and for a factor of no gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, dict):
        raise ValueError("`gradient_multipliers` must be a dict.")
    scaled = []
    for gradient, var in grads_and_vars:
        key = var if var in gradient_multipliers else var.op.name
        if key in gradient_multipliers:
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = convert_to_tensor(gradient_multipliers[key], dtype=gradient.dtype)
            gradient = _with_values(gradient, functools.partial(operator.mul, factor))
        scaled.append((gradient, var))
    return scaled


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    transform_grads_fn: Callable[[Any], Any] | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:
    """The loss, whose computation runs the update ops (default: UPDATE_OPS) and trains the variables once.

    It is added to TRAIN_OP. `check_numerics` fails the step for a loss that is not a number. Raises ValueError for
    variables that are not trainable, or none.
    """
    graph = get_default_graph()
    # Not ==: a global step may be a variable.
    if isinstance(global_step, int) and global_step == USE_GLOBAL_STEP:
        global_step = get_or_create_global_step()
    known = list(dict.fromkeys(graph.get_collection(GraphKeys.UPDATE_OPS)))
    updates = known if update_ops is None else list(dict.fromkeys(update_ops))
    if not set(known) <= set(updates):
        logging.warning("update_ops in create_train_op does not contain all the update_ops in GraphKeys.UPDATE_OPS")
    if updates:
        with control_dependencies(updates):
            barrier = control_flow.no_op(name="update_barrier")
        total_loss = with_dependencies([barrier], total_loss)
    if variables_to_train is None:
        variables_to_train = trainable_variables()
    else:
        for each in variables_to_train:
            if not (each.trainable or each in trainable_variables()):
                raise ValueError(f"{each.op.name} is not trainable, and is in variables_to_train.")
    if not variables_to_train:
        raise ValueError("There are no variables to train: the graph has no trainable variables.")
    gradients = optimizer.compute_gradients(
        total_loss,
        variables_to_train,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if transform_grads_fn:
        gradients = transform_grads_fn(gradients)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    applied = optimizer.apply_gradients(gradients, global_step=global_step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = checked_numerics(total_loss, "LossTensor is inf or nan")
        train_op = with_dependencies([applied], total_loss)
    ops = graph.get_collection_ref(GraphKeys.TRAIN_OP)
    if not any(train_op is each for each in ops):
        ops.append(train_op)
    return train_op


def train(
    train_op: Any,
    logdir: str | None,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100,
    config: Any = None,
    max_wait_secs: float = 7200,
    run_metadata: Any = None,
) -> Any:
    """Runs `train_op` in a MonitoredTrainingSession until a hook or the input ends it; returns its last value.

    Blocks. Raises ValueError for a chief that is to save without a folder.
    """
    if logdir is None and is_chief:
        if save_summaries_steps:
            raise ValueError("logdir cannot be None when save_summaries_steps is not None")
        if save_checkpoint_secs:
            raise ValueError("logdir cannot be None when save_checkpoint_secs is not None")
    loss = None
    with MonitoredTrainingSession(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
