"""Datasets of Parquet files as programs write them: fields found or given, files by a dataset, lists, refusals."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support import parquet_tables
from tenfold.compat import tensorflow_paths
from tenfold.data import parquet
from tenfold.data.dataframe import DataFrame, input_fields, to_sparse, unbatch_and_to_sparse
from tenfold.data.parquet import DataFrameValueSpec, ParquetDataset, read_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Field = DataFrame.Field
ID, SEEN = Field("id", tf.int64, 0), Field("seen", tf.int64, 1)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def path(tmp_path: Path) -> str:
    return parquet_tables.write(tmp_path / "f")


def elements(dataset: Any, convert: Any = lambda batch: batch) -> list[Any]:
    batch = convert(tf.data.make_one_shot_iterator(dataset).get_next())
    found = []
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(batch))
            except tf.errors.OutOfRangeError:
                return found


def ids(dataset: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in elements(dataset)]


def test_all_columns_are_found(path: str) -> None:
    dataset = ParquetDataset(path, batch_size=4)
    assert [str(field) for field in dataset.fields][:3] == [
        "id (dtype=int64, shape=unknown)",
        "name (dtype=string, shape=unknown)",
        "seen (dtype=list<int64>, shape=unknown)",
    ]
    assert repr(dataset.fields[3]) == "deep (dtype=list^2<int64>, shape=unknown)"
    found = elements(dataset)
    assert [sorted(batch) for batch in found] == [["deep", "id", "name", "pair", "seen"]] * 3
    assert found[2]["name"].tolist() == [b"n8", b"n9"]
    seen = found[0]["seen"]
    assert isinstance(seen, DataFrame.Value)
    assert (seen.values.tolist(), seen.nested_row_splits[0].tolist()) == ([0, 0, 1], [0, 0, 1, 3, 3])
    assert repr(seen) == f"{{{seen.values}, splits={seen.nested_row_splits}}}"


def test_names_of_columns_are_enough(path: str) -> None:
    schema = ParquetDataset.read_schema(path, ["ID", Field("Name")], lower=True)
    assert schema == (ID, Field("name", tf.string, 0))
    assert ids(ParquetDataset([path], batch_size=8, fields=schema)) == [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9]]


def test_types_and_shapes_are_those_of_the_fields(path: str) -> None:
    dataset = ParquetDataset(path, 4, fields=["id", "seen"], drop_remainder=True, partition_count=2, partition_index=1)
    assert dataset.output_types == {"id": tf.int64, "seen": DataFrame.Value(tf.int64, [tf.int32])}
    assert dataset.output_classes["seen"] == DataFrame.Value(tf.Tensor, [tf.Tensor])
    assert dataset.output_shapes["id"].as_list() == [4]
    assert (dataset.partition_count, dataset.partition_index, dataset.drop_remainder) == (2, 1, True)
    assert ids(dataset) == [[4, 5, 6, 7]]


def test_an_iterator_by_types_and_shapes_reads_it(path: str) -> None:
    dataset = ParquetDataset(path, 6, fields=["deep"]).prefetch(2)
    types, shapes = tf.data.get_output_types(dataset), tf.data.get_output_shapes(dataset)
    iterator = tf.data.Iterator.from_structure(types, shapes)
    batch = iterator.get_next()["deep"].to_sparse()
    with tf.Session() as session:
        session.run(iterator.make_initializer(dataset))
        found = session.run(batch)
    assert found.dense_shape.tolist() == [6, 2, 2]
    assert found.indices[:3].tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]


@pytest.mark.parametrize("reads", [None, 3, tf.data.experimental.AUTOTUNE])
def test_files_that_a_dataset_names(path: str, reads: Any) -> None:
    def names() -> Iterator[str]:
        yield from (path, path)

    files = tf.data.Dataset.from_generator(names, tf.string, tf.TensorShape([]))
    dataset = files.apply(read_parquet(5, fields=[ID], num_parallel_reads=reads)).prefetch(4)
    assert sorted(ids(dataset)) == [[0, 1, 2, 3, 4]] * 2 + [[5, 6, 7, 8, 9]] * 2


def test_files_that_a_tensor_names(path: str) -> None:
    dataset = ParquetDataset(tf.constant(path), 10, fields=(ID,), num_parallel_reads=1, num_sequential_reads=2)
    assert ids(dataset) == [list(range(10))]


def test_lists_become_sparse_tensors_in_the_pipeline(path: str) -> None:
    (batch,) = elements(ParquetDataset(path, 10, fields=[ID, SEEN]).apply(to_sparse()))
    assert batch["id"].tolist() == list(range(10))
    assert batch["seen"].dense_shape.tolist() == [10, 2]
    assert batch["seen"].values.tolist() == [value for row in parquet_tables.LISTS for value in row]


def test_one_row_loses_its_dimension(path: str) -> None:
    rows = elements(ParquetDataset(path, 1, fields=["id", "seen", "deep"]).apply(unbatch_and_to_sparse(2)))
    assert (rows[2]["id"].tolist(), rows[2]["seen"].values.tolist()) == ([2], [0, 1])
    assert rows[2]["seen"].indices.tolist() == [[0], [1]]
    assert rows[2]["deep"].indices.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert DataFrame.unbatch_and_to_sparse(DataFrame.Value(tf.constant([3]))).shape.as_list() == [1]


def test_a_field_with_a_shape_is_dense(path: str) -> None:
    dataset = ParquetDataset(path, 4, fields=[Field("pair", shape=[2]), Field("id", shape=[1])])
    found = elements(dataset, DataFrame.to_sparse)
    assert [batch["pair"].shape for batch in found] == [(4, 2), (4, 2), (2, 2)]
    assert found[2]["pair"].tolist() == [[8.5, 7.5], [9.5, 8.5]]
    assert found[2]["id"].tolist() == [[8], [9]]
    assert dataset.fields[0].output_shapes == DataFrame.Value(tf.TensorShape([None, 2]), [tf.TensorShape([None])])


def test_fields_are_those_of_the_source(path: str) -> None:
    dataset = ParquetDataset(path, 4, fields=["id"])
    assert input_fields(dataset.prefetch(1).repeat(2)) == (ID,)
    assert input_fields(dataset, [SEEN]) == [SEEN]
    for fields, message in ((None, "must be specified"), (ID, "must be a list"), (["id"], "and has 'id'")):
        with pytest.raises(ValueError, match=message):
            input_fields(tf.data.Dataset.range(3), fields)


def test_fields_say_what_they_are() -> None:
    assert Field("a").incomplete
    assert Field("a", np.object_, 0).dtype == tf.string
    assert (SEEN.ragged_indices, Field("a", tf.int32, 0).ragged_indices) == (DataFrame.Value(0, [1]), 0)
    assert hash(ID) == hash(Field("id", "int64", 0))
    for make, message in (
        (lambda: Field("a", tf.int32, 2, [3]), "lists of lists"),
        (lambda: Field("a", tf.int32, 1, [None]), "is not fully known"),
        (lambda: Field("a").output_types, "is incomplete"),
        (lambda: DataFrameValueSpec(Field("a")), "is incomplete"),
        (lambda: DataFrame.to_sparse([1]), "neither a tensor nor"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["odd"], "no column 'odd'; there are id, name"),
        ([Field("id", tf.float32)], "Field id of .* has dtype int64, not float32"),
        ([Field("seen", tf.int64, 0)], "Field seen of .* has ragged_rank 1, not 0"),
        ([Field("id", shape=[2])], "has one value a row, which has no shape"),
        ([3], "neither a DataFrame.Field nor a string"),
    ],
)
def test_fields_that_the_file_has_otherwise(path: str, fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParquetDataset(path, fields=fields)


def test_names_that_are_none(path: str) -> None:
    with pytest.raises(ValueError, match="3 in `filenames` must be a string"):
        ParquetDataset([path, 3])
    with pytest.raises(ValueError, match="`filenames` is empty"):
        ParquetDataset([])
    with pytest.raises(ValueError, match="must be a name, a list, a tensor or a dataset"):
        ParquetDataset(3)
    with pytest.raises(TypeError, match="must be a tensor of strings, got int32"):
        ParquetDataset(tf.constant(3), fields=[ID])
    with pytest.raises(TypeError, match=r"of `tf.string` elements"):
        ParquetDataset(tf.data.Dataset.range(3), fields=[ID])
    for fields, message in (
        (None, "must be a list of DataFrame.Field"),
        (["id"], "'id' must be"),
        ([Field("id")], "inco"),
    ):
        with pytest.raises(ValueError, match=message):
            ParquetDataset(tf.constant(path), fields=fields)


def test_files_that_cannot_be_read(path: str, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes((tmp_path / "f").read_bytes()[:-20])
    for name, kind in (("none", tf.errors.NotFoundError), ("cut", tf.errors.DataLossError)):
        with pytest.raises(kind, match=name):
            ParquetDataset(str(tmp_path / name))
        with pytest.raises(kind, match=name):
            ids(ParquetDataset(tf.constant([path, str(tmp_path / name)]), 100, fields=[ID]))


def test_without_pyarrow_the_error_names_the_extra(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(tf.errors.UnimplementedError, match=r"tenfold\[parquet\]"):
        ParquetDataset(path)


def test_deeprecs_module_paths_are_these_modules() -> None:
    at = "python.data.experimental.ops."
    assert tensorflow_paths.HOMES[f"{at}parquet_dataset_ops"] == parquet.__name__
    assert tensorflow_paths.HOMES[f"{at}dataframe"] == DataFrame.__module__
    assert tensorflow_paths.HOMES[f"{at}parquet_pybind"] == parquet.__name__
