"""Variables of which an id has several pieces: two small tables by hashes, or blocks of an embedding variable.

`tf.get_multihash_variable` and `tf.get_dynamic_dimension_embedding_variable` make them, and `tf.nn.embedding_lookup`
(embedding.py) looks ids up in them. Their tables are variables like others: trained, placed and saved as such. Follows
DeepRec's ops/kv_variable_ops.py and embedding_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, slicing
from tenfold.ops import math as m
from tenfold.ops.embedding_variables import get_embedding_variable
from tenfold.ops.variable_scope import get_variable
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType

_STRATEGIES, _OPERATIONS = ("Q-R",), ("add", "mul", "concat")


class MultiHashVariable:
    """Two tables of shapes `dims`: id i has row `i // dims[0][0]` of the first and row `i % dims[1][0]` of the second,
    which `operation` makes one."""

    def __init__(self, name: str, tables: Sequence[Any], dims: Sequence[Sequence[int]], operation: str) -> None:
        self.name, self.val_list, self.dims, self.operation = name, list(tables), dims, operation

    @property
    def dtype(self) -> DType:
        """That of the tables."""
        found: DType = self.val_list[0].dtype
        return found

    def rows_of(self, ids: Any, look_up: Callable[[Any, Any], Tensor]) -> Tensor:
        """[*ids.shape, width]; `look_up(table, ids)` gives rows of one table."""
        ids = convert_to_tensor(ids, name="ids")
        quotients = look_up(self.val_list[0], ids // self.dims[0][0])
        remainders = look_up(self.val_list[1], ids % self.dims[1][0])
        if self.operation == "concat":
            return array.concat([quotients, remainders], -1)
        joined: Tensor = quotients + remainders if self.operation == "add" else quotients * remainders
        return joined


def check_multihash(dims: Sequence[Any], complementary_strategy: str, operation: str) -> None:
    """Raises ValueError unless there are two tables, and a strategy and an operation that there are."""
    if complementary_strategy not in _STRATEGIES:
        raise ValueError(f"complementary_strategy must be 'Q-R', not {complementary_strategy!r}")
    if operation not in _OPERATIONS:
        raise ValueError(f"operation must be one of {', '.join(map(repr, _OPERATIONS))}, not {operation!r}")
    if len(dims) != 2:
        raise ValueError(f"Quotient and remainder need two tables, but dims has {len(dims)}: {dims}")


def get_multihash_variable(
    name: str,
    dims: Sequence[Sequence[int]],
    num_of_partitions: int = 2,
    complementary_strategy: str = "Q-R",
    operation: str = "add",
    **arguments: Any,
) -> MultiHashVariable:
    """The two variables `name/multihash_0` and `name/multihash_1` of shapes `dims`, [rows, width] each, made or shared
    as by `tf.get_variable`, which has the other arguments, too.

    `operation` makes one row of the two: "add" and "mul" need one width, "concat" joins them. All ids below
    `dims[0][0]` ² have a pair of rows. Raises ValueError for other strategies, operations, numbers of tables or widths.
    """
    check_multihash(dims, complementary_strategy, operation)
    if num_of_partitions != 2:
        raise ValueError(f"num_of_partitions must be 2 with the strategy Q-R, not {num_of_partitions}")
    if any(len(shape) != 2 for shape in dims):
        raise ValueError(f"dims must be two shapes [rows, width], not {dims}")
    if operation != "concat" and dims[0][1] != dims[1][1]:
        raise ValueError(f"To {operation} rows they must be of one width, not {dims[0][1]} and {dims[1][1]}")
    tables = [get_variable(f"{name}/multihash_{i}", shape=list(dims[i]), **arguments) for i in range(2)]
    return MultiHashVariable(name, tables, dims, operation)


class DynamicEmbeddingVariable:
    """Embedding variables, a block each: an id has as many of them as `blocknums` of its lookup says, and zeros after
    them, so rare ids take less room."""

    def __init__(self, name: str, blocks: Sequence[Any], block_dimension: int) -> None:
        self.name, self.blocks, self._dimension = name, list(blocks), block_dimension

    @property
    def dtype(self) -> DType:
        """That of the blocks."""
        found: DType = self.blocks[0].dtype
        return found

    @property
    def shape(self) -> TensorShape:
        """[elements of a row with all blocks]"""
        return TensorShape([self._dimension * len(self.blocks)])

    def blocknum(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    def mainev(self) -> Any:
        """The embedding variable with the first block, which every id has that was looked up."""
        return self.blocks[0]

    def rows_of(self, ids: Any, blocknums: Any, look_up: Callable[[Any, Any], Tensor]) -> Tensor:
        """[*ids.shape, width]; `look_up(block, ids)` gives rows of one block. Raises ValueError without `blocknums`."""
        if blocknums is None:
            raise ValueError(f"A lookup in {self.name} needs blocknums: how many blocks each id has")
        ids = convert_to_tensor(ids, name="ids")
        flat = array.reshape(ids, [-1])
        counts = m.cast(array.reshape(convert_to_tensor(blocknums, name="blocknums"), [-1]), dtypes.int32)
        size = array.size(flat)
        parts = []
        for i, block in enumerate(self.blocks):
            places = slicing.where(m.greater(counts, i))
            rows = look_up(block, slicing.gather(flat, array.reshape(places, [-1])))
            shape = array.stack([size, self._dimension])
            parts.append(tensor_op("ScatterNd", indices=m.cast(places, dtypes.int32), updates=rows, shape=shape))
        joined = array.concat(parts, 1)
        found = array.reshape(joined, array.concat([array.shape(ids), self.shape.as_list()], 0))
        found.set_shape(ids.get_shape().concatenate(self.shape))
        return found


def get_dynamic_dimension_embedding_variable(
    name: str, embedding_block_dimension: int, embedding_block_num: int, **arguments: Any
) -> DynamicEmbeddingVariable:
    """Embedding variables `name/block0`, `name/block1`, … of `embedding_block_dimension` elements a row, for lookups
    with `blocknums`; the other arguments are those of `tf.get_embedding_variable`. Raises ValueError for less than one
    block."""
    dimension, count = int(embedding_block_dimension), int(embedding_block_num)
    if dimension < 1 or count < 1:
        raise ValueError(f"{name} needs at least one block of one element, not {count} of {dimension}")
    blocks = [get_embedding_variable(f"{name}/block{i}", dimension, **arguments) for i in range(count)]
    return DynamicEmbeddingVariable(name, blocks, dimension)
