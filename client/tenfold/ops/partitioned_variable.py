"""PartitionedVariable: one large variable stored as several parts, usually on several tasks.

Made by variable_store.py when `tf.get_variable` has a partitioner. The arithmetic of the parts is here too: their
number, their offsets, and the PartitionInfo for initializers. Follows TF 1.15's ops/variables.py and variable_scope.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import register_tensor_conversion_function
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.ops import array
from tenfold.ops.slicing import split

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor
    from tenfold.ops.variables import Variable
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class PartitionInfo:
    """The part of the whole variable that an initializer makes. Raises ValueError for an offset outside of it."""

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        for what, value in (("full_shape", full_shape), ("var_offset", var_offset)):
            if not isinstance(value, Sequence) or isinstance(value, str):
                raise TypeError(f"`{what}` must be a sequence (like tuple or list) instead of {type(value).__name__}")
        if len(var_offset) != len(full_shape):
            raise ValueError(
                f"Expected equal length, but `var_offset` is of length {len(var_offset)} while full_shape is of "
                f"length {len(full_shape)}."
            )
        for offset, size in zip(var_offset, full_shape, strict=True):
            if not 0 <= offset < size:
                raise ValueError(
                    f"Expected 0 <= offset < shape but found offset={offset}, shape={size} for "
                    f"var_offset={var_offset}, full_shape={full_shape}"
                )
        self.full_shape, self.var_offset = full_shape, var_offset

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The one dimension in which a part of `shape` is smaller than the whole; None if in none."""
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise TypeError(f"`shape` must be a sequence (like tuple or list) instead of {type(shape).__name__}")
        if len(shape) != len(self.full_shape):
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length {len(shape)} while "
                f"self.full_shape={self.full_shape} is of length {len(self.full_shape)}."
            )
        for i, (offset, size, full) in enumerate(zip(self.var_offset, shape, self.full_shape, strict=True)):
            if offset + size > full:
                raise ValueError(
                    f"With self.var_offset={self.var_offset}, a partition of shape={shape} would exceed "
                    f"self.full_shape={self.full_shape} in dimension {i}."
                )
        cut = [i for i, size in enumerate(shape) if size != self.full_shape[i]]
        if len(cut) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape={shape} and self.full_shape={self.full_shape} since slice "
                f"dim could be either dimension {cut[0]} or {cut[1]}."
            )
        return cut[0] if cut else None

    def single_offset(self, shape: Sequence[int]) -> int:
        """Where a part of `shape` begins in that dimension."""
        dimension = self.single_slice_dim(shape)
        return 0 if dimension is None else self.var_offset[dimension]


