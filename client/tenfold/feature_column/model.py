"""Layers of feature columns: their concatenated tensors, and a linear model; and the spec to parse their examples.

Used through tf.feature_column. Variables have their TensorFlow 1.15 names, so that checkpoints are compatible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.feature_column.adaptive import as_masks
from tenfold.feature_column.base import CategoricalColumn, DenseColumn, FeatureColumn, Features
from tenfold.feature_column.categorical import EmbeddingCategoricalColumn
from tenfold.feature_column.crossed import WeightedCategoricalColumn
from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, math, nn
from tenfold.ops.embedding import safe_embedding_lookup_sparse
from tenfold.ops.embedding_variables import get_embedding_variable
from tenfold.ops.init_ops import zeros_initializer
from tenfold.ops.lookup_marks import marks_lookups
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold.ops.sparse import sparse_reshape
from tenfold.ops.variable_scope import get_variable, get_variable_scope, variable_scope
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold.graph.sparse_tensor import SparseTensor
    from tenfold.graph.tensor import Tensor


@marks_lookups
def input_layer(
    features: Mapping[str, Any],
    feature_columns: Iterable[DenseColumn] | DenseColumn,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
    *,
    adaptive_mask_tensors: Mapping[str, Any] | None = None,
) -> Tensor:
    """The columns' tensors, concatenated in the order of the columns' names: [batch, sum of their sizes], float32.

    `cols_to_vars` and `cols_to_output_tensors` are filled if given. `adaptive_mask_tensors`, of DeepRec, has an int32
    vector [batch] by the key of each column with adaptive embeddings. Raises ValueError for a column that is not
    dense.
    """
    columns = normalized(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an "
                f"embedding_column or indicator_column. Given: {column}"
            )
    collections = collections_of(weight_collections)
    outputs: list[Tensor] = []
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        batch = Features(features, as_masks(adaptive_mask_tensors))
        for column in columns:
            assert isinstance(column, DenseColumn)
            with variable_scope(None, default_name=column.var_scope_name):
                output = _flat(column, column.dense_tensor(batch, collections, trainable))
                outputs.append(output)
                if cols_to_vars is not None:
                    scope = get_variable_scope().name
                    cols_to_vars[column] = get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope)
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = output
        check_batches(outputs, columns)
        return array.concat(outputs, 1)


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Iterable[FeatureColumn] | FeatureColumn,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A weighted sum of the columns and a bias: [batch, units], float32. All weights begin as zeros.

    A categorical column has a weight for each id, combined for each example by `sparse_combiner`; that of
    categorical_column_with_embedding keeps them in an embedding variable. `cols_to_vars` is filled if given; its key
    "bias" has the bias.
    """
    with variable_scope(None, "linear_model") as scope:
        model_name = _last_part(scope.name)
    columns = normalized(feature_columns)
    for column in columns:
        if not isinstance(column, (DenseColumn, CategoricalColumn)):
            raise ValueError(
                f"Items of feature_columns must be either a DenseColumn or CategoricalColumn. Given: {column}"
            )
    collections = collections_of(weight_collections)
    # Names are made unique outside of the model's scope, as in TensorFlow.
    named: list[tuple[str, FeatureColumn]] = []
    for column in columns:
        with variable_scope(None, default_name=column.var_scope_name) as scope:
            named.append((_last_part(scope.name), column))
    batch = Features(features)
    sums: list[Tensor] = []
    with variable_scope(model_name):
        for name, column in sorted(named, key=lambda each: each[0]):
            with variable_scope(name) as scope:
                weights = _weights_of(column, units, collections, trainable)
                if isinstance(column, CategoricalColumn):
                    sums.append(_sum_of_ids(column, batch, weights, sparse_combiner))
                else:
                    assert isinstance(column, DenseColumn)
                    dense = _flat(column, column.dense_tensor(batch, collections, trainable))
                    sums.append(math.matmul(dense, weights, name="weighted_sum"))
            if cols_to_vars is not None:
                # Includes the variables of the dense column itself, such as an embedding.
                cols_to_vars[column] = get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope.name)
        check_batches(sums, [column for _, column in sorted(named, key=lambda each: each[0])])
        total = math.add_n(sums, name="weighted_sum_no_bias")
        bias = _zeros("bias_weights", [units], collections, trainable)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = _parts(bias)
        return nn.bias_add(total, bias, name="weighted_sum")


