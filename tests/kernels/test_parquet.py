"""The dataset of a Parquet file by its op: components, their shapes, remainders, parts, saved iterators, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support import parquet_tables
from support.dataset_machines import drained, plain
from support.kernel_runs import Steps
from tenfold_core import dtypes, errors, graph_files
from tenfold_kernels.resources.datasets.core import Dataset, Run, dataset_of

if TYPE_CHECKING:
    from pathlib import Path

LONG, S = dtypes.int64, dtypes.string


@pytest.fixture
def steps() -> Steps:
    return Steps()


def scalar(text: str) -> np.ndarray:
    array = np.empty((), object)
    array[()] = text.encode()
    return array


def parquet(steps: Steps, path: Any, size: int = 4, **attrs: Any) -> Dataset:
    fields = {"field_names": [b"id"], "field_dtypes": [LONG], "field_ragged_ranks": [0]}
    return dataset_of(steps("ParquetTabularDatasetV1", scalar(str(path)), np.array(size, np.int64), **(fields | attrs)))


def test_batches_of_a_column(steps: Steps, tmp_path: Path) -> None:
    found = parquet(steps, parquet_tables.write(tmp_path / "f"))
    assert drained(found) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (found.types, [shape.as_list() for shape in found.shapes]) == ((LONG,), [[None]])
    assert found.is_slow


def test_lists_are_values_and_where_they_begin(steps: Steps, tmp_path: Path) -> None:
    attrs = {"field_names": [b"deep", b"name"], "field_dtypes": [LONG, S], "field_ragged_ranks": [2, 0]}
    found = parquet(steps, parquet_tables.write(tmp_path / "f"), 9, drop_remainder=True, **attrs)
    ((values, outer, inner, names),) = drained(found)
    assert values[:6] == [0, 0, 0, 1, 1, 1]
    assert outer == list(range(0, 19, 2))
    assert inner[:5] == [0, 1, 3, 4, 6]
    assert names == [b"n%d" % i for i in range(9)]
    assert found.types == (LONG, dtypes.int32, dtypes.int32, S)
    assert [shape.as_list() for shape in found.shapes] == [[None], [10], [None], [9]]


def test_a_remainder_is_left_away(steps: Steps, tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f")
    assert drained(parquet(steps, path, drop_remainder=True)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    lists = {"field_names": [b"seen"], "field_ragged_ranks": [1], "drop_remainder": True}
    assert [starts for _, starts in drained(parquet(steps, path, 9, **lists))] == [[0, 0, 1, 3, 3, 4, 6, 6, 7, 9]]
    assert [starts for _, starts in drained(parquet(steps, path, 6, **lists))] == [[0, 0, 1, 3, 3, 4, 6]]


def test_every_second_row_group(steps: Steps, tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f")
    parts = [drained(parquet(steps, path, 3, partition_count=2, partition_index=index)) for index in (0, 1)]
    assert parts == [[[0, 1, 2], [3, 8, 9]], [[4, 5, 6], [7]]]
    assert drained(parquet(steps, path, partition_count=9, partition_index=8)) == []


def test_an_iterator_goes_on_where_it_was_saved(steps: Steps, tmp_path: Path) -> None:
    found = parquet(steps, parquet_tables.write(tmp_path / "f"), 3)
    machine = found.iterate(Run())
    machine.following()
    state = machine.save()
    again = found.iterate(Run())
    again.following()
    again.following()
    again.restore(state)
    for each in (machine, again):
        assert [plain(e) for e in iter(each.following, None)] == [[3, 4, 5], [6, 7, 8], [9]]


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"partition_count": 2, "partition_index": 2}, "partition_index must be at least 0 and less than"),
        ({"partition_index": -1}, "partition_index must be at least 0"),
        ({"field_dtypes": [LONG, LONG]}, "must be as many, got 1, 2 and 1"),
        ({"field_ragged_ranks": [-1]}, "field_ragged_ranks must not be negative"),
        ({"size": 0}, "batch_size must be greater than zero, got 0"),
    ],
)
def test_datasets_that_cannot_be(steps: Steps, tmp_path: Path, attrs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        parquet(steps, tmp_path / "f", **attrs)


def test_what_the_first_element_says_of_a_file(steps: Steps, tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f")
    (tmp_path / "cut").write_bytes((tmp_path / "f").read_bytes()[:-20])
    for made, kind in (
        (parquet(steps, tmp_path / "none"), errors.NotFoundError),
        (parquet(steps, tmp_path / "cut"), errors.DataLossError),
        (parquet(steps, path, field_names=[b"odd"]), errors.NotFoundError),
        (parquet(steps, path, field_dtypes=[S]), errors.InvalidArgumentError),
        (parquet(steps, "/proc/self/environ"), errors.PermissionDeniedError),
    ):
        machine = made.iterate(Run())
        with pytest.raises(kind):
            machine.following()
        assert machine.following() is None, "and it is over"


def test_a_graph_reads_the_files_that_it_may(steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet_tables.write(tmp_path / "f")
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(graph_files, "_current", graph_files.GraphFiles(str(tmp_path / "mine")))
    with pytest.raises(errors.PermissionDeniedError, match="the folder that graphs may use"):
        drained(parquet(steps, path))