def call_partitioner(partitioner: Callable[..., Any], shape: TensorShape, dtype: DType) -> list[int]:
    """The number of parts in each dimension. Raises ValueError unless they split one dimension of a known shape."""
    if not shape.is_fully_defined():
        raise ValueError(f"Shape of a new partitioned variable must be fully defined, but instead was {shape}.")
    if not shape.ndims:
        raise ValueError(f"A partitioned Variable must have rank at least 1, shape: {shape}")
    slicing = partitioner(shape=shape, dtype=dtype)
    if not isinstance(slicing, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {slicing}")
    if len(slicing) != shape.ndims:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {slicing} vs. {shape}"
        )
    if any(count < 1 for count in slicing):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {slicing}")
    if sum(count > 1 for count in slicing) > 1:
        raise ValueError(f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {slicing}")
    return list(slicing)


def parts_of(full_shape: Sequence[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """(offset, shape) of each part, in order; the first ones get the remainder."""
    dimension = next((i for i, count in enumerate(partitions) if count > 1), 0)
    count = partitions[dimension]
    size, excess = divmod(full_shape[dimension], count)
    offset = 0
    for i in range(count):
        length = size + (i < excess)
        where = [offset if d == dimension else 0 for d in range(len(full_shape))]
        yield where, [length if d == dimension else full for d, full in enumerate(full_shape)]
        offset += length


class PartitionedVariable:
    """A sequence of variables that hold consecutive slices of one tensor; converts to that tensor.

    Raises TypeError or ValueError for parts without slice information, or of different variables.
    """

    def __init__(
        self, name: str, shape: Any, dtype: DType, variable_list: Sequence[Any], partitions: Sequence[int]
    ) -> None:
        if not isinstance(variable_list, (list, tuple)):
            raise TypeError(f"variable_list is not a list or tuple: {variable_list}")
        if not isinstance(partitions, (list, tuple)):
            raise TypeError(f"partitions is not a list or tuple: {partitions}")
        if not all(count >= 1 for count in partitions):
            raise ValueError(f"partition values must be positive: {partitions}")
        if not variable_list:
            raise ValueError("variable_list may not be empty")
        infos = [part._get_save_slice_info() for part in variable_list]
        if any(info is None for info in infos):
            raise ValueError(
                f"All variables must have a save_slice_info available: {[part.name for part in variable_list]}"
            )
        if len(shape) != len(partitions):
            raise ValueError(f"len(shape) != len(partitions): {shape} vs. {partitions}")
        for info in infos:
            if info.full_shape != shape:
                raise ValueError(
                    f"All variables' full shapes must match shape: {shape}; but full shapes were: {[info.full_shape]}"
                )
        self._variable_list: list[Variable] = sorted(variable_list, key=lambda v: v._get_save_slice_info().var_offset)
        self._name, self._shape, self._dtype, self._partitions = name, shape, dtype, partitions

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        axes = self._partition_axes()
        if len(axes) > 1:
            raise ValueError(f"Cannot get a length for {len(axes)} > 1 partition axes")
        return len(self._variable_list)

    @property
    def name(self) -> str:
        """The name of the whole, without `/part_0`."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._dtype

    @property
    def shape(self) -> Any:
        """The shape of the whole."""
        return self._shape

    def get_shape(self) -> Any:
        """The shape of the whole."""
        return self._shape

    def _get_variable_list(self) -> list[Variable]:
        return self._variable_list

    def _get_partitions(self) -> Sequence[int]:
        return self._partitions

    def _partition_axes(self) -> list[int]:
        return [i for i, count in enumerate(self._partitions) if count > 1] or [0]

    def _single_axis(self, what: str) -> int:
        axes = self._partition_axes()
        if len(axes) > 1:
            raise NotImplementedError(f"Cannot {what} along more than one dimension: {axes}.")
        return axes[0]

    def as_tensor(self) -> Tensor:
        """The whole: the parts, joined in every step that uses it."""
        with control_dependencies(None):
            return self._concat()

    def _concat(self) -> Tensor:
        """`as_tensor`, subject to the control dependencies here."""
        if len(self._variable_list) == 1:
            with name_scope(None):
                return array.identity(self._variable_list[0], name=self._name)
        axis = self._single_axis("concatenate")
        with name_scope(self._name + "/ConcatPartitions/"):
            joined = array.concat(self._variable_list, axis)
        with name_scope(None):
            return array.identity(joined, name=self._name)

    def _assigned(self, method: str, value: Any, read_value: bool, **arguments: Any) -> list[Any]:
        axis = self._single_axis("do assign action")
        if isinstance(value, list):
            values = value
        elif isinstance(value, PartitionedVariable):
            values = list(value)
        else:
            values = split(value, [part.shape.as_list()[axis] for part in self._variable_list], axis=axis)
        if len(values) != len(self._variable_list):
            raise ValueError(f"{self._name} has {len(self._variable_list)} parts, but {len(values)} values were given")
        results = [
            getattr(part, method)(each, read_value=read_value, **arguments)
            for part, each in zip(self._variable_list, values, strict=True)
        ]
        return results

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Assigns to each part its share of `value` (a tensor, a list of parts, a PartitionedVariable)."""
        return self._assigned("assign", value, read_value, use_locking=use_locking, name=name)

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Adds to each part its share of `value`."""
        return self._assigned("assign_add", value, read_value, use_locking=use_locking, name=name)

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> list[Any]:
        """Subtracts from each part its share of `value`."""
        return self._assigned("assign_sub", value, read_value, use_locking=use_locking, name=name)


def _to_tensor(value: PartitionedVariable, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type '{value.dtype.name}'"
        )
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    return value.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _to_tensor)
