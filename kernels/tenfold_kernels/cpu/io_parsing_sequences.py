"""Parsing of SequenceExamples: a context like an Example's, and feature lists, a row of values for each step.

How a feature becomes a tensor is in _examples.py. Follows example_proto_fast_parsing.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu._examples import (
    TYPES,
    WORDS,
    Column,
    DenseFeature,
    Inputs,
    Rows,
    array_of,
    attr_keys,
    columns_of,
    dense_features_of,
    empty_of,
    features_of,
    keys_of,
    outputs_in_order,
    shapes_of_attr,
    splits_of,
)
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_protos import example_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_core.dtypes import DType


class _Steps(NamedTuple):
    """A feature list in every row: the values of its steps; None where the row has none."""

    rows: list[list[Sequence[Any]] | None]


def _steps(rows: Rows, lists: Sequence[Mapping[str, Any]], key: str, dtype: DType) -> _Steps:
    found: list[list[Sequence[Any]] | None] = []
    for i, mapping in enumerate(lists):
        if key not in mapping:
            found.append(None)
            continue
        steps: list[Sequence[Any]] = []
        for t, feature in enumerate(mapping[key].feature):
            kind = feature.WhichOneof("kind")
            if kind is not None and TYPES[kind] is not dtype:
                raise invalid(
                    f"Name: {rows.name(i)}, Feature list: {key}, Index: {t}.  Data types don't match. "
                    f"Expected type: {dtype.op_name}"
                )
            steps.append(getattr(feature, kind).value if kind is not None else ())
        found.append(steps)
    return _Steps(found)


def _dense_steps(
    rows: Rows, steps: _Steps, feature: DenseFeature, may_be_missing: bool, single: bool
) -> tuple[Array, Array]:
    """[rows, steps] + shape padded with zeros, and how many steps each row has; without rows for a scalar input."""
    size = math.prod(feature.shape)
    most = max((sum(map(len, row or ())) for row in steps.rows), default=0)
    if not single and most % max(size, 1):
        raise invalid(
            f"Feature list '{feature.key}' has an unexpected number of values.  Total values size: {most} is not "
            f"consistent with output shape: {shape_text((-1, *feature.shape)).replace('-1', '?')}"
        )
    lengths = []
    for i, row in enumerate(steps.rows):
        if row is None and not may_be_missing:
            raise invalid(
                f"Name: {rows.name(i)}, Feature list '{feature.key}' is required but could not be found.  Did you mean "
                "to include it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
            )
        for t, values in enumerate(row or ()):
            if len(values) != size:
                what = f"{WORDS[feature.dtype]} values" if single else "values"
                raise invalid(
                    f"Name: {rows.name(i)}, Key: {feature.key}, Index: {t}.  Number of {what} != expected.  "
                    f"values size: {len(values)} but output shape: {shape_text(feature.shape)}"
                )
        lengths.append(len(row or ()))
    longest = max(lengths, default=0)
    out = empty_of(feature.dtype, (len(rows), longest, *feature.shape))
    for i, row in enumerate(steps.rows):
        if row:
            flat = [value for values in row for value in values]
            out[i, : lengths[i]] = array_of(flat, feature.dtype, (lengths[i], *feature.shape))
    if rows.is_batch:
        return out, np.array(lengths, np.int64)
    return out[0], np.array(lengths[0], np.int64)


def _sparse_steps(rows: Rows, steps: _Steps, dtype: DType) -> tuple[Array, Array, Array]:
    """Indices [row, step, position] (without the row for a scalar input), values and shape."""
    indices = []
    flat: list[Any] = []
    longest = widest = 0
    for i, row in enumerate(steps.rows):
        longest = max(longest, len(row or ()))
        for t, values in enumerate(row or ()):
            widest = max(widest, len(values))
            flat.extend(values)
            indices += [(i, t, j) for j in range(len(values))]
    first = 0 if rows.is_batch else 1
    shape = (len(rows), longest, widest)[first:]
    table = np.array(indices, np.int64).reshape(-1, 3)[:, first:]
    return np.ascontiguousarray(table), array_of(flat, dtype, (-1,)), np.array(shape, np.int64)


def _ragged_steps(rows: Rows, steps: _Steps, feature: Column) -> tuple[Array, Array, Array]:
    """Values, outer splits (rows into steps; none for a scalar input) and inner splits (steps into values)."""
    assert feature.splits is not None
    flat = [value for row in steps.rows for values in row or () for value in values]
    inner = splits_of((len(values) for row in steps.rows for values in row or ()), feature.splits)
    outer = splits_of((len(row or ()) for row in steps.rows), feature.splits)
    return array_of(flat, feature.dtype, (-1,)), outer if rows.is_batch else outer[:1].reshape(()), inner


@kernel("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample")
def build_parse_sequence_example(node: KernelNode) -> Compute:
    """Serialized SequenceExamples: context features as Examples have them, and feature lists with a step dimension."""
    op, attrs = node.op, node.attrs
    context_shapes, list_shapes = (
        shapes_of_attr(node, "context_dense_shapes"),
        shapes_of_attr(node, "feature_list_dense_shapes"),
    )
    context_types, list_types = attrs.get("Tcontext_dense", ()), attrs.get("feature_list_dense_types", ())
    context_sparse_types = attrs.get("context_sparse_types", ())
    list_sparse_types = attrs.get("feature_list_sparse_types", ())

    def compute(*values: Array) -> Any:
        inputs = Inputs(values)
        serialized = inputs.one()
        context_ragged: list[Column] = []
        list_ragged: list[Column] = []
        if op == "ParseSequenceExample":
            names = inputs.one()
            keys = [
                attr_keys(node, f"{where}_{kind}_keys")
                for where in ("context", "feature_list")
                for kind in ("sparse", "dense")
            ]
            missing = set(attr_keys(node, "feature_list_dense_missing_assumed_empty"))
            may_be_missing = [key in missing for key in keys[3]]
            defaults = inputs.take(len(context_types))
        elif op == "ParseSequenceExampleV2":
            names = inputs.one()
            context_sparse, context_dense, context_ragged_keys = (keys_of(inputs.one()) for _ in range(3))
            list_sparse, list_dense, list_ragged_keys = (keys_of(inputs.one()) for _ in range(3))
            keys = [context_sparse, context_dense, list_sparse, list_dense]
            may_be_missing = inputs.one().reshape(-1).tolist()
            context_ragged = columns_of(
                context_ragged_keys, attrs["context_ragged_value_types"], attrs["context_ragged_split_types"]
            )
            context_ragged = [column._replace(is_context=True) for column in context_ragged]
            list_ragged = columns_of(
                list_ragged_keys, attrs["feature_list_ragged_value_types"], attrs["feature_list_ragged_split_types"]
            )
            defaults = inputs.take(len(context_types))
        else:
            if serialized.ndim:
                raise invalid(f"Expected serialized to be a scalar, got shape: {shape_text(serialized.shape)}")
            assumed = inputs.one()
            if assumed.ndim != 1:
                raise invalid(
                    "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: "
                    f"{shape_text(assumed.shape)}"
                )
            missing = set(keys_of(assumed))
            counts = (len(context_sparse_types), len(context_types), len(list_sparse_types), len(list_types))
            keys = [inputs.keys(count) for count in counts]
            may_be_missing = [key in missing for key in keys[3]]
            defaults = inputs.take(len(context_types))
            names = inputs.one()
        rows = Rows(serialized, names, example_pb2.SequenceExample)
        outputs = features_of(
            rows,
            [proto.context.feature for proto in rows.protos],
            columns_of(keys[0], context_sparse_types),
            dense_features_of(keys[1], context_types, context_shapes, defaults),
            context_ragged,
        )
        lists = [proto.feature_lists.feature_list for proto in rows.protos]
        sparse = [
            _sparse_steps(rows, _steps(rows, lists, f.key, f.dtype), f.dtype)
            for f in columns_of(keys[2], list_sparse_types)
        ]
        no_defaults = [np.empty(0)] * len(keys[3])
        if len(may_be_missing) != len(keys[3]):
            raise invalid("Expected len(feature_list_dense_missing_assumed_empty to match Nfeature_list_dense")
        dense = [
            _dense_steps(rows, _steps(rows, lists, f.key, f.dtype), f, bool(may), op == "ParseSingleSequenceExample")
            for f, may in zip(
                dense_features_of(keys[3], list_types, list_shapes, no_defaults), may_be_missing, strict=True
            )
        ]
        ragged = [_ragged_steps(rows, _steps(rows, lists, f.key, f.dtype), f) for f in list_ragged]
        groups = [[o[part] for o in sparse] for part in range(3)] + [[o[0] for o in dense]]
        if op != "ParseSingleSequenceExample":
            groups.append([o[1] for o in dense])
        groups += [[o[part] for o in ragged] for part in range(3)]
        return outputs_in_order(outputs + [value for group in groups for value in group])

    return compute
