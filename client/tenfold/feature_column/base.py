"""The base classes of feature columns, and the cache through which columns read a batch's features.

A column describes how one or more features become numbers: dense ones (`DenseColumn`), or ids with weights
(`CategoricalColumn`). Columns are values: equal columns are transformed once per batch. model.py makes layers of
columns; numeric.py, categorical.py, crossed.py and embedding.py have the kinds. Follows TF 1.15's feature_column_v2.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.ops import array, check_ops, math, slicing
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.sparse import sparse_reshape
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class FeatureColumn:
    """One column. `name` is unique in a model; `parse_example_spec` is for `tf.io.parse_example`."""

    def __lt__(self, other: object) -> bool:
        """By what they look like, also among strings, as keys of one dictionary are put in order."""
        return str(self) < str(other)

    def __gt__(self, other: object) -> bool:
        return str(self) > str(other)

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def var_scope_name(self) -> str:
        """The variable scope of the column, inside the layer's."""
        return self.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        raise NotImplementedError

    def transform(self, features: Features) -> Any:
        """The transformed feature. Call `features.get(column)` instead, which caches the result."""
        raise NotImplementedError


class IdWeightPair(NamedTuple):
    """Ids of a batch, and their weights if they have any."""

    id_tensor: SparseTensor
    weight_tensor: SparseTensor | None


class CategoricalColumn(FeatureColumn):
    """Gives ids below `num_buckets`."""

    @property
    def num_buckets(self) -> int:
        raise NotImplementedError

    def sparse_tensors(self, features: Features) -> IdWeightPair:
        """The ids of a batch, [batch, any number]."""
        return IdWeightPair(features.get(self), None)

    # TensorFlow's names, which models with an input layer of their own use

    @property
    def _num_buckets(self) -> int:
        return self.num_buckets

    def _get_sparse_tensors(
        self, inputs: Features, weight_collections: Sequence[str] | None = None, trainable: bool | None = None
    ) -> IdWeightPair:
        return self.sparse_tensors(inputs)


class DenseColumn(FeatureColumn):
    """Gives a float32 tensor."""

    @property
    def variable_shape(self) -> TensorShape:
        """The shape for one example."""
        raise NotImplementedError

    def dense_tensor(self, features: Features, weight_collections: Sequence[str], trainable: bool) -> Tensor:
        """The tensor [batch, *variable_shape]. Adds new variables to `weight_collections`."""
        return features.get(self)  # type: ignore[no-any-return]


class StepsAndLengths(NamedTuple):
    """What a column of sequences gives: [batch, steps, *variable_shape], and the number of steps, int64 [batch]."""

    dense_tensor: Any
    sequence_length: Any


class SequenceDenseColumn(FeatureColumn):
    """Gives a float32 tensor for each step of sequences."""

    @property
    def variable_shape(self) -> TensorShape:
        """The shape for one step."""
        raise NotImplementedError

    def sequence_dense_tensor(
        self, features: Features, weight_collections: Sequence[str], trainable: bool
    ) -> StepsAndLengths:
        """The tensor and the lengths. Adds new variables to `weight_collections`."""
        raise NotImplementedError


class Features:
    """One batch's features by name or, transformed, by column, and the cached results of columns."""

    def __init__(self, features: Mapping[Any, Any], masks: Mapping[str, Tensor] | None = None) -> None:
        self._features: dict[Any, Any] = dict(features)
        self._masks = dict(masks or {})
        self._made: dict[Any, Any] = {}

    def mask(self, key: str) -> Tensor:
        """Which examples have frequent ids in the column `key` of adaptive embeddings. Raises ValueError."""
        if key not in self._masks:
            raise ValueError(
                f"The column {key} has adaptive embeddings: input_layer needs adaptive_mask_tensors[{key!r}], and has "
                f"masks for {', '.join(self._masks) or 'no column'}"
            )
        return self._masks[key]

    def get(self, key: str | FeatureColumn) -> Any:
        """A feature, of rank 2 or more, or the transformed feature of a column.

        Raises ValueError for a missing feature or one without a batch dimension, TypeError for another type of key.
        """
        if key in self._made:
            return self._made[key]
        if isinstance(key, str):
            if key not in self._features:
                raise ValueError(f"Feature {key} is not in features dictionary.")
            made = _with_columns(key, self._features[key])
        elif isinstance(key, FeatureColumn):
            # An input pipeline may have done it already.
            given = self._features.get(key)
            made = key.transform(self) if given is None else convert_to_tensor_or_sparse_tensor(given)
        else:
            raise TypeError(f'"key" must be either a "str" or "FeatureColumn". Provided: {key}')
        self._made[key] = made
        return made


def _with_columns(key: str, feature: Any) -> Any:
    """The feature; a vector becomes a matrix of one column."""
    tensor = convert_to_tensor_or_sparse_tensor(feature)

    def column() -> Any:
        if isinstance(tensor, SparseTensor):
            return sparse_reshape(tensor, [array.shape(tensor)[0], 1])
        return array.expand_dims(tensor, -1)

    rank = tensor.get_shape().ndims
    refusal = f"Feature (key: {key}) cannot have rank 0. Given: {tensor}"
    if rank == 0:
        raise ValueError(refusal)
    if rank is not None:
        return tensor if rank > 1 else column()
    with control_dependencies([check_ops.assert_positive(array.rank(tensor), message=refusal)]):
        return cond(math.equal(1, array.rank(tensor)), column, lambda: tensor)


def to_sparse(tensor: Any, ignored: Any = None) -> SparseTensor:
    """A dense tensor without its elements that are `ignored`: by default "", -1 or 0.0, by its type."""
    tensor = convert_to_tensor_or_sparse_tensor(tensor)
    if isinstance(tensor, SparseTensor):
        return tensor
    with name_scope(None, "to_sparse_input", [tensor, ignored]):
        if ignored is None:
            ignored = b"" if tensor.dtype == dtypes.string else -1 if tensor.dtype.is_integer else 0.0
        wanted = math.not_equal(tensor, convert_to_tensor(ignored, dtype=tensor.dtype))
        indices = slicing.where(wanted, name="indices")
        return SparseTensor(
            indices, slicing.gather_nd(tensor, indices, name="values"), array.shape(tensor, out_type=dtypes.int64)
        )


def check_key(key: Any) -> None:
    """Raises ValueError unless `key` is a valid feature name."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")


def check_string_or_int(dtype: DType, prefix: str) -> None:
    """Raises ValueError for a type that cannot become ids."""
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype}.")
