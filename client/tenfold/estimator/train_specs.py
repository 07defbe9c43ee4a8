"""`tf.estimator.TrainSpec` and `EvalSpec`: the arguments of train_and_evaluate, checked.

Follows TF 1.15's estimator/training.py, with its error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.estimator.exporter import Exporter
from tenfold.train.session_run_hook import SessionRunHook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NOT_EXPORTERS = "`exporters` must be an Exporter, an iterable of Exporter, or `None`, found {}."


class _TrainSpec(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[SessionRunHook, ...]


class TrainSpec(_TrainSpec):
    """What to train on, until which global step (None: for ever), and with which hooks on all workers.

    Raises TypeError for an input function that cannot be called and for something that is not a hook, ValueError for
    `max_steps` below 1. As TensorFlow 1.15's `tf.estimator.TrainSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
    ) -> TrainSpec:
        _validate_input_fn(input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, validate_hooks(hooks))


class _EvalSpec(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[SessionRunHook, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalSpec):
    """What to evaluate on: `steps` batches (None: all) with each new checkpoint, and what to export then.

    An evaluator waits `start_delay_secs` before the first evaluation, and `throttle_secs` between the starts of two.
    Raises TypeError and ValueError for arguments that make no sense. As TensorFlow 1.15's `tf.estimator.EvalSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        exporters: Exporter | Iterable[Exporter] | None = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> EvalSpec:
        _validate_input_fn(input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"`name` must be string, given: {name}")
        checked_hooks, checked_exporters = validate_hooks(hooks), _validate_exporters(exporters)
        for each, secs in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if secs < 0:
                raise ValueError(f"Must specify {each} >= 0, given: {secs}")
        return super().__new__(
            cls, input_fn, steps, name, checked_hooks, checked_exporters, start_delay_secs, throttle_secs
        )


def validate_hooks(hooks: Iterable[Any] | None) -> tuple[SessionRunHook, ...]:
    """The hooks as a tuple. Raises TypeError for something that is not a hook."""
    given = tuple(hooks or ())
    for hook in given:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be `SessionRunHook` instances, given: {hook}")
    return given


def assert_eval_spec(eval_spec: Any) -> None:
    """Raises TypeError for what is no EvalSpec."""
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(f"`eval_spec` must have type `tf.estimator.EvalSpec`. Got: {type(eval_spec)}")


def _validate_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"`input_fn` must be callable, given: {input_fn}")


def _validate_exporters(exporters: Any) -> tuple[Exporter, ...]:
    """The exporters as a tuple. Raises TypeError for anything else, ValueError for names that are not usable."""
    if not exporters:
        return ()
    try:
        given = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters)
    except TypeError:
        raise TypeError(_NOT_EXPORTERS.format(exporters)) from None
    if not all(isinstance(each, Exporter) for each in given):
        raise TypeError(_NOT_EXPORTERS.format(exporters))
    names = [each.name for each in given]
    for number, name in enumerate(names):
        if not name:
            raise ValueError(f"An Exporter cannot have a name that is `None` or empty. All exporter names: {names}")
        if not isinstance(name, str):
            raise ValueError(f"An Exporter must have a string name. Given: {type(name)}")
        if name in names[:number]:
            raise ValueError(
                f"`exporters` must have unique names. Such a name cannot be `None`. All exporter names: {names}"
            )
    return given
