"""What the model functions of canned estimators share: checked features, partitioners, summaries of layers.

Called by linear.py, dnn.py and dnn_linear_combined.py.
"""

from __future__ import annotations

from typing import Any

from tenfold import nest, summary
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, nn
from tenfold.ops.partitioned_variables import min_max_variable_partitioner
from tenfold_core import dtypes

#: Smaller inputs of a model are not split over parameter servers.
_INPUT_SLICE_BYTES = 64 << 20


def check_features(features: Any) -> None:
    """Raises ValueError unless a dictionary."""
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")


def partitioner_of(config: Any) -> Any:
    """Splits large variables over the parameter servers of a RunConfig."""
    return min_max_variable_partitioner(max_partitions=config.num_ps_replicas if config else 0)


def input_partitioner_of(config: Any) -> Any:
    """As `partitioner_of`, for the weights of a model's input, which are split only into large parts."""
    return min_max_variable_partitioner(
        max_partitions=config.num_ps_replicas if config else 0, min_slice_size=_INPUT_SLICE_BYTES
    )


def summarize_layer(value: Any, tag: str) -> None:
    """The fraction of zeros in a layer's output, and its histogram."""
    summary.scalar(f"{tag}/fraction_of_zero_values", nn.zero_fraction(value))
    summary.histogram(f"{tag}/activation", value)


def fraction_of_zeros(variables: Any) -> Any:
    """The fraction of zeros in all variables, NaN if they have no element."""
    with name_scope("zero_fraction"):
        flat = nest.flatten(variables)
        sizes = [array.size(each, out_type=dtypes.int64) for each in flat]
        zeros = [math.count_nonzero(math.equal(each, 0), dtype=dtypes.int64) for each in flat]
        total = math.cast(math.add_n(sizes), dtypes.float32, name="float32_size")
        return array.identity(math.cast(math.add_n(zeros), dtypes.float32) / total, name="zero_fraction_or_nan")
