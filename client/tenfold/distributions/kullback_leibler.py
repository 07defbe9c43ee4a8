"""Kullback-Leibler divergences: `tf.distributions.kl_divergence`, and the table that `RegisterKL` fills.

Each distribution's module registers those of its own. Follows TensorFlow 1.15's
python/ops/distributions/kullback_leibler.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable

#: (type, type) → the function of both distributions and a name.
_DIVERGENCES: dict[tuple[type, type], Callable[..., Any]] = {}


def _registered_kl(type_a: type, type_b: type) -> Callable[..., Any] | None:
    """The function for the nearest base classes of both; None if there is none."""
    found = [
        (steps_a + steps_b, steps_a, _DIVERGENCES[base_a, base_b])
        for steps_a, base_a in enumerate(type_a.__mro__)
        for steps_b, base_b in enumerate(type_b.__mro__)
        if (base_a, base_b) in _DIVERGENCES
    ]
    return min(found, key=lambda each: each[:2])[2] if found else None


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """KL(a || b), of the broadcast batch shape. Raises NotImplementedError if none is registered for the types.

    Without `allow_nan_stats` a step in which it is NaN raises InvalidArgumentError.
    """
    function = _registered_kl(type(distribution_a), type(distribution_b))
    if function is None:
        raise NotImplementedError(
            f"No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type {type(distribution_b).__name__}"
        )
    with tf.name_scope("KullbackLeibler"):
        found = function(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return found
        found = tf.identity(found, name="kl")
        message = (
            f"KL calculation between {distribution_a.name} and {distribution_b.name} returned NaN values (and was "
            "called with allow_nan_stats=False). Values:"
        )
        defined = tf.logical_not(tf.reduce_any(tf.is_nan(found)))
        with tf.control_dependencies([tf.Assert(defined, [message, found])]):
            return tf.identity(found, name="checked_kl")


def cross_entropy(ref: Any, other: Any, allow_nan_stats: bool = True, name: str | None = None) -> Any:
    """The entropy of `ref` plus its divergence from `other`."""
    with tf.name_scope(name, "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)


class RegisterKL:
    """Decorates a function (a, b, name=None) as the divergence of two classes."""

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Any) -> Any:
        """The function. Raises TypeError for none, ValueError for classes that have one."""
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _DIVERGENCES:
            first, second = (each.__name__ for each in self._key)
            raise ValueError(f"KL({first} || {second}) has already been registered to: {_DIVERGENCES[self._key]}")
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn
