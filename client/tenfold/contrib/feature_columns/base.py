"""What the old feature columns share: the text by which they are ordered, and what a linear model makes of their ids.

Classes have TensorFlow's private names and fields, because the order of a model's inputs, and so its checkpoints, goes
by the text of its columns. Follows TensorFlow 1.15's `contrib/layers/python/layers/feature_column.py`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.feature_column.base import FeatureColumn, Features

if TYPE_CHECKING:
    from collections.abc import Sequence


class WideLookup(NamedTuple):
    """How a linear model sums over a column: ids, their weights if any, the number of ids, and how they combine."""

    ids: Any
    weights: Any
    size: int
    combiner: str


class OldColumn(FeatureColumn):
    """A column of `tf.contrib.layers`."""

    #: Fields that the text of the column leaves out.
    _unnamed: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The text by which columns are ordered; two columns of a model must not have the same."""
        if not self._unnamed:
            return repr(self)
        shown = [each.name for each in fields(self) if each.name not in self._unnamed]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in shown)})"

    @property
    def config(self) -> dict[str, Any]:
        """The features that the column needs, for `tf.parse_example`."""
        return self.parse_example_spec

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        """The checkpoint and the tensor in it that the weights begin with."""
        return None

    def wide(self, features: Features) -> WideLookup | None:
        """How a linear model sums over the column's ids; None for a column of numbers."""
        return None

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        """The column's input to dense layers, a tensor of `rank` dimensions. Raises ValueError if there is none."""
        raise NotImplementedError


def inner_flatten(tensor: Any, rank: int) -> Any:
    """A dense or sparse tensor with its dimensions from `rank` on made one."""
    from tenfold.graph.sparse_tensor import SparseTensor
    from tenfold.ops import array
    from tenfold.ops.sparse import sparse_reshape

    known = tensor.get_shape().ndims
    if known == rank:
        return tensor
    if isinstance(tensor, SparseTensor):
        return sparse_reshape(tensor, array.concat([tensor.dense_shape[: rank - 1], [-1]], 0))
    shape = array.shape(tensor)
    flat = array.reshape(tensor, array.concat([shape[: rank - 1], [-1]], 0))
    if known is not None:
        sizes = tensor.get_shape().as_list()
        last: int | None = 1
        for size in sizes[rank - 1 :]:
            last = None if size is None or last is None else last * size
        flat.set_shape([*sizes[: rank - 1], last])
    return flat
