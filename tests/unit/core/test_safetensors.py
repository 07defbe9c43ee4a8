"""safetensors files: ours against the library's, byte for byte, and what is said of files that are none."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.files import Files
from tenfold_core.safetensors import SafetensorsReader, write_safetensors

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {
    "layer/w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "layer/b": np.array([1, 2, 3], dtypes.bfloat16.as_numpy_dtype),
    "step": np.array(7, np.int64),
    "flags": np.array([True, False]),
    "half": np.array([1.5], np.float16),
    "none": np.zeros((0, 3), np.float64),
    "ü": np.array([255, 0, 1], np.uint8),
}


def write(path: Path, values: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str] | None = None) -> None:
    kinds = {name: (dtypes.as_dtype(value.dtype), value.shape) for name, value in values.items()}
    write_safetensors(str(path), kinds, lambda name: values[name], metadata)


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with SafetensorsReader(str(path)) as reader:
        return {name: reader.read(name) for name in reader.names()}


def same(found: dict[str, Any], values: dict[str, np.ndarray[Any, Any]]) -> None:
    assert set(found) == set(values)
    for name, value in values.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        assert found[name].tobytes() == value.tobytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path / "w", VALUES, {"by": "us"})

    same(read(tmp_path / "w"), VALUES)
    with SafetensorsReader(str(tmp_path / "w")) as reader:
        assert reader.metadata == {"by": "us"}
        assert reader.tensors["layer/b"].dtype is dtypes.bfloat16
        with pytest.raises(errors.NotFoundError, match=r"has no tensor x; there are flags, half, layer/b"):
            reader.read("x")


def test_the_library_reads_ours_and_we_read_the_librarys(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors", reason="safetensors is not installed (pip install -e '.[dev]')")
    from safetensors.numpy import save

    theirs = save(VALUES, {"by": "us"})
    (tmp_path / "theirs").write_bytes(theirs)
    write(tmp_path / "ours", VALUES, {"by": "us"})

    same(read(tmp_path / "theirs"), VALUES)
    found = dict(library.deserialize((tmp_path / "ours").read_bytes()))
    assert {name: bytes(row["data"]) for name, row in found.items()} == {n: v.tobytes() for n, v in VALUES.items()}
    assert {name: list(row["shape"]) for name, row in found.items()} == {n: list(v.shape) for n, v in VALUES.items()}
    assert (tmp_path / "ours").read_bytes() == theirs


def test_it_is_the_same_wherever_it_lies(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed (pip install -e '.[dev]')")
    from tenfold_core.files import EVERYWHERE

    kinds = {name: (dtypes.as_dtype(value.dtype), value.shape) for name, value in VALUES.items()}
    write(tmp_path / "w", VALUES)
    write_safetensors("memory://weights", kinds, VALUES.__getitem__)

    assert EVERYWHERE.read_whole("memory://weights") == (tmp_path / "w").read_bytes()
    with SafetensorsReader("memory://weights") as reader:
        same({name: reader.read(name) for name in reader.names()}, VALUES)
    EVERYWHERE.unlink("memory://weights")


def test_what_the_format_lacks_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"tensor words is of type string, .* leave it out"):
        write_safetensors(str(tmp_path / "w"), {"words": (dtypes.string, (1,))}, lambda name: np.array([b"x"], object))
    with pytest.raises(errors.InvalidArgumentError, match="no tensor may have the name __metadata__"):
        write_safetensors(str(tmp_path / "w"), {"__metadata__": (dtypes.float32, ())}, lambda name: np.float32(0))
    with pytest.raises(errors.InvalidArgumentError, match="not float32 and"):
        write_safetensors(str(tmp_path / "w"), {"a": (dtypes.float32, (2,))}, lambda name: np.zeros(3, np.float32))
    with pytest.raises(errors.InvalidArgumentError, match="texts only"):
        write_safetensors(str(tmp_path / "w"), {}, VALUES.__getitem__, {"n": 1})  # type: ignore[dict-item]

    assert list(tmp_path.iterdir()) == []


ROW = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    ("header", "body", "said"),
    [
        ({"w": {**ROW, "shape": [2]}}, bytes(4), "shape .2. has data_offsets"),
        ({"w": {**ROW, "shape": [1 << 62, 0], "data_offsets": [0, 0]}}, b"", "has data_offsets"),
        ({"w": {**ROW, "shape": [-1]}}, bytes(4), "has shape"),
        ({"w": {**ROW, "shape": [True]}}, bytes(4), "has shape"),
        ({"w": {**ROW, "shape": "1"}}, bytes(4), "has shape"),
        ({"w": {**ROW, "data_offsets": [4, 0]}}, bytes(4), "has shape"),
        ({"w": {**ROW, "more": 1}}, bytes(4), "other fields"),
        ({"w": [1]}, bytes(4), "other fields"),
        ({"w": ROW}, bytes(3), "beyond the end"),
        ({"w": ROW}, bytes(5), "end at byte"),
        ({"v": ROW, "w": ROW}, bytes(4), "begins at byte"),
        ({"w": {**ROW, "data_offsets": [4, 8]}}, bytes(8), "begins at byte"),
        ({"__metadata__": {"a": 1}}, b"", "other things than texts"),
        ([], b"", "not a JSON object"),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_damage(tmp_path: Path, header: Any, body: bytes, said: str) -> None:
    text = json.dumps(header).encode()
    (tmp_path / "w").write_bytes(struct.pack("<Q", len(text)) + text + body)

    with pytest.raises(errors.DataLossError, match=said) as damaged:
        SafetensorsReader(str(tmp_path / "w"))
    assert str(tmp_path / "w") in damaged.value.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it has 0 bytes"),
        (bytes(7), "it has 7 bytes"),
        (struct.pack("<Q", 1 << 63), "does not fit"),
        (struct.pack("<Q", 3) + b"{}", "does not fit"),
        (struct.pack("<Q", 2) + b"{{", "not as it should be"),
        (struct.pack("<Q", 2) + b"\xff\xff", "not as it should be"),
        (struct.pack("<Q", 15) + b'{"a":{},"a":{}}', "twice"),
        (struct.pack("<Q", 9) + b'{"a":NaN}', "NaN is not JSON"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "not as it should be"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "w").write_bytes(content)

    with pytest.raises(errors.DataLossError, match=said):
        SafetensorsReader(str(tmp_path / "w"))


def test_a_type_that_is_not_here_and_a_truth_value_that_is_none(tmp_path: Path) -> None:
    for row, body, kind in (
        ({"dtype": "F8_E8M0", "shape": [1], "data_offsets": [0, 1]}, b"\0", errors.UnimplementedError),
        ({"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}, b"\2", errors.DataLossError),
    ):
        text = json.dumps({"w": row}).encode()
        (tmp_path / "w").write_bytes(struct.pack("<Q", len(text)) + text + body)
        with pytest.raises(kind, match="tensor w"):
            read(tmp_path / "w")


def test_no_more_of_a_header_is_read_than_may_be(tmp_path: Path) -> None:
    class Small(Files):
        @property
        def most_bytes(self) -> int:
            return 10

    write(tmp_path / "w", VALUES)
    with pytest.raises(errors.ResourceExhaustedError, match="more than the 10"):
        SafetensorsReader(str(tmp_path / "w"), files=Small())
