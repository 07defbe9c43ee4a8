"""`tf.data.experimental`: elements of several datasets, by turns, by chance or as another dataset says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import mapping, structure, transforms
from tenfold.data.dataset import Dataset
from tenfold.data.node import DatasetNode
from tenfold.data.readers import RandomDataset
from tenfold.graph.conversion import convert_to_tensor
from tenfold.ops import array, math
from tenfold.ops.random_stateless import stateless_multinomial
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Callable[[Any], Dataset]:
    """`Dataset.interleave` with threads that read ahead; if `sloppy`, whatever is ready comes next. Deprecated."""

    def apply(dataset: DatasetNode) -> Dataset:
        return Dataset(
            mapping.parallel_interleaved(
                dataset, map_func, cycle_length, block_length, sloppy, buffer_output_elements, prefetch_input_elements
            )
        )

    return apply


def sample_from_datasets(datasets: Sequence[Dataset], weights: Any = None, seed: Any = None) -> Dataset:
    """Each element from a dataset drawn by chance: with equal `weights`, given ones, or a dataset of them.

    A dataset that has ended is passed over. Raises TypeError or ValueError for weights that do not fit.
    """
    count = len(datasets)
    seeds = None
    if isinstance(weights, DatasetNode):
        logits = mapping.mapped(weights, lambda *p: math.log(p, name="logits"))
        seeds = transforms.zipped((logits, RandomDataset(seed).batch(2)))
        selector = mapping.mapped(seeds, _drawn, use_inter_op_parallelism=False)
        return Dataset(transforms.directed(selector, list(datasets)))
    constant: Any = [[1.0] * count]
    if weights is not None:
        tensor = convert_to_tensor(weights, name="weights")
        if tensor.dtype not in (dtypes.float32, dtypes.float64):
            raise TypeError("`weights` must be convertible to a tensor of `tf.float32` or `tf.float64` elements.")
        if not tensor.shape.is_compatible_with([count]):
            raise ValueError("`weights` must be a vector of length `len(datasets)`.")
        constant = array.expand_dims(math.log(tensor, name="logits"), 0)
    if count == 1:
        return datasets[0]
    selector = mapping.mapped(
        RandomDataset(seed).batch(2), lambda pair: _drawn(constant, pair), use_inter_op_parallelism=False
    )
    return Dataset(transforms.directed(selector, list(datasets)))


def _drawn(logits: Any, seed: Any) -> Tensor:
    """The number of a dataset."""
    return array.squeeze(stateless_multinomial(logits, 1, seed=seed), axis=[0, 1])


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: DatasetNode) -> Dataset:
    """Each element from the dataset whose number is the next of `choice_dataset`, int64 scalars."""
    if not structure.are_compatible(choice_dataset.element_spec, TensorSpec([], dtypes.int64)):
        raise TypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors.")
    return Dataset(transforms.directed(choice_dataset, list(datasets)))
