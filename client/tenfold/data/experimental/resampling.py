"""`tf.data.experimental.rejection_resample`: elements left away so that classes come as often as wanted.

Some elements are taken as they are and some are filtered, in the proportion that rejects fewest. Follows TensorFlow
1.15's data/experimental/ops/resampling.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.data.dataset import Dataset
from tenfold.data.experimental.interleaving import sample_from_datasets
from tenfold.data.experimental.scanning import scan
from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.ops import array, math, random, reductions, slicing
from tenfold.ops.control_flow import Print
from tenfold.ops.control_flow_cond import cond
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

#: How many classes are seen between two estimates of how often each comes, and what each count begins with.
_ESTIMATE_BATCH, _SMOOTHING = 32, 10


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Callable[[Any], Dataset]:
    """(class, element) pairs whose classes come with the probabilities `target_dist`.

    `class_func` gives the class of an element, an int32; `initial_dist`, the probabilities as they are, is estimated if
    it is not given.
    """

    def apply(dataset: Dataset) -> Dataset:
        target = convert_to_tensor(target_dist, name="target_dist")
        classes = dataset.map(class_func)
        if initial_dist is not None:
            initial = convert_to_tensor(initial_dist, name="initial_dist")
            accepted, kept = _acceptance(initial, target)
            initial_ds = Dataset.from_tensors(initial).repeat()
            accepted_ds = Dataset.from_tensors(accepted).repeat()
            kept_ds = Dataset.from_tensors(kept).repeat()
            known = _known_proportion(initial, target)
        else:
            initial_ds = _estimated(target, classes)
            both = initial_ds.map(lambda probabilities: _acceptance(probabilities, target))
            accepted_ds, kept_ds = both.map(lambda a, _: a), both.map(lambda _, b: b)
            known = None
        filtered = _filtered(dataset, accepted_ds, initial_ds, classes, seed).prefetch(3)
        as_it_is = Dataset.zip((classes, dataset))
        if known == 1:
            return as_it_is
        if known == 0:
            return filtered
        weights = kept_ds.map(lambda probability: [(probability, 1.0 - probability)])
        return sample_from_datasets([as_it_is, filtered], weights=weights, seed=seed)

    return apply


def _known_proportion(initial: Tensor, target: Tensor) -> Any:
    """How many elements are taken as they are, if that is known before the graph runs."""
    before, wanted = known_value(initial), known_value(target)
    return None if before is None or wanted is None else np.min(wanted / before)


def _acceptance(initial: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """With which probability the filter keeps each class, and how many elements pass it by."""
    ratio = target / (initial + np.finfo(initial.dtype.as_numpy_dtype).tiny)
    most, least = reductions.reduce_max(ratio), reductions.reduce_min(ratio)
    return (ratio - least) / (most - least), least


def _filtered(dataset: Dataset, accepted: Dataset, initial: Dataset, classes: Dataset, seed: Any) -> Dataset:
    def warned(keep: Tensor, probabilities: Tensor) -> Any:
        rejected = reductions.reduce_sum((1 - keep) * probabilities)
        message = "Proportion of examples rejected by sampler is high: "
        shown = [rejected, probabilities, keep]
        return cond(
            math.less(rejected, 0.5),
            lambda: keep,
            lambda: Print(keep, shown, message=message, summarize=100, first_n=10),
        )

    accepted = Dataset.zip((accepted, initial)).map(warned)
    joined = Dataset.zip((classes, accepted, dataset)).map(
        lambda kind, keep, element: (kind, slicing.gather(keep, kind), element)
    )
    kept = joined.filter(lambda _, probability, __: random.random_uniform([], seed=seed) < probability)
    return kept.map(lambda kind, _, element: (kind, element))


def _estimated(target: Tensor, classes: Dataset) -> Dataset:
    """The probabilities of the classes as seen so far, once for each element."""
    count = target.shape[0].value or array.shape(target)[0]
    start = array.fill([count], np.int64(_SMOOTHING))

    def update(seen: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        kinds = seen.shape[0].value or array.shape(seen)[0]
        new = math.add(seen, reductions.reduce_sum(slicing.one_hot(batch, kinds, dtype=dtypes.int64), 0))
        probabilities = math.cast(math.truediv(new, reductions.reduce_sum(new)), dtypes.float32)
        return new, array.tile(array.expand_dims(probabilities, 0), [_ESTIMATE_BATCH, 1])

    return classes.batch(_ESTIMATE_BATCH).apply(scan(start, update)).unbatch()
