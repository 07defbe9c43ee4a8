"""Texts as rows of word numbers, or of bytes.

The attributes have TensorFlow's names, because processors are pickled. Follows TensorFlow 1.15's
`contrib/learn/python/learn/preprocessing/text.py`.
"""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import gfile
from tenfold.contrib.learn.preprocessing.categorical_vocabulary import CategoricalVocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Words: acronyms, capitalized parts of words, and runs of letters with hyphens and apostrophes.
TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for value in iterator:
        yield TOKENIZER_RE.findall(value)


class ByteProcessor:
    """Texts as rows of `max_document_length` bytes, with zeros at the end."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> None:
        """Does nothing: there is nothing to learn."""

    def fit_transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """`transform`."""
        return self.transform(x)

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """The texts of rows; "" where one is no UTF-8."""
        for data in x:
            document = np.trim_zeros(data.astype(np.uint8), trim="b").tobytes()
            try:
                yield document.decode("utf-8")
            except UnicodeDecodeError:
                yield ""

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Yields uint8 arrays, one for each text."""
        for document in x:
            data = document.encode("utf-8") if isinstance(document, str) else document
            row = np.frombuffer(bytes(data)[: self.max_document_length], dtype=np.uint8)
            yield np.pad(row, (0, self.max_document_length - len(row)), "constant")


class VocabularyProcessor:
    """Texts as rows of `max_document_length` word numbers, with zeros at the end.

    Words that come at most `min_frequency` times are unknown (0). `tokenizer_fn` maps an iterator of texts to one of
    lists of words. As TensorFlow 1.15's class of this name; `save` and `restore` pickle it.
    """

    def __init__(
        self, max_document_length: int, min_frequency: int = 0, vocabulary: Any = None, tokenizer_fn: Any = None
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_: Any = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of texts. Returns itself."""
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform`."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Any]:
        """Yields int64 arrays, one for each text."""
        for tokens in self._tokenizer(raw_documents):
            ids = np.zeros(self.max_document_length, np.int64)
            for index, token in enumerate(tokens[: self.max_document_length]):
                ids[index] = self.vocabulary_.get(token)
            yield ids

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The words of rows, with spaces between."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(each) for each in row)

    def save(self, filename: Any) -> None:
        """Writes the processor to a file."""
        with gfile.GFile(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: Any) -> VocabularyProcessor:
        """Reads one from a file of your own: reading a pickle runs what it says."""
        with gfile.GFile(filename, "rb") as file:
            found: VocabularyProcessor = pickle.loads(file.read())
        return found
