"""Lookup tables (`tf.lookup`, `tf.contrib.lookup`): from keys to values, created once and shared.

A table is on the task where its operation is placed; `tf.tables_initializer()` fills the tables of a graph. Tables that
steps change are in lookup_mutable.py. Follows TensorFlow 1.15's ops/lookup_ops.py.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.collections import GraphKeys
from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow import group, no_op
from tenfold.ops.string import string_to_hash_bucket_fast
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the graph."""
    initializers = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*initializers, name=name) if initializers else no_op(name=name)


initialize_all_tables = tables_initializer


# --- table initializers ---


class KeyValueTensorInitializer:
    """Keys and values from two tensors of one length."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        with name_scope(name, "key_value_init", [keys, values]) as scope:
            self._keys = convert_to_tensor(keys, dtype=key_dtype, name="keys")
            self._values = convert_to_tensor(values, dtype=value_dtype, name="values")
            self._name = scope
        self.key_dtype = self._keys.dtype.base_dtype
        self.value_dtype = self._values.dtype.base_dtype

    def initialize(self, table: Any) -> Operation:
        """The operation that fills `table`."""
        with name_scope(self._name, values=[table.resource_handle]):
            op: Operation = apply_op(
                "InitializeTableV2", None, table_handle=table.resource_handle, keys=self._keys, values=self._values
            )
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        return op


class TextFileIndex:
    """Special columns of a text file: the whole line, and the line number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer:
    """Keys and values from the columns of a text file, read by the task that holds the table."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        if not hasattr(filename, "graph") and not filename:
            raise ValueError("Filename required.")
        self._filename = filename
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        _check_column("key", key_index, self.key_dtype)
        _check_column("value", value_index, self.value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        self._columns = {"key_index": key_index, "value_index": value_index}
        self._vocab_size = vocab_size
        self._delimiter = delimiter
        self._name = name

    def initialize(self, table: Any) -> Operation:
        """The operation that fills `table`."""
        with name_scope(self._name, "text_file_init", [table.resource_handle]):
            filename = convert_to_tensor(self._filename, dtypes.string, name="asset_filepath")
            op: Operation = apply_op(
                "InitializeTableFromTextFileV2",
                None,
                table_handle=table.resource_handle,
                filename=filename,
                vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                delimiter=self._delimiter,
                **self._columns,
            )
        graph = get_default_graph()
        graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        # Only a name that is known can be the name of an asset.
        if known_value(filename) is not None:
            graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return op


def _check_column(word: str, index: int, dtype: DType) -> None:
    """Raises ValueError for a column that cannot be of that type."""
    if index < TextFileIndex.WHOLE_LINE:
        raise ValueError(f"Invalid {word} index {index}.")
    if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
        raise ValueError(f"Signature mismatch. {word.capitalize()}s must be dtype {dtypes.int64}, got {dtype}.")
    if index == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype != dtypes.string:
        raise ValueError(f"Signature mismatch. {word.capitalize()}s must be integer or string, got {dtype}.")


# --- tables ---


class LookupInterface:
    """Base of tables: `lookup(keys)` and `size()`."""

    key_dtype: Any
    value_dtype: Any
    resource_handle: Any
    default_value: Any
    _name: str
    #: What the scope of a look-up is called behind the table's name.
    _find = "Lookup"
    #: The rank of one key.
    _key_rank = 0

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    def _beside(self) -> AbstractContextManager[Any]:
        """Where the operations on the table are put; the placer brings those of a static table to it."""
        return nullcontext()

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries."""
        with name_scope(name, f"{self._name}_Size", [self.resource_handle]), self._beside():
            return tensor_op("LookupTableSizeV2", None, table_handle=self.resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of the keys, the default for unknown ones; of a SparseTensor, those of its values.

        Raises TypeError for keys of another type.
        """
        inner = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys, dtype=None)
        if inner.dtype.base_dtype != self.key_dtype:
            raise TypeError(f"Signature mismatch. Keys must be dtype {self.key_dtype!r}, got {inner.dtype!r}.")
        with name_scope(name, f"{self._name}_{self._find}", [self.resource_handle, inner]), self._beside():
            values = tensor_op(
                "LookupTableFindV2", None, table_handle=self.resource_handle, keys=inner,
                default_value=self.default_value,
            )  # fmt: skip
        values.set_shape(self._shape_of_values(inner.shape))
        return SparseTensor(keys.indices, values, keys.dense_shape) if isinstance(keys, SparseTensor) else values

    def _shape_of_values(self, keys: TensorShape) -> TensorShape:
        """The shape of the values of keys."""
        outer = keys if keys.ndims is None else keys[: keys.ndims - self._key_rank]
        return outer.concatenate(self.default_value.shape)


class StaticHashTable(LookupInterface):
    """A table that an initializer fills once."""

    def __init__(self, initializer: Any, default_value: Any, shared_name: str = "", name: str | None = None) -> None:
        self.key_dtype, self.value_dtype = initializer.key_dtype, initializer.value_dtype
        with name_scope(name, "hash_table") as scope:
            self.resource_handle = tensor_op(
                "HashTableV2", scope, shared_name=shared_name or "", key_dtype=self.key_dtype,
                value_dtype=self.value_dtype, use_node_name_sharing=not shared_name,
            )  # fmt: skip
            self._name = scope.rstrip("/").split("/")[-1]
            self.default_value = convert_to_tensor(default_value, dtype=self.value_dtype)
            self.default_value.shape.assert_is_compatible_with([])
            self.initializer = initializer.initialize(self)

    @property
    def init(self) -> Operation:
        """Old name of `initializer`."""
        result: Operation = self.initializer
        return result

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and values."""
        with name_scope(name, f"{self._name}_Export", [self.resource_handle]):
            keys, values = apply_op(
                "LookupTableExportV2", None, table_handle=self.resource_handle, Tkeys=self.key_dtype,
                Tvalues=self.value_dtype,
            )  # fmt: skip
        values.set_shape(keys.shape.concatenate(self.default_value.shape))
        return keys, values


HashTable = StaticHashTable


class HasherSpec(NamedTuple):
    """How unknown keys are hashed into buckets."""

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A keyed hash, which cannot be predicted without the key. Raises ValueError unless `key` is two integers."""

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"key must have size 2, got {key}")
        if not all(isinstance(part, int) for part in key):
            raise TypeError(f"Invalid key {key}. Must be a list of two integers.")
        return super().__new__(cls, "stronghash", key)


class IdTableWithHashBuckets(LookupInterface):
    """A table of ids, with `num_oov_buckets` more ids for unknown keys, chosen by hash."""

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if table is None and num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0 if no table is supplied.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        self._table, self._buckets, self._hasher = table, num_oov_buckets, hasher_spec
        given = dtypes.string if key_dtype is None and table is None else as_dtype(key_dtype or table.key_dtype)
        if not given.is_integer and given != dtypes.string:
            raise TypeError(f"Invalid key_dtype, expected integer or string, got {given}.")
        self.key_dtype, self.value_dtype = given, dtypes.int64
        self._name = (name or (table.name if table is not None else "hash_bucket")).rstrip("/")

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        result: Operation = self._table.initializer if self._table is not None else no_op()
        return result

    init = initializer

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries and buckets."""
        with name_scope(name, f"{self._name}_Size"):
            known = self._table.size() if self._table is not None else array.constant(0, dtypes.int64)
            return known + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of the keys."""
        inner = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys, name="keys")
        if inner.dtype.base_dtype != self.key_dtype:
            raise TypeError(f"Signature mismatch. Keys must be dtype {self.key_dtype!r}, got {inner.dtype!r}.")
        table_keys = inner
        if self._table is not None and self._table.key_dtype != inner.dtype.base_dtype:
            table_keys = math.cast(inner, self._table.key_dtype)
        ids = self._table.lookup(table_keys) if self._table is not None else None
        if self._buckets:
            with name_scope(name, f"{self._name}_Lookup"):
                buckets = self._hashed(inner)
                if ids is None:
                    ids = buckets
                else:
                    buckets = buckets + self._table.size()
                    ids = slicing.where(math.not_equal(ids, self._table.default_value), ids, buckets)
        return SparseTensor(keys.indices, ids, keys.dense_shape) if isinstance(keys, SparseTensor) else ids

    def _hashed(self, keys: Tensor) -> Tensor:
        text = keys if keys.dtype.base_dtype == dtypes.string else tensor_op("AsString", None, input=keys)
        if self._hasher.hasher == "stronghash":
            return tensor_op(
                "StringToHashBucketStrong", None, input=text, num_buckets=self._buckets, key=list(self._hasher.key)
            )
        if self._hasher.hasher != "fasthash":
            raise ValueError(f"Unknown hasher {self._hasher.hasher!r}: there are fasthash and stronghash")
        return string_to_hash_bucket_fast(text, self._buckets, name="hash_bucket")


class StaticVocabularyTable(IdTableWithHashBuckets):
    """A table from an initializer, with buckets for unknown keys."""

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: str | None = None
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        table = None if initializer is None else StaticHashTable(initializer, default_value=-1)
        super().__init__(table, num_oov_buckets, name=name, key_dtype=lookup_key_dtype)


# --- tables of vocabularies ---


def _with_buckets(table: Any, num_oov_buckets: int, hasher_spec: HasherSpec, key_dtype: Any) -> Any:
    if not num_oov_buckets:
        return table
    return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec=hasher_spec, key_dtype=key_dtype)


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """From each element of `mapping` to its index; unknown keys to a bucket or the default."""
    if mapping is None:
        raise ValueError("mapping must be specified.")
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(mapping)
        if keys.dtype.is_integer != as_dtype(dtype).is_integer:
            raise ValueError(f"Expected {as_dtype(dtype).name}, got {keys.dtype.name}.")
        places = math.cast(math.range(array.size(keys)), dtypes.int64)
        kept = math.cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
        table = StaticHashTable(KeyValueTensorInitializer(kept, places), default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, dtype)


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """From each line of a file to its number; unknown keys to a bucket or the default."""
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    kind = dtypes.int64 if as_dtype(key_dtype).is_integer else as_dtype(key_dtype)
    with name_scope(name, "string_to_index"):
        initializer = TextFileInitializer(
            vocabulary_file, kind, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter
        )
        table = StaticHashTable(initializer, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, key_dtype)


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """From an index to the element of `mapping`."""
    if mapping is None:
        raise ValueError("mapping must be specified.")
    with name_scope(name, "index_to_string"):
        values = convert_to_tensor(mapping, dtypes.string)
        places = math.cast(math.range(array.size(values)), dtypes.int64)
        return StaticHashTable(KeyValueTensorInitializer(places, values), default_value)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> Any:
    """From a line number to the line of a file."""
    if not vocabulary_file:
        raise ValueError("vocabulary_file must be specified.")
    with name_scope(name, "index_to_string"):
        initializer = TextFileInitializer(
            vocabulary_file, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter
        )
        return StaticHashTable(initializer, default_value)
