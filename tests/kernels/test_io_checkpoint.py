"""What savers and restorers refuse, by their words, and which folders a merge leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from pathlib import Path

ONE = np.ones(2, np.float32)


def text(*items: bytes) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("SaveV2", [text(b"p", b"q"), text(b"a"), text(b""), ONE], "Input prefix should have a single element, got 2"),
        (
            "SaveV2",
            [b"p", np.array([[b"a"]], object), text(b""), ONE],
            r"shape_and_slices should be an 1-D tensors, got \[1,1\] and \[1\]",
        ),
        ("SaveV2", [b"p", text(b"a"), np.array(b"", object), ONE], r"1-D tensors, got \[1\] and \[\]"),
        ("SaveV2", [b"p", text(b"a"), text(b"", b""), ONE], "have different number of elements: 1 vs. 2"),
        ("SaveV2", [b"p", text(b"a", b"b"), text(b"", b""), ONE], "Got 2 tensor names but 1 tensors"),
        (
            "Save",
            [text(b"p", b"q"), text(b"a"), ONE],
            "Input 0 .filename. must be a string scalar; got a tensor of 2ele",
        ),
        (
            "Save",
            [b"p", text(b"a", b"b"), ONE],
            "^Expected totally 4 inputs as input #1 .* contains 2 names, but received 3 inputs$",
        ),
        (
            "SaveSlices",
            [b"p", text(b"a"), text(b"", b""), ONE],
            "^Expected 1 elements for the tensor shapes and slices",
        ),
        (
            "SaveSlices",
            [b"p", text(b"a", b"b"), text(b"", b""), ONE],
            "^Expected totally 5 inputs .*, but received 4 inputs$",
        ),
        ("MergeV2Checkpoints", [b"p", b"q"], r"^Input checkpoint_prefixes should be an 1-D tensor, got \[\] instead"),
        (
            "MergeV2Checkpoints",
            [text(b"p"), text(b"q")],
            r"^Input destination_prefix .* scalar tensor, got \[1\] instead",
        ),
    ],
)
def test_what_savers_refuse(
    ops: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, inputs: list[Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run(op, inputs)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def old(ops: Any, tmp_path: Path) -> bytes:
    path = str(tmp_path / "v1").encode()
    ops.run("Save", [path, text(b"b", b"a"), ONE, np.arange(3, dtype=np.int32)])
    return path


def test_tensors_of_the_first_format_go_by_their_names(ops: Any, old: bytes) -> None:
    assert ops.run("Restore", [old, b"a"], dt=dtypes.int32).tolist() == [0, 1, 2]
    assert ops.run("Restore", [old, b"b"], dt=dtypes.float32).tolist() == [1, 1]
    assert ops.run("RestoreSlice", [old, text(b"a", b"b"), text(b"")], dt=dtypes.int32).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        (
            "Restore",
            [text(b"p", b"q"), b"a"],
            "^Input 0 .file_pattern. must be a string scalar; got a tensor of 2 elem",
        ),
        ("Restore", [b"", text()], "must be a have at least 1 elements"),
        ("RestoreSlice", [b"", b"a", text()], "must be a have at least 1 elements"),
        ("RestoreSlice", [b"", b"a", b"4 0,1"], r"match the shape in the save file: \[4\], save file shape: \[3\]$"),
    ],
)
def test_what_restorers_of_the_first_format_refuse(
    ops: Any, old: bytes, op: str, inputs: list[Any], message: str
) -> None:
    if not isinstance(inputs[0], np.ndarray):
        inputs = [old, *inputs[1:]]
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run(op, inputs, dt=dtypes.int32)


@pytest.mark.parametrize("delete", [True, False])
def test_a_merge_leaves_folders_that_it_was_told_to_or_that_are_not_empty(
    ops: Any, tmp_path: Path, delete: bool
) -> None:
    prefixes = []
    for name in ("one", "two", "."):
        prefixes.append(str(tmp_path / name / f"part-{len(prefixes)}").encode())
        ops.run("SaveV2", [prefixes[-1], text(b"n%d" % len(prefixes)), text(b""), ONE])
    (tmp_path / "two" / "other").write_bytes(b"")
    ops.run("MergeV2Checkpoints", [text(*prefixes), str(tmp_path / "m").encode()], delete_old_dirs=delete)
    assert (tmp_path / "one").exists() is not delete
    assert (tmp_path / "two" / "other").exists()


def test_a_merge_without_a_part_fails_unless_it_may_be_missing(ops: Any, tmp_path: Path) -> None:
    here, missing = str(tmp_path / "a").encode(), str(tmp_path / "b").encode()
    ops.run("SaveV2", [here, text(b"n"), text(b""), ONE])
    where = str(tmp_path / "m").encode()
    with pytest.raises(
        errors.InvalidArgumentError, match=r"^allow_missing_files was set to false and .*/b did not exist"
    ):
        ops.run("MergeV2Checkpoints", [text(here, missing), where])
    ops.run("MergeV2Checkpoints", [text(here, missing), where], allow_missing_files=True)
    found = ops.run("RestoreV2", [where, text(b"n"), text(b"")], dtypes=[dtypes.float32])
    assert found.tolist() == [1, 1]
