"""`tf.python_io`: TFRecord files, written and read by the program itself. The format is tenfold_core/records.py's.

Follows TF 1.15's lib/io/tf_record.py.
"""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING, Any, ClassVar

from tenfold_core.records import RecordReader, RecordWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType(enum.IntEnum):
    """The compression of a TFRecord file."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """The compression of a TFRecord file. The other zlib settings are accepted; readers ignore them.

    Raises ValueError for an unknown kind.
    """

    compression_type_map: ClassVar[dict[TFRecordCompressionType, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size, self.output_buffer_size = input_buffer_size, output_buffer_size
        self.window_bits, self.compression_level = window_bits, compression_level
        self.compression_method, self.mem_level = compression_method, mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """ "", "ZLIB" or "GZIP" for options, a TFRecordCompressionType or one of these strings."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, int):
            return cls.compression_type_map[TFRecordCompressionType(options)]
        if options in cls.compression_type_map.values():
            return str(options)
        raise ValueError(f'Not a valid compression_type: "{options}"')


class TFRecordWriter:
    """Writes records: `with TFRecordWriter(path) as out: out.write(b"…")`. NotFoundError if there is no such folder."""

    def __init__(self, path: str | bytes | os.PathLike[str], options: Any = None) -> None:
        self._writer = RecordWriter(os.fsdecode(path), TFRecordOptions.get_compression_type_string(options))

    def write(self, record: bytes) -> None:
        self._writer.write(record)

    def flush(self) -> None:
        """Passes what was written to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tf_record_iterator(path: str | bytes | os.PathLike[str], options: Any = None) -> Iterator[bytes]:
    """The records of a file, in order. Raises NotFoundError, and DataLossError where the file is damaged."""
    with RecordReader(os.fsdecode(path), TFRecordOptions.get_compression_type_string(options)) as reader:
        yield from reader
