"""The ops of lookup tables, both families of handles. The table is lookup_tables.py.

Follows lookup_table_op.cc and lookup_table_init_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.file_names import file_path
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.handles import handle_for, resource_of, shared_resource
from tenfold_kernels.resources.lookup_tables import DenseTable, Table, read_text_file
from tenfold_kernels.resources.tensor_arrays import unique_name

if TYPE_CHECKING:
    from collections.abc import Callable


def _types_checked(node: KernelNode, table: Table) -> None:
    key, value = node.attrs["key_dtype"], node.attrs["value_dtype"]
    if table.key_dtype is not key or table.value_dtype is not value:
        raise invalid(
            f"Conflicting key/value dtypes {key.op_name}->{value.op_name} with {table.key_dtype.op_name}-"
            f"{table.value_dtype.op_name} for table {table.name}"
        )


def _value_shape(node: KernelNode) -> tuple[int, ...]:
    shape = TensorShape(node.attrs.get("value_shape", []))
    return tuple(size or 0 for size in shape.as_list())


@kernel("HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2")
def build_hash_table(node: KernelNode) -> Compute:
    """A table of scalars."""
    kind = "MutableHashTable" if node.op.startswith("Mutable") else "HashTable"
    return _shared_or_own(node, lambda name: _table(node, kind, name))


def _table(node: KernelNode, kind: str, name: str, value_shape: tuple[int, ...] = ()) -> Table:
    """A table of scalar keys, whose entries count for the node's containers."""
    key, value = node.attrs["key_dtype"], node.attrs["value_dtype"]
    account = node.resources.quota.account(name)
    return Table(kind, name, key, value, value_shape=value_shape, account=account, loops=id_loops())


def _shared_or_own(node: KernelNode, make: Callable[[str], Table]) -> Compute:
    """The compute of an op that makes a table; that of an Anonymous one makes another in every step."""
    if not node.op.startswith("Anonymous"):
        return shared_resource(node, Table, make, lambda table: _types_checked(node, table))

    def compute() -> Any:
        table = make(unique_name(node.name))
        return handle_for(node, "", table.name, table)

    return compute


@kernel("AnonymousHashTable", "AnonymousMutableHashTable")
def build_anonymous_table(node: KernelNode) -> Compute:
    """A table of scalars that lives as long as its handle."""
    kind = "MutableHashTable" if "Mutable" in node.op else "HashTable"
    return _shared_or_own(node, lambda name: _table(node, kind, name))


