"""Lookup tables that steps change: MutableHashTable, and DenseHashTable in one block of memory.

A table is saved and restored by the graph's Saver, with its keys and values as two tensors, unless `checkpoint` is
false. Tables that are filled once are in lookup.py. Follows TensorFlow 1.15's ops/lookup_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops.lookup import LookupInterface
from tenfold.ops.saveable_objects import SaveableObject, SaveSpec
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


class _Changing(LookupInterface):
    """What both kinds of table share: changes, the whole content, and checkpoints."""

    _find = "lookup_table_find"

    def _beside(self) -> AbstractContextManager[Any]:
        return colocate_with(self.resource_handle)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Sets the values of the keys."""
        with name_scope(name, f"{self._name}_lookup_table_insert", [self.resource_handle, keys, values]):
            keys = convert_to_tensor(keys, self.key_dtype, name="keys")
            values = convert_to_tensor(values, self.value_dtype, name="values")
            with self._beside():
                op: Operation = apply_op(
                    "LookupTableInsertV2", None, table_handle=self.resource_handle, keys=keys, values=values
                )
            return op

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Removes the keys; missing ones are ignored. Raises TypeError for keys of another type."""
        keys = convert_to_tensor(keys)
        if keys.dtype.base_dtype != self.key_dtype:
            raise TypeError(f"Signature mismatch. Keys must be dtype {self.key_dtype!r}, got {keys.dtype!r}.")
        with name_scope(name, f"{self._name}_lookup_table_remove", [self.resource_handle, keys]):
            op: Operation = apply_op("LookupTableRemoveV2", None, table_handle=self.resource_handle, keys=keys)
            return op

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and values."""
        with name_scope(name, f"{self._name}_lookup_table_export_values", [self.resource_handle]), self._beside():
            keys, values = apply_op(
                "LookupTableExportV2", None, table_handle=self.resource_handle, Tkeys=self.key_dtype,
                Tvalues=self.value_dtype,
            )  # fmt: skip
        values.set_shape(self._shape_of_values(keys.shape))
        return keys, values

    def _save_as(self, name: str) -> None:
        get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))


class _TableSaveable(SaveableObject):
    """The keys and values of a table."""

    def __init__(self, table: _Changing, name: str) -> None:
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table, specs, name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """An op that gives the table this content and no other."""
        handle = self.op.resource_handle
        with colocate_with(handle):
            return apply_op(
                "LookupTableImportV2", None, table_handle=handle, keys=restored_tensors[0], values=restored_tensors[1]
            )


class MutableHashTable(_Changing):
    """A table that steps can change; its content outlives a step."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self.default_value = convert_to_tensor(default_value, dtype=self.value_dtype)
        scalar = self.default_value.shape.ndims == 0
        shape = {} if scalar else {"value_shape": self.default_value.shape}
        self.resource_handle = tensor_op(
            "MutableHashTableV2" if scalar else "MutableHashTableOfTensorsV2", name, shared_name=shared_name or "",
            use_node_name_sharing=checkpoint and not shared_name, key_dtype=self.key_dtype,
            value_dtype=self.value_dtype, **shape,
        )  # fmt: skip
        self._name = self.resource_handle.op.name.split("/")[-1]
        if checkpoint:
            self._save_as(name)


class DenseHashTable(_Changing):
    """A table in one block of memory, which needs two keys that never occur: `empty_key` and `deleted_key`."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self.default_value = convert_to_tensor(default_value, dtype=self.value_dtype, name="default_value")
        empty_key = convert_to_tensor(empty_key, dtype=self.key_dtype, name="empty_key")
        self._key_rank = empty_key.shape.ndims or 0
        buckets = {} if initial_num_buckets is None else {"initial_num_buckets": initial_num_buckets}
        self.resource_handle = tensor_op(
            "MutableDenseHashTableV2", name, use_node_name_sharing=checkpoint,
            empty_key=empty_key,
            deleted_key=convert_to_tensor(deleted_key, dtype=self.key_dtype, name="deleted_key"),
            value_dtype=self.value_dtype, value_shape=self.default_value.shape, **buckets,
        )  # fmt: skip
        self._name = self.resource_handle.op.name.split("/")[-1]
        if checkpoint:
            self._save_as(name)

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """As insert."""
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Operation:
        """As remove."""
        return self.remove(keys, name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of the keys, the default for unknown ones."""
        return super().lookup(convert_to_tensor(keys, dtype=self.key_dtype), name)
