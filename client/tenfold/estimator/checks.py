"""Checks of what users hand to an Estimator: its subclasses, hooks, listeners, metrics. Used by estimator.py.

Follows TF 1.15's estimator/estimator.py, with its error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import Tensor, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.nest import flatten
from tenfold.ops import control_flow
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.hooks import CheckpointSaverListener
from tenfold.train.session_run_hook import SessionRunHook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Methods that subclasses may have anew.
_MAY_OVERRIDE = {"model_fn", "_create_and_assert_global_step", "_export_all_saved_models"}


def check_members_are_not_overridden(base: type, estimator: Any) -> None:
    """Raises ValueError if the estimator's class has methods of `base` anew: a model function is the way to differ."""
    kind = type(estimator)
    members = {name for name in dir(base) if not name.startswith("__")}
    again = (members & set(vars(kind))) - _MAY_OVERRIDE
    overridden = sorted(name for name in again if getattr(base, name) != getattr(kind, name))
    if overridden:
        raise ValueError(
            f"Subclasses of Estimator cannot override members of Estimator. {kind} does override {overridden}"
        )


def check_hooks_type(hooks: Iterable[Any] | None) -> list[SessionRunHook]:
    """The hooks as a list. Raises TypeError for something that is not a hook."""
    given = list(hooks or ())
    for hook in given:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"Hooks must be a SessionRunHook, given: {hook}")
    return given


def check_listeners_type(saving_listeners: Iterable[Any] | None) -> list[CheckpointSaverListener]:
    """The listeners as a list. Raises TypeError for something that is not a listener."""
    given = list(saving_listeners or ())
    for listener in given:
        if not isinstance(listener, CheckpointSaverListener):
            raise TypeError(f"saving_listeners must be a list of CheckpointSaverListener, given: {listener}")
    return given


def check_steps(steps: int | None, max_steps: int | None = None) -> None:
    """Raises ValueError for both, or for less than one."""
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    for name, number in (("steps", steps), ("max_steps", max_steps)):
        if number is not None and number <= 0:
            raise ValueError(f"Must specify {name} > 0, given: {number}")


def check_checkpoint_available(model_dir: str) -> None:
    """Raises ValueError if the folder has no checkpoint."""
    if not latest_checkpoint(model_dir):
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")


def has_dataset_or_queue_runner(features: Any) -> bool:
    """Whether the input comes from a dataset or a queue, and so may end."""
    tensors = [each for each in flatten(features) if isinstance(each, Tensor)]
    if any(tensor.op.type == "IteratorGetNext" for tensor in tensors):
        return True
    return bool(get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS))


def metric_update_ops(metrics: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(an op that runs all updates, name → value) of name → (value, update); the op is None without metrics."""
    # by name, so that the graph is the same every time
    updates = [update for _, (_, update) in sorted(metrics.items())]
    values = {name: value for name, (value, _) in sorted(metrics.items())}
    return (control_flow.group(*updates) if updates else None), values


def batch_length(predictions: Mapping[str, Any]) -> int:
    """The first dimension of all values. Raises ValueError if they differ."""
    length: int | None = None
    for key, value in predictions.items():
        length = length or int(value.shape[0])
        if value.shape[0] != length:
            raise ValueError(
                f"Batch length of predictions should be same. {key} has different batch length than others."
            )
    return length or 0


def chosen_predictions(predictions: Any, predict_keys: Any) -> Any:
    """The predictions of these names; all without names. Raises ValueError where there are none of them."""
    if not predict_keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    chosen = {key: value for key, value in predictions.items() if key in predict_keys}
    if not chosen:
        raise ValueError(f"Expected to run at least one output from {predictions.keys()}, provided {predict_keys}.")
    return chosen
