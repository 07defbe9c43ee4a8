"""`tf.data.experimental`: transformations and questions of one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import mapping, transforms
from tenfold.data.dataset import Dataset
from tenfold.data.experimental.scanning import scan
from tenfold.data.node import DatasetNode
from tenfold.data.options import Options
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold_core import dtypes
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

    Transformation = Callable[[Any], Dataset]

#: What `cardinality` gives for a dataset without end, and for one whose length is not known.
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """The numbers `start`, `start + step`, … without end."""
    with name_scope("counter"):
        first = convert_to_tensor(start, dtype=dtype, name="start")
        by = convert_to_tensor(step, dtype=dtype, name="step")
        return Dataset.from_tensors(0).repeat(None).apply(scan(first, lambda state, _: (state + by, state)))


def cardinality(dataset: DatasetNode) -> Tensor:
    """The number of elements, an int64: INFINITE_CARDINALITY or UNKNOWN_CARDINALITY where there is no number."""
    found: Tensor = transforms.cardinality(dataset)
    return found


def enumerate_dataset(start: Any = 0) -> Transformation:
    """`Dataset.enumerate`. Deprecated."""
    return lambda dataset: dataset.enumerate(start)


def ignore_errors() -> Transformation:
    """The elements that could be made: one whose making fails is left away."""
    return lambda dataset: Dataset(transforms.ignoring_errors(dataset))


def unique() -> Transformation:
    """Each element once. Raises TypeError for other elements than single int32, int64 or string tensors."""
    return lambda dataset: Dataset(transforms.unique(dataset))


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first for which `predicate` is false."""
    return lambda dataset: Dataset(mapping.taken_while(dataset, predicate))


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """`shuffle`, then `repeat`, by one operation. Deprecated: the two by themselves."""
    return lambda dataset: Dataset(transforms.shuffled_and_repeated(dataset, buffer_size, count, seed))


def get_single_element(dataset: DatasetNode) -> Any:
    """The element of a dataset that has exactly one, as tensors. Raises TypeError for anything but a dataset."""
    if not isinstance(dataset, DatasetNode):
        raise TypeError("`dataset` must be a `tf.data.Dataset` object.")
    return transforms.single_element(dataset)


def latency_stats(tag: Any) -> Transformation:
    """Sends how long each element took to the pipeline's StatsAggregator."""
    return lambda dataset: Dataset(transforms.with_figures("LatencyStatsDataset", dataset, tag))


def bytes_produced_stats(tag: Any) -> Transformation:
    """Sends how large each element is to the pipeline's StatsAggregator."""
    return lambda dataset: Dataset(transforms.with_figures("BytesProducedStatsDataset", dataset, tag))


def from_variant(variant: Tensor, structure: Any) -> Dataset:
    """The dataset that a tensor holds, whose elements are of `structure`."""
    return Dataset(DatasetNode(variant, structure))


def to_variant(dataset: DatasetNode) -> Tensor:
    """The tensor that holds a dataset."""
    return dataset._variant_tensor


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """The elements for consumers on `target_device`.

    A task's devices share its memory here, and what a step needs elsewhere it sends; so this only checks the names and
    takes the options that TensorFlow takes. Raises ValueError for what names no device.
    """
    for each in (target_device, source_device):
        DeviceSpec.from_string(each)
    options = Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.autotune = False
    return lambda dataset: Dataset(transforms.with_options(dataset, options))


def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """`copy_to_device`, and a prefetch of `buffer_size` elements behind it."""
    return lambda dataset: dataset.apply(copy_to_device(device)).prefetch(buffer_size)
