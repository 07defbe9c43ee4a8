# Written by `make stubs` from the table of tf.lookup in namespaces.py.

from tenfold.ops.lookup import KeyValueTensorInitializer
from tenfold.ops.lookup import StaticHashTable
from tenfold.ops.lookup import StaticVocabularyTable
from tenfold.ops.lookup import TextFileIndex
from tenfold.ops.lookup import TextFileInitializer

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
]
