"""Parsing `tf.train.Example`: the description of the features, and the tensors made from them.

Follows TensorFlow 1.15's ops/parsing_ops.py; features are sorted by name, as there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import create
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array
from tenfold.ops.sparse import sparse_merge
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from collections.abc import Mapping


class VarLenFeature(NamedTuple):
    """A feature with any number of values; parsed into a SparseTensor."""

    dtype: Any


class FixedLenFeature(NamedTuple):
    """A feature of one shape; parsed into a Tensor. Required in each Example unless it has a default."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with a variable number of items of one shape, padded in a batch; an Example needs `allow_missing`."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """Two or more features, indices and values of one SparseTensor."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class _Plan(NamedTuple):
    """The features as attributes of the parse operation."""

    sparse: dict[str, Any]
    dense: dict[str, Any]
    shapes: dict[str, Any]
    defaults: dict[str, Any]
    #: SparseFeatures, which are made of parsed features.
    joined: dict[str, SparseFeature]
    #: What the caller asked for by name; the rest is only part of a SparseFeature.
    wanted: frozenset[str]


def plan_of(features: Mapping[str, Any]) -> _Plan:
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    plan = _Plan({}, {}, {}, {}, {}, frozenset(features))
    for key in sorted(features):
        feature = features[key]
        match feature:
            case VarLenFeature():
                _add_sparse(plan, key, feature.dtype)
            case SparseFeature():
                keys = feature.index_key if isinstance(feature.index_key, (list, tuple)) else [feature.index_key]
                for index_key in keys:
                    _add_sparse(plan, index_key, as_dtype("int64"))
                _add_sparse(plan, feature.value_key, feature.dtype)
                plan.joined[key] = feature
            case FixedLenFeature():
                if feature.dtype is None:
                    raise ValueError(f"Missing type for feature {key}.")
                if feature.shape is None:
                    raise ValueError(
                        f"Missing shape for feature {key}. The batch's dimension does not belong to it: [] is a scalar."
                    )
                shape = as_shape(feature.shape)
                if shape.ndims and shape.as_list()[0] is None:
                    raise ValueError(
                        f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature."
                    )
                if not shape.is_fully_defined():
                    raise ValueError(
                        f"All dimensions of shape for feature {key} need to be known but received {feature.shape}."
                    )
                plan.dense[key], plan.shapes[key] = as_dtype(feature.dtype), shape
                if feature.default_value is not None:
                    plan.defaults[key] = feature.default_value
            case FixedLenSequenceFeature():
                if not feature.allow_missing:
                    raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
                plan.dense[key] = as_dtype(feature.dtype)
                plan.shapes[key] = as_shape([None, *as_shape(feature.shape).as_list()])
                if feature.default_value is not None:
                    plan.defaults[key] = feature.default_value
            case _:
                raise ValueError(f"Invalid feature {key}:{feature}.")
    return plan


def _add_sparse(plan: _Plan, key: str, dtype: Any) -> None:
    if dtype is None:
        raise ValueError(f"Missing type for feature {key}.")
    kind = as_dtype(dtype)
    if plan.sparse.get(key, kind) != kind:
        raise ValueError(f"Conflicting type {plan.sparse[key]} vs {dtype} for feature {key}.")
    plan.sparse[key] = kind


def default_of(plan: _Plan, key: str) -> Any:
    """The default of a dense feature in the form of the operation's input: empty where there is none."""
    kind, shape = plan.dense[key], plan.shapes[key]
    value = plan.defaults.get(key)
    ragged = bool(shape.ndims) and shape.as_list()[0] is None
    if value is None:
        if ragged:
            # The padding of shorter sequences.
            return array.constant("" if kind.name == "string" else 0, kind)
        return array.constant([], kind)
    tensor = convert_to_tensor(value, dtype=kind, name="key_" + re.sub(r"[^A-Za-z0-9_.\-/]", "_", key))
    return array.reshape(tensor, [] if ragged else shape)


def _parsed(op_type: str, plan: _Plan, arguments: dict[str, Any], serialized: Any, name: str | None) -> dict[str, Any]:
    op = create(
        op_type,
        name,
        {
            "serialized": serialized,
            "dense_defaults": [default_of(plan, key) for key in plan.dense],
            "sparse_types": list(plan.sparse.values()),
            "Tdense": list(plan.dense.values()),
            "dense_shapes": list(plan.shapes.values()),
            **arguments,
        },
    )
    outputs, count = list(op.outputs), len(plan.sparse)
    result: dict[str, Any] = {
        key: SparseTensor(outputs[i], outputs[count + i], outputs[2 * count + i]) for i, key in enumerate(plan.sparse)
    }
    result |= dict(zip(plan.dense, outputs[3 * count :], strict=True))
    return joined(plan, result)


def joined(plan: _Plan, parsed: dict[str, Any]) -> dict[str, Any]:
    """The parsed features, with each SparseFeature in place of the features that it is made of."""
    if not plan.joined:
        return parsed
    result = dict(parsed)
    for key, feature in plan.joined.items():
        several = isinstance(feature.index_key, (list, tuple))
        ids = [parsed[k] for k in feature.index_key] if several else parsed[feature.index_key]
        sizes = list(feature.size) if several else feature.size
        result[key] = sparse_merge(
            ids, parsed[feature.value_key], vocab_size=sizes, already_sorted=feature.already_sorted
        )
    return {key: value for key, value in result.items() if key in plan.wanted}


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of a vector of serialized Examples, each with the batch as first dimension."""
    plan = plan_of(features)
    with name_scope(name, "ParseExample", [serialized, example_names]):
        names = array.constant([], "string") if example_names is None else example_names
        arguments = {
            "names": names,
            "sparse_keys": [array.constant(key) for key in plan.sparse],
            "dense_keys": [array.constant(key) for key in plan.dense],
            "Nsparse": len(plan.sparse),
            "Ndense": len(plan.dense),
        }
        return _parsed("ParseExample", plan, arguments, serialized, None)


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of one serialized Example."""
    plan = plan_of(features)
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        arguments = {
            "num_sparse": len(plan.sparse),
            "sparse_keys": list(plan.sparse),
            "dense_keys": list(plan.dense),
        }
        return _parsed("ParseSingleExample", plan, arguments, convert_to_tensor(serialized, "string"), None)
