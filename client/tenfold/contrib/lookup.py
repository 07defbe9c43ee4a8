"""`tf.contrib.lookup`: the tables of `tf.lookup` under their contrib names, and old functions that make and use one.

A table of names over ops/lookup.py and ops/lookup_mutable.py. Follows TensorFlow 1.15's contrib/lookup/lookup_ops.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf
from tenfold.ops.lookup import (
    FastHashSpec,
    HasherSpec,
    HashTable,
    IdTableWithHashBuckets,
    KeyValueTensorInitializer,
    LookupInterface,
    StrongHashSpec,
    TextFileIndex,
    TextFileInitializer,
    index_table_from_file,
    index_table_from_tensor,
    index_to_string_table_from_file,
    index_to_string_table_from_tensor,
)
from tenfold.ops.lookup_mutable import DenseHashTable, MutableHashTable

__all__ = [
    "FastHashSpec", "HashTable", "HasherSpec", "IdTableWithHashBuckets", "KeyValueTensorInitializer",
    "LookupInterface", "MutableDenseHashTable", "MutableHashTable", "StrongHashSpec", "TextFileIdTableInitializer",
    "TextFileIndex", "TextFileInitializer", "TextFileStringTableInitializer", "index_table_from_file",
    "index_table_from_tensor", "index_to_string", "index_to_string_table_from_file",
    "index_to_string_table_from_tensor", "string_to_index", "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]  # fmt: skip

MutableDenseHashTable = DenseHashTable


class TextFileIdTableInitializer(TextFileInitializer):
    """From the lines of a file, or one of their columns, to their numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: Any = tf.string,
    ) -> None:
        super().__init__(
            filename, key_dtype, key_column_index, tf.int64, value_column_index, vocab_size, delimiter, name
        )


class TextFileStringTableInitializer(TextFileInitializer):
    """From the numbers of the lines of a file to the lines, or one of their columns."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename, tf.int64, key_column_index, tf.string, value_column_index, vocab_size, delimiter, name
        )


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """Old name of index_table_from_file for strings."""
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, tf.string, name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """Old name of index_table_from_tensor for strings. Raises ValueError for another type."""
    mapping = tf.convert_to_tensor(mapping)
    if mapping.dtype.base_dtype != tf.string:
        raise ValueError("string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The place of each string in the mapping; the table must be initialized."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The string at each place in the mapping; the table must be initialized."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)
