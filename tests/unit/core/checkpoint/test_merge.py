"""Bundles that are merged: what becomes of their files, which tensors go together, and what stays when they do not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.checkpoint import BundleReader, BundleWriter, TensorSlice, merge_bundles

if TYPE_CHECKING:
    from pathlib import Path


def bundle(prefix: Path, *slices: tuple[str, tuple[int, ...], str, Any], **tensors: Any) -> str:
    """Writes tensors, and parts (name, whole shape, slice, values) of tensors."""
    with BundleWriter(str(prefix)) as writer:
        for name, value in tensors.items():
            writer.add(name, np.array(value))
        for name, shape, part, values in slices:
            writer.add_slice(name, shape, TensorSlice.parse(part), np.array(values))
    return str(prefix)


def read(prefix: Path) -> dict[str, list[Any]]:
    with BundleReader(str(prefix)) as reader:
        return {name: reader.read(name).tolist() for name in reader.names()}


def files(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_each_data_file_is_renamed_once_and_numbered_in_the_order_of_the_bundles(tmp_path: Path) -> None:
    second = bundle(tmp_path / "b", x=[3], y=[4, 5])
    first = bundle(tmp_path / "a", v=[1], w=[2])

    merge_bundles([first, second], str(tmp_path / "new" / "m"))

    assert files(tmp_path) == ["new"]
    assert files(tmp_path / "new") == ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    assert read(tmp_path / "new" / "m") == {"v": [1], "w": [2], "x": [3], "y": [4, 5]}
    with BundleReader(str(tmp_path / "new" / "m")) as reader:
        assert reader.num_shards == 2
        assert [reader.place(name)[0] for name in "vwxy"] == [0, 0, 1, 1]


def test_a_merged_bundle_is_merged_again(tmp_path: Path) -> None:
    merge_bundles([bundle(tmp_path / "a", a=[1]), bundle(tmp_path / "b", b=[2])], str(tmp_path / "m"))

    merge_bundles([bundle(tmp_path / "c", c=[3]), str(tmp_path / "m")], str(tmp_path / "n"))

    assert read(tmp_path / "n") == {"a": [1], "b": [2], "c": [3]}
    assert files(tmp_path) == [*(f"n.data-0000{number}-of-00003" for number in range(3)), "n.index"]


def test_one_bundle_is_renamed(tmp_path: Path) -> None:
    merge_bundles([bundle(tmp_path / "a", x=[1])], str(tmp_path / "m"))

    assert files(tmp_path) == ["m.data-00000-of-00001", "m.index"]
    assert read(tmp_path / "m") == {"x": [1]}


def test_a_bundle_may_be_merged_into_one_of_them(tmp_path: Path) -> None:
    merge_bundles([bundle(tmp_path / "m", x=[1]), bundle(tmp_path / "a", y=[2])], str(tmp_path / "m"))

    assert read(tmp_path / "m") == {"x": [1], "y": [2]}


def test_bundles_without_tensors_make_one_that_can_be_opened(tmp_path: Path) -> None:
    empty = bundle(tmp_path / "a")

    merge_bundles([empty, empty], str(tmp_path / "m"))  # its index is gone when it comes to the second

    with BundleReader(str(tmp_path / "m")) as reader:
        assert (reader.num_shards, reader.names()) == (1, [])
    assert not (tmp_path / "a.index").exists()


def test_parts_of_a_tensor_come_together_whichever_bundle_has_them(tmp_path: Path) -> None:
    first = bundle(tmp_path / "a", ("w", (6,), "0,2", [0, 1]), ("w", (6,), "4,2", [4, 5]))
    second = bundle(tmp_path / "b", ("w", (6,), "2,2", [2, 3]))

    merge_bundles([first, second], str(tmp_path / "m"))

    assert read(tmp_path / "m") == {"w": [0, 1, 2, 3, 4, 5]}


LEFT = ("w", (4,), "0,2", [1, 2])


@pytest.mark.parametrize(
    ("first", "second", "error", "said"),
    [
        ([], [], errors.InvalidArgumentError, "Duplicate tensor keyed by w encountered, when merging prefix: .*b$"),
        ([], [LEFT], errors.InvalidArgumentError, "Duplicate tensor keyed by w encountered"),
        ([LEFT], [], errors.InternalError, "w; attempting to merge in a non-slice bundle entry"),
        ([LEFT], [("w", (4,), "2,2", [1.5, 2])], errors.InvalidArgumentError, "w has another type or shape in .*b"),
        ([LEFT], [("w", (5,), "2,2", [3, 4])], errors.InvalidArgumentError, "w has another type or shape in .*b"),
    ],
)
def test_tensors_that_do_not_go_together_leave_all_as_it_was(
    tmp_path: Path, first: Any, second: Any, error: type[errors.OpError], said: str
) -> None:
    whole = {"w": [1, 2, 3, 4]}
    prefixes = [
        bundle(tmp_path / name, *slices, **({} if slices else whole)) for name, slices in (("a", first), ("b", second))
    ]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(error, match=said):
        merge_bundles(prefixes, str(tmp_path / "m"))

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_bundle_that_is_missing_is_told_and_all_stays_as_it_was(tmp_path: Path) -> None:
    there, missing = bundle(tmp_path / "a", x=[1]), str(tmp_path / "b")
    before = files(tmp_path)

    with pytest.raises(errors.InvalidArgumentError, match=f"false and {missing} did not exist.*{missing}.index not"):
        merge_bundles([there, missing], str(tmp_path / "m"))
    with pytest.raises(errors.InvalidArgumentError, match="At least one prefix checkpoint file must exist"):
        merge_bundles([missing], str(tmp_path / "m"), allow_missing_files=True)
    with pytest.raises(errors.InvalidArgumentError, match="At least one prefix checkpoint file must exist"):
        merge_bundles([], str(tmp_path / "m"))
    assert files(tmp_path) == before

    merge_bundles([missing, there], str(tmp_path / "m"), allow_missing_files=True)
    assert read(tmp_path / "m") == {"x": [1]}
