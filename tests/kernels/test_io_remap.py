"""Vocabularies compared and matrices reordered by them: each bound, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.graph_files import GraphFiles

if TYPE_CHECKING:
    from pathlib import Path


def text(*items: bytes) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


@pytest.mark.parametrize(
    ("offset", "wanted", "old_size", "remapping"),
    [
        (0, 4, -1, [2, -1, 0, 1]),
        (1, 2, -1, [-1, 0]),
        (3, 1, -1, [1]),
        (0, 4, 2, [-1, -1, 0, 1]),
        (0, 4, 0, [-1] * 4),
        (0, 0, -1, []),
    ],
)
def test_words_are_found_among_the_old_ones(
    ops: Any, tmp_path: Path, offset: int, wanted: int, old_size: int, remapping: list[int]
) -> None:
    (tmp_path / "new").write_bytes(b"c\nx\na\r\nb")
    (tmp_path / "old").write_bytes(b"a\nb\nc\n")
    names = [str(tmp_path / name).encode() for name in ("new", "old")]
    attrs = {"new_vocab_offset": offset, "num_new_vocab": wanted, "old_vocab_size": old_size}

    found, present = ops.run("GenerateVocabRemapping", names, **attrs)

    assert found.tolist() == remapping
    assert present == sum(number >= 0 for number in remapping)
    assert present.shape == ()


def test_vocabularies_that_are_too_short_or_many(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"a\nb\n")
    name = str(tmp_path / "v").encode()
    attrs = {"new_vocab_offset": 1, "num_new_vocab": 2, "old_vocab_size": -1}
    with pytest.raises(
        errors.InvalidArgumentError, match=r"^Invalid vocab_size in .*/v: expected at least 3 but got 2$"
    ):
        ops.run("GenerateVocabRemapping", [name, name], **attrs)
    for inputs, what in (([text(name, name), name], "new_vocab_file"), ([name, text(name, name)], "old_vocab_file")):
        message = f"^{what} input should have a single element, got 2 instead.$"
        with pytest.raises(errors.InvalidArgumentError, match=message):
            ops.run("GenerateVocabRemapping", inputs, **attrs)
    with pytest.raises(errors.NotFoundError, match="No such file"):
        ops.run("GenerateVocabRemapping", [name, name + b"x"], **attrs)


OLD = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def load(ops: Any, tmp_path: Path) -> Any:
    """Reads the matrix "m" of a checkpoint by remappings."""
    path = str(tmp_path / "m").encode()
    names = text(b"m", b"long", b"vector")
    tensors = [OLD, OLD.astype(np.int64), OLD[0]]
    ops.run("SaveV2", [path, names, text(b"", b"", b""), *tensors])
    ops.run("SaveSlices", [path + b".v1", text(b"m"), text(b""), OLD])

    def run(rows: Any, columns: Any, values: Any = (), width: int = 3, most: int = -1, **given: Any) -> Any:
        row_map, column_map = np.array(rows, np.int64), np.array(columns, np.int64)
        return ops.run(
            "LoadAndRemapMatrix",
            [path + given.get("end", b""), given.get("name", b"m"), row_map, column_map, np.array(values, np.float32)],
            num_rows=given.get("height", row_map.size),
            num_cols=column_map.size or width,
            max_rows_in_memory=most,
        )

    return run


@pytest.mark.parametrize("most", [-1, 0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("end", [b"", b".v1"])
def test_rows_and_columns_go_where_the_remappings_say(load: Any, most: int, end: bytes) -> None:
    found = load([3, -1, 0], [2, -1, 0], [91, 92, 93, 94, 95], most=most, end=end)
    assert found.tolist() == [[11, 91, 9], [92, 93, 94], [2, 95, 0]]
    assert load([3, 1, 0, 2], [], most=most, end=end).tolist() == OLD[[3, 1, 0, 2]].tolist()
    assert load([-1, 2], [], [91, 92, 93], most=most, end=end).tolist() == [[91, 92, 93], [6, 7, 8]]
    assert load([-1], [0, -1], [1, 2], most=most, end=end).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (([[0]], []), {"height": 1}, r"^The row_remapping tensor must be 1-D, got shape \[1,1\]$"),
        (([0], []), {"height": 2}, "^Size of row_remapping is 1 instead of being equal to 2$"),
        (([2, 1, 2], []), {}, "^row_remapping: more than one new entry is mapped to the old entry 2$"),
        (([0], [1, 1]), {}, "^col_remapping: more than one new entry is mapped to the old entry 1$"),
        (([0, -2], []), {}, "^row_remapping: -2 is no entry; -1 stands for a missing one$"),
        (([0, -1], [], [1.0, 2.0]), {}, "^Tensor initializing_values contained 2 elements, but 3 values of the matrix"),
        (([0], [], [1.0]), {}, "^Tensor initializing_values contained 1 elements, but 0 values"),
        (([4], []), {}, "^Tensor m has 4 rows; there is no row 4$"),
        (([0], [3]), {}, "^Tensor m has 3 columns; there is no column 3$"),
        (([0], [], (), 2), {}, "^Tensor m has 3 columns, and num_cols is 2, without a remapping$"),
        (([0], []), {"name": b"long"}, r"^Tensor long must be a float matrix, but is int64 \[4,3\]$"),
        (([0], []), {"name": b"vector"}, r"^Tensor vector must be a float matrix, but is float32 \[3\]$"),
        (([0], []), {"name": b"none", "end": b".v1"}, "^Old tensor name none was not found in the checkpoint .*v1$"),
    ],
)
def test_matrices_that_cannot_be_read(load: Any, arguments: Any, given: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        load(*arguments, **given)


def test_a_vocabulary_is_no_larger_than_a_file_may_be(
    ops: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v").write_bytes(b"a\nb\n")
    name = str(tmp_path / "v").encode()
    attrs = {"new_vocab_offset": 0, "num_new_vocab": 2, "old_vocab_size": -1}
    monkeypatch.setattr(GraphFiles, "most_bytes", 4)
    assert ops.run("GenerateVocabRemapping", [name, name], **attrs)[0].tolist() == [0, 1]
    monkeypatch.setattr(GraphFiles, "most_bytes", 3)
    with pytest.raises(errors.ResourceExhaustedError, match=r"/v; 4 bytes are more than the 3 "):
        ops.run("GenerateVocabRemapping", [name, name], **attrs)
