"""`tensorflow.python.pywrap_tensorflow`: of TensorFlow's C interface the part that programs call."""

from __future__ import annotations

from typing import Any

from tenfold.train.checkpoint_utils import CheckpointReader, NewCheckpointReader
from tenfold.versions import VERSION
from tenfold_core.records import RecordReader

__all__ = ["CheckpointReader", "NewCheckpointReader", "PyRecordReader_New", "__version__"]

__version__ = VERSION


class _Records:
    """Reads a TFRecord file record by record, as TensorFlow's PyRecordReader."""

    def __init__(self, filename: str, compression: str) -> None:
        self._reader = RecordReader(filename, compression)
        self._records = iter(self._reader)
        self._record: bytes | None = None

    def GetNext(self) -> bool:
        """Reads on; False at the end."""
        self._record = next(self._records, None)
        return self._record is not None

    def record(self) -> bytes | None:
        return self._record

    def Close(self) -> None:
        self._reader.close()


def PyRecordReader_New(filename: Any, offset: int, compression_type: Any, status: Any = None) -> _Records:
    """A reader of TFRecords. Raises ValueError for an offset, which would begin within a record."""
    from tenfold.compat import as_text

    if offset:
        raise ValueError(f"a reader begins at the first record, not at byte {offset}")
    return _Records(as_text(filename), as_text(compression_type))
