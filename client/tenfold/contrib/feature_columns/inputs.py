"""What is made of old feature columns: the input of dense layers, weighted sums, and specs for parsing.

Used through `tf.contrib.layers`. Variables are `<column>/weights` (ids), `<column>/weight` (numbers) and `bias_weight`.
Follows TensorFlow 1.15's `contrib/layers/python/layers/feature_column_ops.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.feature_columns.base import OldColumn, inner_flatten
from tenfold.contrib.feature_columns.dense import _EmbeddingColumn, _OneHotColumn, _RealValuedColumn, real_valued_column
from tenfold.contrib.feature_columns.raw_ids import raw_ids_of
from tenfold.feature_column.base import FeatureColumn, Features
from tenfold.graph.collections import GraphKeys
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, nn
from tenfold.ops.embedding import safe_embedding_lookup_sparse
from tenfold.ops.init_ops import zeros_initializer
from tenfold.ops.parsing import VarLenFeature, parse_example
from tenfold.ops.sparse import sparse_concat, sparse_placeholder
from tenfold.ops.variable_scope import variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Columns that give a tensor for each step of a sequence.
_OF_SEQUENCES = (_OneHotColumn, _EmbeddingColumn, _RealValuedColumn)


def check_feature_columns(feature_columns: Any) -> None:
    """Raises ValueError for a dictionary, and for two columns of one key."""
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    seen = set()
    for column in feature_columns:
        if column.key in seen:
            raise ValueError(
                f"Duplicate feature column key found for column: {column.name}. This usually means that the column is "
                "almost identical to another column, and one must be discarded."
            )
        seen.add(column.key)


def _ordered(feature_columns: Any) -> list[Any]:
    check_feature_columns(feature_columns)
    return sorted(set(feature_columns), key=lambda column: str(column.key))


def _collections(weight_collections: Sequence[str] | None) -> list[str] | None:
    return list({*weight_collections, GraphKeys.GLOBAL_VARIABLES}) if weight_collections else None


def _variable(name: str, shape: Sequence[Any], trainable: bool, collections: Any) -> Any:
    from tenfold.contrib.framework import model_variable

    return model_variable(
        name,
        shape=list(shape),
        dtype=dtypes.float32,
        initializer=zeros_initializer(),
        trainable=trainable,
        collections=collections,
    )


def _restored(column: OldColumn, variable: Any) -> None:
    if column.checkpoint is not None:
        from tenfold.train.checkpoint_utils import init_from_checkpoint

        init_from_checkpoint(column.checkpoint[0], {column.checkpoint[1]: variable})


def _given(batch: Features, column: Any, columns_to_tensors: Mapping[Any, Any]) -> Features:
    """The batch, with the ids of a column that came transformed as those of the column inside it."""
    inner = getattr(column, "sparse_id_column", None)
    if inner is None or column not in columns_to_tensors:
        return batch
    return Features({**columns_to_tensors, inner: columns_to_tensors[column]})


def _input(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None,
    trainable: bool,
    scope: Any,
    rank: int,
    default_name: str,
    cols_to_outs: Any = None,
) -> Any:
    if cols_to_outs is not None and not isinstance(cols_to_outs, dict):
        raise ValueError("cols_to_outs must be a dict unless None")
    columns = _ordered(feature_columns)
    values = list(columns_to_tensors.values())
    with variable_scope(scope, default_name=default_name, values=values):
        batch = Features(columns_to_tensors)
        outputs = []
        for column in columns:
            with variable_scope(None, default_name=column.name, values=values):
                try:
                    output = column.deep(
                        _given(batch, column, columns_to_tensors), _collections(weight_collections), trainable, rank
                    )
                except ValueError as error:
                    raise ValueError(f"Error creating input layer for column: {column.name}.\n{error}") from error
            outputs.append(output)
            if cols_to_outs is not None:
                cols_to_outs[column] = output
        return array.concat(outputs, rank - 1)


def input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: Any = None,
) -> Any:
    """The columns' tensors, concatenated in the order of their keys: [batch, sum of sizes]. Raises ValueError."""
    name = "input_from_feature_columns"
    return _input(columns_to_tensors, feature_columns, weight_collections, trainable, scope, 2, name, cols_to_outs)


def sequence_input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Any,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """The same for each step of sequences: [batch, steps, sum of sizes]. Raises ValueError for other columns."""
    for column in feature_columns:
        if not isinstance(column, _OF_SEQUENCES):
            raise ValueError(
                f"FeatureColumn type {type(column).__name__} is not currently supported for sequence data."
            )
        source: Any = getattr(column, "sparse_id_column", None)
        while source is not None:
            if type(source).__name__ in ("_BucketizedColumn", "_CrossedColumn"):
                raise ValueError(
                    f"Column {source.name} is of type {type(source).__name__}, which is not currently supported for "
                    "sequences."
                )
            source = getattr(source, "sparse_id_column", None)
    name = "sequence_input_from_feature_columns"
    return _input(columns_to_tensors, feature_columns, weight_collections, trainable, scope, 3, name)


def weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, dict[Any, list[Any]], Any]:
    """A weighted sum of the columns, [batch, num_outputs]; the variables of each column; and the bias."""
    columns = _ordered(feature_columns)
    values = list(columns_to_tensors.values())
    with variable_scope(scope, default_name="weighted_sum_from_feature_columns", values=values):
        batch = Features(columns_to_tensors)
        sums, made = [], {}
        for column in columns:
            with variable_scope(None, default_name=column.name, values=values):
                try:
                    found = column.wide(batch)
                except ValueError as error:
                    raise ValueError(f"Error creating weighted sum for column: {column.name}.\n{error}") from error
                if found is None:
                    tensor = inner_flatten(batch.get(column), 2)
                    variable = _variable("weight", [tensor.get_shape()[1], num_outputs], trainable, weight_collections)
                    total = math.matmul(tensor, variable, name="matmul")
                else:
                    raw = raw_ids_of(column)
                    if raw is None:
                        variable = _variable("weights", [found.size, num_outputs], trainable, weight_collections)
                    else:
                        zeros = zeros_initializer()
                        variable = raw.variable("weights", num_outputs, zeros, trainable, weight_collections)
                    total = safe_embedding_lookup_sparse(
                        variable, found.ids, found.weights, combiner=found.combiner, name=f"{column.name}_weights"
                    )
            sums.append(array.reshape(total, shape=(-1, num_outputs)))
            made[column] = list(variable) if hasattr(variable, "as_tensor") else [variable]
            _restored(column, variable)
        bias = _variable("bias_weight", [num_outputs], trainable, _collections(weight_collections))
        return nn.bias_add(math.add_n(sums), bias), made, bias


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, list[Any], Any]:
    """The same with one variable for all columns, which are of ids without weights. Raises NotImplementedError."""
    columns = _ordered(feature_columns)
    values = list(columns_to_tensors.values())
    with variable_scope(scope, default_name="joint_weighted_sum_from_feature_columns", values=values):
        batch = Features(columns_to_tensors)
        size, joined = 0, []
        for column in columns:
            found = column.wide(batch)
            if found is None:
                raise NotImplementedError(
                    "Real-valued columns are not supported. Use weighted_sum_from_feature_columns instead, or "
                    "bucketize these columns."
                )
            if found.weights is not None or found.combiner != "sum":
                raise ValueError(
                    f"Joint sums are of ids without weights, combined by sum, which column {column.name} is not. "
                    "Please use weighted_sum_from_feature_columns instead."
                )
            joined.append(SparseTensor(found.ids.indices, found.ids.values + size, found.ids.dense_shape))
            size += found.size
        with variable_scope(None, default_name="linear_weights", values=values):
            variable = _variable("weights", [size, num_outputs], trainable, weight_collections)
            total = safe_embedding_lookup_sparse(
                variable, sparse_concat(1, joined), None, combiner="sum", name="_weights"
            )
        bias = _variable("bias_weight", [num_outputs], trainable, _collections(weight_collections))
        parts = list(variable) if hasattr(variable, "as_tensor") else [variable]
        return nn.bias_add(total, bias), parts, bias


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """The `features` argument of `tf.parse_example` for old columns. Raises TypeError for other objects."""
    spec: dict[str, Any] = {}
    for column in feature_columns.values() if isinstance(feature_columns, dict) else feature_columns:
        if not isinstance(column, FeatureColumn):
            raise TypeError(
                f"feature_columns should only contain instances of _FeatureColumn. Given column is {column}"
            )
        spec.update(column.parse_example_spec)
    return spec


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict[Any, Any]:
    """Parses Example protos [batch]: feature → tensor, and column → transformed tensor."""
    columns = _ordered(feature_columns)
    spec = create_feature_spec_for_parsing(columns)
    tensors = parse_example(serialized=serialized, features=spec, name=name, example_names=example_names)
    batch = Features(tensors)
    return {**tensors, **{column: batch.get(column) for column in columns}}


def transform_features(features: Mapping[Any, Any], feature_columns: Any) -> dict[Any, Any]:
    """Column → transformed tensor."""
    batch = Features(features)
    return {column: batch.get(column) for column in _ordered(feature_columns)}


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """A placeholder, or a sparse one, for each feature that the columns need."""
    made: dict[str, Any] = {}
    for key, kind in create_feature_spec_for_parsing(feature_columns).items():
        name = f"Placeholder_{key}"
        if isinstance(kind, VarLenFeature):
            made[key] = sparse_placeholder(kind.dtype, name=name)
        else:
            made[key] = array.placeholder(kind.dtype, shape=(None, kind.shape[0]), name=name)
    return made


def infer_real_valued_columns(features: Any) -> list[_RealValuedColumn]:
    """A real-valued column for each feature, or for the only tensor. Raises ValueError for what is not numbers."""
    named: Iterable[tuple[str, Any]] = features.items() if isinstance(features, dict) else [("", features)]
    return [_inferred(name, tensor) for name, tensor in named]


def _inferred(name: str, tensor: Any) -> _RealValuedColumn:
    if isinstance(tensor, SparseTensor):
        raise ValueError(
            "SparseTensor is not supported for auto detection. Please define corresponding FeatureColumn for tensor "
            f"{name} {tensor}."
        )
    if not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        raise ValueError(
            "Non integer or non floating types are not supported for auto detection. Please define corresponding "
            f"FeatureColumn for tensor {name} {tensor}."
        )
    dimension = 1
    for size in tensor.get_shape().as_list()[1:]:
        dimension *= size
    return real_valued_column(name, dimension=dimension, dtype=tensor.dtype)
