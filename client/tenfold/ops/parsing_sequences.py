"""Parsing `tf.train.SequenceExample`: features of the whole sequence, and lists of features by step.

parsing.py has the descriptions of features and the Examples; the kernels are kernels/cpu/io_parsing_sequences.py's.
Follows TensorFlow 1.15's ops/parsing_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import create
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array
from tenfold.ops.parsing import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["parse_sequence_example", "parse_single_sequence_example"]


class _Features(NamedTuple):
    """Features of a context or of its lists, by key and sorted: types, and of the dense ones shapes and defaults."""

    sparse: dict[str, Any]
    dense: dict[str, Any]
    shapes: dict[str, Any]
    defaults: dict[str, Any]


def _read(features: Mapping[str, Any] | None, dense_kind: type[Any]) -> _Features:
    found = _Features({}, {}, {}, {})
    for key in sorted(features or {}):
        feature = (features or {})[key]
        if not isinstance(feature, (VarLenFeature, dense_kind)):
            raise ValueError(f"Unsupported {type(feature).__name__} {feature}.")
        if feature.dtype is None:
            raise ValueError(f"Missing type for feature {key}.")
        if isinstance(feature, VarLenFeature):
            found.sparse[key] = as_dtype(feature.dtype)
            continue
        if feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}.")
        found.dense[key], found.shapes[key] = as_dtype(feature.dtype), as_shape(feature.shape)
        if feature.default_value is not None:
            found.defaults[key] = feature.default_value
    return found


def _default(context: _Features, key: str) -> Any:
    if key not in context.defaults:
        return array.constant([], context.dense[key])
    value = convert_to_tensor(context.defaults[key], dtype=context.dense[key], name=f"key_{key}")
    return array.reshape(value, context.shapes[key])


def _parsed(
    op_type: str,
    serialized: Any,
    context_features: Mapping[str, Any] | None,
    sequence_features: Mapping[str, Any] | None,
    debug_name: Any,
    keys_are_inputs: bool,
) -> tuple[dict[str, Any], dict[str, Any], list[Any], _Features]:
    if not context_features and not sequence_features:
        raise ValueError("Missing features.")
    context, lists = _read(context_features, FixedLenFeature), _read(sequence_features, FixedLenSequenceFeature)
    if lists.defaults:
        key, value = next(iter(lists.defaults.items()))
        raise ValueError(
            f"Value feature_list_dense_defaults[{key}] must be None, not {value!r}: steps are not filled in."
        )
    may_miss = [key for key in lists.dense if (sequence_features or {})[key].allow_missing]

    def keys(names: Any) -> list[Any]:
        return [array.constant(name) for name in names] if keys_are_inputs else list(names)

    op = create(
        op_type,
        None,
        {
            "serialized": convert_to_tensor(serialized, "string", name="serialized"),
            "debug_name": debug_name,
            "context_dense_defaults": [_default(context, key) for key in context.dense],
            "feature_list_dense_missing_assumed_empty": (
                array.constant(may_miss, "string") if keys_are_inputs else may_miss
            ),
            "context_sparse_keys": keys(context.sparse),
            "context_dense_keys": keys(context.dense),
            "feature_list_sparse_keys": keys(lists.sparse),
            "feature_list_dense_keys": keys(lists.dense),
            "Ncontext_sparse": len(context.sparse),
            "Ncontext_dense": len(context.dense),
            "Nfeature_list_sparse": len(lists.sparse),
            "Nfeature_list_dense": len(lists.dense),
            "context_sparse_types": list(context.sparse.values()),
            "Tcontext_dense": list(context.dense.values()),
            "context_dense_shapes": list(context.shapes.values()),
            "feature_list_sparse_types": list(lists.sparse.values()),
            "feature_list_dense_types": list(lists.dense.values()),
            "feature_list_dense_shapes": list(lists.shapes.values()),
        },
    )
    outputs = list(op.outputs)
    found_context, rest = _taken(context, outputs)
    found_lists, rest = _taken(lists, rest)
    return found_context, found_lists, rest, lists


def _taken(features: _Features, outputs: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    """The parsed features from the front of the outputs, and what is left of those."""
    count, end = len(features.sparse), 3 * len(features.sparse) + len(features.dense)
    found: dict[str, Any] = {
        key: SparseTensor(outputs[i], outputs[count + i], outputs[2 * count + i])
        for i, key in enumerate(features.sparse)
    }
    found |= dict(zip(features.dense, outputs[3 * count : end], strict=True))
    return found, outputs[end:]


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(features of the context, lists of features by step) of one serialized SequenceExample, a string scalar.

    A context takes VarLenFeature and FixedLenFeature, a list VarLenFeature and FixedLenSequenceFeature, whose first
    dimension is the steps. Raises ValueError without features or for others.
    """
    with name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]):
        debug_name = array.constant("" if example_name is None else example_name)
        context, lists, _, _ = _parsed(
            "ParseSingleSequenceExample", serialized, context_features, sequence_features, debug_name, True
        )
        return context, lists


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(context, lists, lengths) of a vector of serialized SequenceExamples; lists are filled up to the longest.

    The lengths, int64 of the batch, are those of the FixedLenSequenceFeatures. Raises as
    `parse_single_sequence_example` does.
    """
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        debug_name = array.constant([], "string") if example_names is None else example_names
        context, lists, lengths, features = _parsed(
            "ParseSequenceExample", serialized, context_features, sequence_features, debug_name, False
        )
        return context, lists, dict(zip(features.dense, lengths, strict=True))