@kernel("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "AnonymousMutableHashTableOfTensors")
def build_table_of_tensors(node: KernelNode) -> Compute:
    """Scalar keys, vectors as values."""
    shape = _value_shape(node)

    def make(name: str) -> Table:
        if len(shape) != 1:
            raise invalid(f"Default value must be a vector, got shape {shape_text(shape)}")
        return _table(node, "MutableHashTableOfTensors", name, shape)

    return _shared_or_own(node, make)


@kernel("MutableDenseHashTable", "MutableDenseHashTableV2", "AnonymousMutableDenseHashTable")
def build_dense_table(node: KernelNode) -> Compute:
    """Two keys, of whatever shape, are reserved: those of the first step that makes the table count."""
    key, value, shape = node.attrs["key_dtype"], node.attrs["value_dtype"], _value_shape(node)
    buckets = int(node.attrs.get("initial_num_buckets", 131072))
    load = float(node.attrs.get("max_load_factor", 0.8))
    if not 0 < load < 1:
        raise invalid(f"max_load_factor must be between 0 and 1, got: {load:g}")
    if len(shape) > 1:
        raise invalid(f"Empty value must be a scalar or a vector, got shape {shape_text(shape)}")
    reserved: list[Array | None] = []

    def make(name: str) -> Table:
        empty, deleted = reserved
        assert empty is not None
        account = node.resources.quota.account(name)
        return DenseTable(name, key, value, shape, empty, deleted, buckets, load, account, id_loops())

    found = _shared_or_own(node, make)

    def compute(empty_key: Array, deleted_key: Array | None = None) -> Any:
        reserved[:] = empty_key, deleted_key
        return found()

    return compute


def _table_of(node: KernelNode, handle: Any, key: Any = None, value: Any = None) -> Table:
    table = resource_of(node, handle, Table)
    if (key is not None and key is not table.key_dtype) or (value is not None and value is not table.value_dtype):
        have = f"{table.key_dtype.op_name}->{table.value_dtype.op_name}"
        wanted = "->".join(dtype.op_name for dtype in (key, value) if dtype is not None)
        raise invalid(f"{node.op} has types {wanted}, but the table {table.name} maps {have}")
    return table


@kernel("LookupTableFind", "LookupTableFindV2")
def build_find(node: KernelNode) -> Compute:
    types = node.attrs["Tin"], node.attrs["Tout"]
    return lambda handle, keys, default: _table_of(node, handle, *types).find(keys, default)


@kernel("LookupTableInsert", "LookupTableInsertV2")
def build_insert(node: KernelNode) -> Compute:
    types = node.attrs["Tin"], node.attrs["Tout"]
    return lambda handle, keys, values: _table_of(node, handle, *types).insert(keys, values)


@kernel("LookupTableImport", "LookupTableImportV2")
def build_import(node: KernelNode) -> Compute:
    types = node.attrs["Tin"], node.attrs["Tout"]
    return lambda handle, keys, values: _table_of(node, handle, *types).replace(keys, values)


@kernel("LookupTableRemoveV2")
def build_remove(node: KernelNode) -> Compute:
    return lambda handle, keys: _table_of(node, handle, node.attrs["Tin"]).remove(keys)


@kernel("LookupTableExport", "LookupTableExportV2")
def build_export(node: KernelNode) -> Compute:
    """(keys [N, ...], values [N, ...]), in no particular order."""
    types = node.attrs["Tkeys"], node.attrs["Tvalues"]
    return lambda handle: _table_of(node, handle, *types).export()


@kernel("LookupTableSize", "LookupTableSizeV2")
def build_size(node: KernelNode) -> Compute:
    return lambda handle: np.array(_table_of(node, handle).size(), dtype=np.int64)


@kernel("InitializeTable", "InitializeTableV2")
def build_initialize(node: KernelNode) -> Compute:
    types = node.attrs["Tkey"], node.attrs["Tval"]
    return lambda handle, keys, values: _table_of(node, handle, *types).initialize(keys, values)


@kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2", files=True)
def build_initialize_from_text_file(node: KernelNode) -> Compute:
    """Reads a file of this task."""
    key_index, value_index = int(node.attrs["key_index"]), int(node.attrs["value_index"])
    vocab_size, offset = int(node.attrs.get("vocab_size", -1)), int(node.attrs.get("offset", 0))
    delimiter = text_attr(node, "delimiter", "\t")
    if len(delimiter) != 1:
        raise invalid("delimiter should be only 1 char")

    def compute(handle: Any, filename: Array) -> None:
        table = _table_of(node, handle)
        if filename.ndim:
            raise invalid(f"filename should be a single string, but got {shape_text(filename.shape)}")
        name = file_path(filename.item())
        if not name:
            raise invalid("filename cannot be empty.")
        _check_columns(table, key_index, value_index)
        table.initialize(*read_text_file(name, key_index, value_index, vocab_size, delimiter, offset, table))

    return compute


def _check_columns(table: Table, key_index: int, value_index: int) -> None:
    for what, index, dtype in (("Key", key_index, table.key_dtype), ("Value", value_index, table.value_dtype)):
        if index == -1 and dtype.name != "int64":
            raise invalid(
                f"{what} index for line number requires table {what.lower()} dtype of int64, got {dtype.op_name}"
            )
        if index == -2 and not dtype.is_integer and dtype.name != "string":
            wanted = "string or integer table key" if what == "Key" else "table value dtype of integer or string"
            raise invalid(f"{what} index for whole line requires {wanted}, got {dtype.op_name}")
