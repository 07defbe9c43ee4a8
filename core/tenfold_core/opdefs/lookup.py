"""Op definitions: lookup tables.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns_resources as r
from tenfold_core.opdefs.table import family

op = family("lookup")

op(
    "AnonymousHashTable",
    "",
    "table_handle: resource",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=r.scalar,
)
op(
    "AnonymousMutableDenseHashTable",
    "empty_key: key_dtype, deleted_key: key_dtype",
    "table_handle: resource",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
    "initial_num_buckets: int = 131072",
    "max_load_factor: float = 0.800000011920929",
    stateful=True,
    shape=r.scalar,
)
op(
    "AnonymousMutableHashTable",
    "",
    "table_handle: resource",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=r.scalar,
)
op(
    "AnonymousMutableHashTableOfTensors",
    "",
    "table_handle: resource",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
    stateful=True,
    shape=r.scalar,
)
op(
    "HashTable",
    "",
    "table_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=r.names,
)
op(
    "HashTableV2",
    "",
    "table_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=r.scalar,
)
op("InitializeTable", "table_handle: Ref(string), keys: Tkey, values: Tval", "", "Tkey: type", "Tval: type")
op(
    "InitializeTableFromTextFile",
    "table_handle: Ref(string), filename: string",
    "",
    "key_index: int >= -2",
    "value_index: int >= -2",
    "vocab_size: int >= -1 = -1",
    "delimiter: string = '\\t'",
    "offset: int = 0",
    sized_by="*",
)
op(
    "InitializeTableFromTextFileV2",
    "table_handle: resource, filename: string",
    "",
    "key_index: int >= -2",
    "value_index: int >= -2",
    "vocab_size: int >= -1 = -1",
    "delimiter: string = '\\t'",
    "offset: int = 0",
    stateful=True,
    shape=r.no_outputs,
    sized_by="*",
)
op(
    "InitializeTableV2",
    "table_handle: resource, keys: Tkey, values: Tval",
    "",
    "Tkey: type",
    "Tval: type",
    stateful=True,
    shape=r.pairs,
)
op(
    "LookupTableExport",
    "table_handle: Ref(string)",
    "keys: Tkeys, values: Tvalues",
    "Tkeys: type",
    "Tvalues: type",
    shape=r.exported,
)
op(
    "LookupTableExportV2",
    "table_handle: resource",
    "keys: Tkeys, values: Tvalues",
    "Tkeys: type",
    "Tvalues: type",
    stateful=True,
)
op(
    "LookupTableFind",
    "table_handle: Ref(string), keys: Tin, default_value: Tout",
    "values: Tout",
    "Tin: type",
    "Tout: type",
)
op(
    "LookupTableFindV2",
    "table_handle: resource, keys: Tin, default_value: Tout",
    "values: Tout",
    "Tin: type",
    "Tout: type",
    stateful=True,
)
op("LookupTableImport", "table_handle: Ref(string), keys: Tin, values: Tout", "", "Tin: type", "Tout: type")
op(
    "LookupTableImportV2",
    "table_handle: resource, keys: Tin, values: Tout",
    "",
    "Tin: type",
    "Tout: type",
    stateful=True,
)
op("LookupTableInsert", "table_handle: Ref(string), keys: Tin, values: Tout", "", "Tin: type", "Tout: type")
op(
    "LookupTableInsertV2",
    "table_handle: resource, keys: Tin, values: Tout",
    "",
    "Tin: type",
    "Tout: type",
    stateful=True,
)
op("LookupTableRemoveV2", "table_handle: resource, keys: Tin", "", "Tin: type", stateful=True)
op("LookupTableSize", "table_handle: Ref(string)", "size: int64", shape=r.scalar)
op("LookupTableSizeV2", "table_handle: resource", "size: int64", stateful=True, shape=r.scalar)
op(
    "MutableDenseHashTable",
    "empty_key: key_dtype",
    "table_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
    "initial_num_buckets: int = 131072",
    "max_load_factor: float = 0.800000011920929",
    stateful=True,
    shape=r.names,
)
op(
    "MutableDenseHashTableV2",
    "empty_key: key_dtype, deleted_key: key_dtype",
    "table_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
    "initial_num_buckets: int = 131072",
    "max_load_factor: float = 0.800000011920929",
    stateful=True,
    shape=r.scalar,
)
op(
    "MutableHashTable",
    "",
    "table_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=r.names,
)
op(
    "MutableHashTableOfTensors",
    "",
    "table_handle: Ref(string)",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
    stateful=True,
    shape=r.names,
)
op(
    "MutableHashTableOfTensorsV2",
    "",
    "table_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    "value_shape: shape = []",
    stateful=True,
    shape=r.scalar,
)
op(
    "MutableHashTableV2",
    "",
    "table_handle: resource",
    "container: string = ''",
    "shared_name: string = ''",
    "use_node_name_sharing: bool = false",
    "key_dtype: type",
    "value_dtype: type",
    stateful=True,
    shape=r.scalar,
)
