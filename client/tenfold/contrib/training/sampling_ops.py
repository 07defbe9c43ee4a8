"""Batches of examples that are accepted with a probability, or so that classes have given shares.

Follows TensorFlow 1.15's contrib/training/python/training/sampling_ops.py; the queues are those of `tf.train.batch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, check_ops, math, slicing
from tenfold.ops import random as random_ops
from tenfold.ops.control_flow import Assert, Print
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.reductions import reduce_all, reduce_max, reduce_sum
from tenfold.ops.variable_scope import variable_scope
from tenfold.ops.variables import Variable
from tenfold.train.input import batch, maybe_batch
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: How far the sum of probabilities may be from 1.
_TOLERANCE = 1e-6
#: What each class counts before any example was seen.
_SMOOTHING = 10


def rejection_sample(
    tensors: Sequence[Any],
    accept_prob_fn: Callable[[list[Any]], Any],
    batch_size: int,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: str | None = None,
) -> list[Any]:
    """Batches of the examples, each kept with the probability that `accept_prob_fn` gives for it.

    `runtime_checks` makes a step fail for a probability out of [0, 1].
    """
    with variable_scope(name, "rejection_sample", tensors):
        parts = [convert_to_tensor(each) for each in tensors]
        if enqueue_many:
            parts = _single(parts, prebatch_threads, prebatch_capacity)
        probability = accept_prob_fn(parts)
        if runtime_checks:
            checks = [
                check_ops.assert_less_equal(0.0, probability),
                check_ops.assert_less_equal(probability, 1.0),
            ]
            probability = array.identity(with_dependencies(checks, probability), name="prob_with_checks")
        keep = random_ops.random_uniform([]) < probability
        made = maybe_batch(parts, keep_input=keep, batch_size=batch_size, num_threads=queue_threads)
        return [made] if isinstance(made, Tensor) else list(made)


def _single(parts: list[Any], threads: int, capacity: int) -> list[Any]:
    """The rows of batches, one at a time. Raises ValueError if the batches cannot be of one size."""
    rows = parts[0].get_shape().with_rank_at_least(1)[0:1]
    for each in parts:
        each.get_shape().with_rank_at_least(1)[0:1].assert_is_compatible_with(rows)
    made = batch(parts, batch_size=1, num_threads=threads, capacity=capacity, enqueue_many=True)
    return [array.squeeze(each, [0]) for each in ([made] if isinstance(made, Tensor) else made)]


def stratified_sample(
    tensors: Sequence[Any],
    labels: Any,
    target_probs: Any,
    batch_size: int,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: str | None = None,
) -> tuple[Any, Any]:
    """(tensors, labels) in batches whose classes have the shares `target_probs`; other examples are dropped.

    `init_probs` are the classes' shares of the input; without them they are estimated as examples come. Raises
    ValueError for shapes that do not fit; a step fails for invalid probabilities and labels out of range.
    """
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        parts = [convert_to_tensor(each) for each in tensors]
        labels = convert_to_tensor(labels)
        target = convert_to_tensor(target_probs, dtype=dtypes.float32)
        if not enqueue_many:
            parts = [array.expand_dims(each, 0) for each in parts]
            labels = array.expand_dims(labels, 0)
        if init_probs is None:
            target.get_shape().assert_is_fully_defined()
            initial = _estimate_data_distribution(labels, target.get_shape().num_elements() or 0)
        else:
            initial = convert_to_tensor(init_probs, dtype=dtypes.float32)
        parts, labels, (initial, target) = _verify_input(parts, labels, [initial, target])
        possible = Assert(
            reduce_all(math.logical_or(math.not_equal(initial, 0), math.equal(target, 0))),
            ["All classes with zero initial probability must also have zero target probability: ", initial, target],
        )
        initial = with_dependencies([possible], initial)
        accept = _calculate_acceptance_probabilities(initial, target)
        rejected = reduce_sum((1 - accept) * initial)
        said = "Proportion of examples rejected by sampler is high."
        accept = cond(
            math.less(rejected, 0.5), lambda: accept, lambda: Print(accept, [accept], message=said, first_n=10)
        )
        *values, label = _single([*parts, labels], threads_per_queue, queue_capacity)
        keep = random_ops.random_uniform([]) < slicing.gather(accept, label)
        *taken, classes = maybe_batch(
            [*values, label], keep_input=keep, batch_size=batch_size, num_threads=threads_per_queue
        )
        return taken, classes


def _estimate_data_distribution(labels: Any, num_classes: int, smoothing_constant: int = _SMOOTHING) -> Any:
    """The shares of the classes among all labels so far, each class counted `smoothing_constant` times before."""
    if smoothing_constant <= 0:
        raise ValueError("smoothing_constant must be nonzero.")
    counts = Variable([smoothing_constant] * num_classes, trainable=False, name="class_count", dtype=dtypes.int64)
    seen = counts.assign_add(reduce_sum(slicing.one_hot(labels, num_classes, dtype=dtypes.int64), 0))
    # A copy: a reference would show what other steps add meanwhile.
    seen = seen + 0
    return math.cast(math.truediv(seen, reduce_sum(seen)), dtypes.float32)


def _verify_input(parts: list[Any], labels: Any, probabilities: list[Any]) -> tuple[list[Any], Any, list[Any]]:
    """The arguments, checked now as far as shapes are known, and in each step."""
    checked = []
    for each in probabilities:
        each.get_shape().assert_is_fully_defined()
        each.get_shape().assert_has_rank(1)
        total = reduce_sum(each)
        checks = [
            check_ops.assert_non_negative(each),
            check_ops.assert_less(total, 1.0 + _TOLERANCE),
            check_ops.assert_less(1.0 - _TOLERANCE, total),
        ]
        checked.append(with_dependencies(checks, each))
    lengths = {each.get_shape().num_elements() for each in checked}
    if len(lengths) != 1:
        raise ValueError("Probability parameters must have the same length.")
    labels.get_shape().assert_has_rank(1)
    for each in parts:
        each.get_shape().with_rank_at_least(1)[0:1].assert_is_compatible_with(labels.get_shape())
    rows = array.shape(labels)[0]
    some = check_ops.assert_positive(rows)
    labels = with_dependencies([some], labels)
    parts = [with_dependencies([some, check_ops.assert_equal(array.shape(each)[0], rows)], each) for each in parts]
    of_labels = [
        check_ops.assert_integer(labels),
        check_ops.assert_non_negative(labels),
        check_ops.assert_less(labels, math.cast(lengths.pop(), labels.dtype)),
    ]
    return parts, with_dependencies(of_labels, labels), checked


def _calculate_acceptance_probabilities(initial: Any, target: Any) -> Any:
    """As large as they can be so that accepted examples have the shares `target`; 0 for a class that never comes."""
    ratio = target / initial
    ratio = slicing.where_v2(math.is_nan(ratio), array.zeros_like(ratio), ratio)
    return ratio / reduce_max(ratio)
