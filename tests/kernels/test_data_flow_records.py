"""RecordInput: every record once an epoch, in an order of its own; what cannot be read is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_core.records import RecordWriter

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, name: str, *records: bytes) -> None:
    with RecordWriter(str(folder / name)) as writer:
        for record in records:
            writer.write(record)


def attrs(pattern: str, **others: Any) -> dict[str, Any]:
    defaults = {
        "file_random_seed": 301,
        "file_shuffle_shift_ratio": 0.5,
        "file_buffer_size": 4,
        "file_parallelism": 2,
        "batch_size": 5,
        "compression_type": b"",
    }
    return {**defaults, "file_pattern": pattern.encode(), **others}


@pytest.mark.parametrize(("buffered", "open_files"), [(1, 1), (4, 2), (100, 16)])
def test_an_epoch_has_every_record_once(ops: Any, tmp_path: Path, buffered: int, open_files: int) -> None:
    records = [f"{i}".encode() for i in range(10)]
    for i, part in enumerate((records[:3], records[3:4], [], records[4:])):
        write(tmp_path, f"part{i}" if i < 3 else "last", *part)
    given = attrs(f"{tmp_path}/part*,{tmp_path}/last", file_buffer_size=buffered, file_parallelism=open_files)

    batch, _ = ops.build("RecordInput", [], given)
    epochs = [[*batch(), *batch()] for _ in range(3)]

    assert [sorted(epoch) for epoch in epochs] == [records] * 3
    assert len({tuple(epoch) for epoch in epochs}) > 1


def test_what_cannot_be_read(ops: Any, tmp_path: Path) -> None:
    write(tmp_path, "empty")

    with pytest.raises(errors.NotFoundError, match=r"Found no files at .*none"):
        ops.run("RecordInput", [], **attrs(f"{tmp_path}/none*"))
    with pytest.raises(errors.OutOfRangeError, match="There is no record in"):
        ops.run("RecordInput", [], **attrs(f"{tmp_path}/empty"))
    with pytest.raises(errors.InvalidArgumentError, match="batch_size must be at least 1, got 0"):
        ops.run("RecordInput", [], **attrs(f"{tmp_path}/empty", batch_size=0))