def make_parse_example_spec(feature_columns: Iterable[FeatureColumn]) -> dict[str, Any]:
    """The `features` argument of `tf.io.parse_example` for these columns. Raises ValueError where columns disagree."""
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"All feature_columns must be FeatureColumn instances. Given: {column}")
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. Given {value} and {spec[key]}"
                )
            spec[key] = value
    return spec


def _weights_of(column: FeatureColumn, units: int, collections: Sequence[str], trainable: bool) -> Any:
    """Zeros for each input of a column in the weighted sum; of ids that nobody counts, an embedding variable."""
    raw = column.categorical_column if isinstance(column, WeightedCategoricalColumn) else column
    if not isinstance(raw, EmbeddingCategoricalColumn):
        return _zeros("weights", [_inputs(column), units], collections, trainable)
    return get_embedding_variable(
        "weights",
        units,
        initializer=zeros_initializer(),
        trainable=trainable,
        collections=list(collections),
        partitioner=fixed_size_partitioner(raw.partition_num) if raw.partition_num else None,
        ev_option=raw.ev_option,
    )


def _inputs(column: FeatureColumn) -> int:
    """The number of inputs of a column in the weighted sum."""
    if isinstance(column, CategoricalColumn):
        return column.num_buckets
    assert isinstance(column, DenseColumn)
    return int(column.variable_shape.num_elements() or 0)


def _sum_of_ids(column: CategoricalColumn, batch: Features, weights: Any, combiner: str) -> Tensor:
    ids, id_weights = column.sparse_tensors(batch)
    found = None if id_weights is None else _matrix(id_weights)
    return safe_embedding_lookup_sparse(weights, _matrix(ids), found, combiner=combiner, name="weighted_sum")


def _matrix(ids: SparseTensor) -> SparseTensor:
    return sparse_reshape(ids, [array.shape(ids)[0], -1])


def _flat(column: DenseColumn, tensor: Tensor) -> Tensor:
    return array.reshape(tensor, [array.shape(tensor)[0], column.variable_shape.num_elements()])


def _zeros(name: str, shape: Sequence[int], collections: Sequence[str], trainable: bool) -> Any:
    return get_variable(
        name,
        shape=shape,
        dtype=dtypes.float32,
        initializer=zeros_initializer(),
        trainable=trainable,
        collections=list(collections),
    )


def _parts(variable: Any) -> list[Any]:
    return list(variable) if hasattr(variable, "as_tensor") else [variable]


def collections_of(names: Sequence[str] | None) -> list[str]:
    """The collections of a new weight."""
    return list(dict.fromkeys((*(names or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES)))


def _last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def normalized(columns: Any) -> list[FeatureColumn]:
    """The columns sorted by name. Raises ValueError for none, for other objects, and for two of one name."""
    if isinstance(columns, FeatureColumn):
        columns = [columns]
    if isinstance(columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    by_name: dict[str, FeatureColumn] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"Items of feature_columns must be a _FeatureColumn. Given (type {type(column)}): {column}."
            )
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {column} and {by_name[column.name]}. This usually "
                "means that these columns refer to same base feature. Either one must be discarded or a duplicated but "
                "renamed item must be inserted in features dict."
            )
        by_name[column.name] = column
    if not by_name:
        raise ValueError("feature_columns must not be empty.")
    return [by_name[name] for name in sorted(by_name)]


def check_batches(tensors: Sequence[Tensor], columns: Sequence[FeatureColumn]) -> None:
    """Raises ValueError if static batch sizes differ."""
    first: tuple[str, int] | None = None
    for tensor, column in zip(tensors, columns, strict=True):
        size = None if tensor.shape.ndims is None else tensor.shape.as_list()[0]
        if size is None:
            continue
        if first is None:
            first = column.name, size
        elif size != first[1]:
            raise ValueError(
                "Batch size (first dimension) of each feature must be same. "
                f"Batch size of columns ({first[0]}, {column.name}): ({first[1]}, {size})"
            )
