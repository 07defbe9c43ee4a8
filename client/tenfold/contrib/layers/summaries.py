"""Summaries of tensors, activations and collections under the names of what they summarize.

Follows TensorFlow 1.15's contrib/layers/python/layers/summaries.py.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import math
from tenfold.ops.reductions import reduce_mean
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "summarize_activation", "summarize_activations", "summarize_biases", "summarize_collection", "summarize_tensor",
    "summarize_tensors", "summarize_variables", "summarize_weights",
]  # fmt: skip


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar summary of a scalar, a histogram of anything else; None for strings and bools."""
    if tensor.dtype.base_dtype in (dtypes.string, dtypes.bool_):
        return None
    name = tag or f"{tensor.op.name}_summary"
    return summary.scalar(name, tensor) if tensor.get_shape().ndims == 0 else summary.histogram(name, tensor)


def _share(name: str, chosen: Any) -> None:
    summary.scalar(name, reduce_mean(math.cast(chosen, dtypes.float32)))


def summarize_activation(op: Any) -> Any:
    """A histogram of the activations; of a relu also the share of zeros, of a relu6 that of sixes."""
    name = op.op.name
    if op.op.type in ("Relu", "Softplus", "Relu6"):
        given = op.op.inputs[0]
        _share(f"{name}/zeros", math.less(given, math.cast(0.0, given.dtype)))
        if op.op.type == "Relu6":
            _share(f"{name}/sixes", math.greater(given, math.cast(6.0, given.dtype)))
    return summary.histogram(f"{name}/activation", op)


def summarize_tensors(tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """One summary each."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """One summary for each tensor of a collection whose operation's name matches `name_filter`."""
    found = get_default_graph().get_collection(collection)
    return summarize_tensors(
        [each for each in found if name_filter is None or re.match(name_filter, each.op.name)], summarizer
    )


summarize_variables = functools.partial(summarize_collection, GraphKeys.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, GraphKeys.WEIGHTS)
summarize_biases = functools.partial(summarize_collection, GraphKeys.BIASES)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """One summary for each tensor of ACTIVATIONS."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
