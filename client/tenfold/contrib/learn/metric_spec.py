"""`tf.contrib.learn.MetricSpec`: a metric function, and which prediction, label and weight it gets.

Follows TensorFlow 1.15's `contrib/learn/python/learn/metric_spec.py`.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from tenfold import logging

#: What a metric function may call its arguments, the usual name first.
_LABELS = ("labels", "label", "targets", "target")
_PREDICTIONS = ("predictions", "prediction", "logits", "logit")
_WEIGHTS = ("weights", "weight")


def _args(function: Any) -> tuple[str, ...]:
    if isinstance(function, partial):
        return tuple(name for name in _args(function.func) if name not in function.keywords)
    return tuple(inspect.getfullargspec(function).args)


def _name(function: Any) -> str:
    if hasattr(function, "__name__"):
        return str(function.__name__)
    return str(getattr(getattr(function, "func", None), "__name__", function))


def _matching(name: str, args: tuple[str, ...], candidates: tuple[str, ...], needed: bool = False) -> str | None:
    found = [each for each in candidates if each in args]
    if len(found) > 1:
        raise ValueError(f"Ambiguous arguments {set(found)}, must provide only one of {set(candidates)}.")
    if not found:
        if needed:
            raise ValueError(f"{set(candidates)} missing from {name}({args}).")
        return None
    if found[0] != candidates[0]:
        logging.warning("Canonical arg %s missing from %s(%s), using %s.", candidates[0], name, args, found[0])
    return found[0]


class MetricSpec:
    """A metric of one prediction and one label, picked by their keys. As TensorFlow 1.15's class of this name.

    `metric_fn(labels, predictions, weights)` gives (value, update) as functions of `tf.metrics` do; its arguments may
    be called differently. Raises ValueError for a function that does not take what a key picks.
    """

    def __init__(
        self,
        metric_fn: Any,
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self._metric_fn_name = name = _name(metric_fn)
        args = _args(metric_fn)
        self._given = metric_fn
        self._first = args[0] if args else None
        self._labels = _matching(name, args, _LABELS, label_key is not None)
        self._predictions = _matching(name, args, _PREDICTIONS)
        self._weights = _matching(name, args, _WEIGHTS, weight_key is not None)
        self._keys = prediction_key, label_key, weight_key

    @property
    def prediction_key(self) -> str | None:
        """Which of the predictions; None for the only one."""
        return self._keys[0]

    @property
    def label_key(self) -> str | None:
        """Which of the labels; None for the only one."""
        return self._keys[1]

    @property
    def weight_key(self) -> str | None:
        """Which feature has the weights; None for no weights."""
        return self._keys[2]

    def metric_fn(self, _sentinel: Any = None, labels: Any = None, predictions: Any = None, weights: Any = None) -> Any:
        """Calls the function, with its own names of arguments. Raises ValueError for arguments without a name."""
        if _sentinel is not None:
            raise ValueError("`metric_fn` requires named args: `labels`, `predictions`, and optionally `weights`.")
        named: dict[str, Any] = {}
        if weights is not None and self._weights is not None:
            named[self._weights] = weights
        if self._predictions is not None:
            named[self._predictions] = predictions
            if self._labels is not None:
                named[self._labels] = labels
            return self._given(**named)
        if self._labels is not None and self._labels != self._first:
            return self._given(predictions, **{self._labels: labels}, **named)
        if self._labels is not None:
            return self._given(labels, predictions, **named)
        return self._given(predictions, **named)

    def __str__(self) -> str:
        return (
            f"MetricSpec(metric_fn={self._metric_fn_name}, prediction_key={self.prediction_key}, "
            f"label_key={self.label_key}, weight_key={self.weight_key})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """(value, update). Raises ValueError or KeyError for a key that picks nothing, or one that is needed."""
        prediction = _picked("prediction", predictions, self.prediction_key)
        label = _picked("label", labels, self.label_key)
        weights = inputs[self.weight_key] if self.weight_key else None
        return self.metric_fn(labels=label, predictions=prediction, weights=weights)


def _picked(what: str, given: Any, key: str | None) -> Any:
    if key:
        if not isinstance(given, dict):
            raise ValueError(
                f"MetricSpec with {what}_key specified requires {what}s dict, got {given}.\nYou must not provide a "
                f"{what}_key if you only have a single Tensor as {what}s."
            )
        if key not in given:
            raise KeyError(f"Key '{key}' missing from {given.keys()}.")
        return given[key]
    if not isinstance(given, dict):
        return given
    if len(given) != 1:
        raise ValueError(
            f"MetricSpec without specified {what}_key requires {what}s tensor or single element dict, got {given}"
        )
    return next(iter(given.values()))
