"""Increments through DeepRec's ops, as its graphs have them: recorded, saved, read back; files of DeepRec's layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_core.checkpoint import BundleReader, BundleWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

raw = tf.raw_ops
IDS = [0, 1, 2, 5, 6, 7]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def longs(*values: int) -> Any:
    return tf.constant(values, tf.int64)


def table(session: tf.Session, **options: Any) -> Any:
    made = tf.get_embedding_variable("v", 3, initializer=tf.ones_initializer(), **options)
    session.run(tf.global_variables_initializer())
    return made


def exported(session: tf.Session, variable: Any) -> dict[int, list[float]]:
    found = session.run(variable.export())
    return dict(zip(found.keys.tolist(), found.values.tolist(), strict=True))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_rows_of_other_types(session: tf.Session, tmp_path: Path, dtype: Any) -> None:
    """Restored by one op, and read by one and put in place by another."""
    variable, prefix = table(session, value_dtype=dtype), str(tmp_path / "incr")
    with BundleWriter(prefix) as writer:
        keys = np.array([7, 1 << 40], np.int64)
        writer.add("v-sparse_incr_keys", keys, tf.int64)
        writer.add("v-sparse_incr_values", np.full((2, 3), 0.5, dtype.as_numpy_dtype), dtype)
    read = raw.KvResourceIncrRead(
        prefix=prefix, resource_handle=variable.handle, tensor_names="v", Tkeys=tf.int64, dtype=dtype
    )
    names = ("keys", "values", "versions", "freqs", "removed")
    parts = {name: getattr(read, name) for name in names}
    apply = raw.KvResourceIncrApply(resource_handle=variable.handle, **parts)
    for makes in (import_of(variable, prefix), apply):
        session.run(tf.nn.embedding_lookup(variable, longs(7, 8)))
        session.run(makes)
        found = session.run(variable.export())
        rows = dict(zip(found.keys.tolist(), np.asarray(found.values, np.float64).tolist(), strict=True))
        assert rows == {7: [0.5] * 3, 8: [1.0] * 3, 1 << 40: [0.5] * 3}
        gone = {**parts, "keys": longs(), "values": tf.zeros([0, 3], dtype), "removed": longs(1 << 40, 7)}
        gone |= {each: longs() for each in ("versions", "freqs")}
        session.run(raw.KvResourceIncrApply(resource_handle=variable.handle, **gone))
        assert session.run(variable.export()).keys.tolist() == [8]


def import_of(variable: Any, prefix: str) -> Any:
    return variable.changed(tf.constant(prefix), "v")


def test_an_embedding_variable_by_recorded_indices(session: tf.Session, tmp_path: Path) -> None:
    variable, prefix = table(session), str(tmp_path / "incr")
    rows = tf.nn.embedding_lookup(variable, longs(*IDS, 9))
    record = raw.RecordSparseIndices(keys=longs(*IDS), var_name="v")
    none = tf.constant([], tf.string)
    save = raw.IncrSave(
        prefix=prefix, tensor_names=["v"], shape_and_slices=none, is_sparse=[True], tensors=[variable.handle]
    )
    session.run(rows)
    session.run(record)
    session.run(save)
    with BundleReader(prefix) as reader:
        assert reader.read("v-sparse_incr_keys").size == 0, "nothing is recorded yet"
    session.run(raw.ActivateSparseRecorder(tensor_names=["v"]))
    session.run(record)
    session.run(save)

    with BundleReader(prefix) as reader:
        assert reader.names() == [
            *("v-incr_partition_offset", "v-sparse_incr_freqs", "v-sparse_incr_keys", "v-sparse_incr_values"),
            "v-sparse_incr_versions",
        ]
        assert reader.read("v-sparse_incr_keys").tolist() == IDS
        assert reader.read("v-sparse_incr_values").tolist() == np.ones((6, 3)).tolist()
        offsets = reader.read("v-incr_partition_offset")
        assert (offsets.dtype, offsets.shape, offsets[[0, 3, 8, 1000]].tolist()) == (np.int32, (1001,), [0, 3, 6, 6])
    read = raw.IncrRestore(
        prefix=prefix,
        tensor_names=["v-keys", "v-values", "v-versions"],
        shape_and_slices=[""],
        is_sparse=[True],
        in_tensors=[longs(), tf.zeros([0, 3]), longs()],
    )
    keys, values, versions = session.run(read)
    assert (keys.tolist(), values.shape, versions.shape) == (IDS, (6, 3), (6,))


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_an_ordinary_variable_by_recorded_indices(session: tf.Session, tmp_path: Path, dtype: Any) -> None:
    full, prefix = str(tmp_path / "full"), str(tmp_path / "incr")
    variable = tf.get_variable("w", [20, 3], initializer=tf.constant_initializer(1))
    session.run(tf.global_variables_initializer())
    session.run(raw.SaveV2(prefix=full, tensor_names=["w"], shape_and_slices=[""], tensors=[variable]))
    session.run(raw.ActivateSparseRecorder(tensor_names=["w"]))
    record = raw.RecordSparseIndices(keys=tf.constant([*IDS, 25], dtype), var_name="w")
    session.run([record, variable.assign_add(tf.ones([20, 3]))])
    session.run(
        raw.IncrSave(
            prefix=prefix, tensor_names=["w"], shape_and_slices=[""], is_sparse=[True], tensors=[variable.read_value()]
        )
    )
    whole = raw.RestoreV2(prefix=full, tensor_names=["w"], shape_and_slices=[""], dtypes=[tf.float32])
    (value,) = session.run(
        raw.IncrRestore(prefix=prefix, tensor_names=["w"], shape_and_slices=[""], is_sparse=[True], in_tensors=whole)
    )

    expected = np.ones((20, 3))
    expected[IDS] = 2
    assert value.tolist() == expected.tolist()


def test_files_that_deeprec_wrote(session: tf.Session, tmp_path: Path) -> None:
    """Two parts, keys with what DeepRec has of them and nothing of ours, read into one table."""
    prefix = str(tmp_path / "incr")
    with BundleWriter(prefix) as writer:
        for part, keys in ((0, [2000, 4]), (1, [3])):
            name, count = f"v/part_{part}", len(keys)
            writer.add(f"{name}-sparse_incr_keys", np.array(keys, np.int64))
            writer.add(f"{name}-sparse_incr_values", np.full((count, 3), 7 + part, np.float32))
            writer.add(f"{name}-sparse_incr_versions", np.full(count, 5, np.int64))
            writer.add(f"{name}-sparse_incr_freqs", np.full(count, 9, np.int64))
            offsets = np.searchsorted([0, 4] if part == 0 else [3], np.arange(1001)).astype(np.int32)
            writer.add(f"{name}-incr_partition_offset", offsets)
    variable = table(session, ev_option=tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(2)))
    session.run(tf.nn.embedding_lookup(variable, longs(4, 1)))

    session.run(import_of(variable, prefix))

    assert exported(session, variable) == {4: [7.0] * 3, 2000: [7.0] * 3, 3: [8.0] * 3}
    assert session.run(variable.get_frequency(longs(4, 3, 1))).tolist() == [9, 9, 1]


def test_collected_indices(session: tf.Session) -> None:
    session.run(raw.RecordSparseIndices(keys=longs(4, 1, 4), var_name="w", auto_record=True))
    given = {"tensor_name": "w", "ktype": tf.int64}
    by_mod = raw.CollectSparseIndices(
        **given, part_idx=1, part_count=3, hash_bucket_size=20, part_mode="mod", config="update_count_thd=2"
    )
    by_div = raw.CollectSparseIndices(**given, part_idx=1, part_count=3, hash_bucket_size=20)

    assert [each.tolist() for each in session.run(by_mod)] == [[4], [13]]
    assert [each.tolist() for each in session.run(by_div)] == [[], []]
    session.run(raw.RecordSparseIndices(keys=longs(4), var_name="w"))
    assert [each.tolist() for each in session.run(by_div)] == [[4], [11]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a number, not 'many'"):
        session.run(raw.CollectSparseIndices(**given, config="update_count_thd=many"))


def test_what_does_not_fit(session: tf.Session, tmp_path: Path) -> None:
    variable, prefix = table(session), str(tmp_path / "incr")
    with BundleWriter(prefix) as writer:
        writer.add("v-sparse_incr_keys", np.array([1], np.int64))
        writer.add("v-sparse_incr_values", np.zeros((1, 4), np.float32))
        writer.add("w-sparse_incr_keys", np.array([1], np.int64))
        writer.add("w-sparse_incr_values", np.zeros((1, 4), np.float32))
    session.run(tf.nn.embedding_lookup(variable, longs(1)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"v has rows of 3 elements; 1 keys came with .*\[1,4\]"):
        session.run(import_of(variable, prefix))
    assert exported(session, variable) == {1: [1.0] * 3}, "nothing has changed"
    with pytest.raises(tf.errors.NotFoundError, match="Key x-sparse_incr_keys not found in checkpoint"):
        session.run(variable.changed(tf.constant(prefix), "x"))
    given = {"prefix": prefix, "shape_and_slices": [""], "is_sparse": [True], "in_tensors": [tf.zeros([5, 3])]}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"w has rows of shape \[3\], but .* a value of \[1, 4\]"):
        session.run(raw.IncrRestore(tensor_names=["w"], **given))
    with pytest.raises(tf.errors.NotFoundError, match="Key u not found"):
        session.run(raw.IncrRestore(tensor_names=["u"], **given))
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 2 names and 1 tensors"):
        session.run(raw.IncrRestore(tensor_names=["u", "w"], **{**given, "shape_and_slices": ["", ""]}))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Got 1 tensor names, 2 elements of is_sparse"):
        session.run(
            raw.IncrSave(
                prefix=prefix,
                tensor_names=["w"],
                shape_and_slices=[""],
                is_sparse=[True, True],
                tensors=[tf.zeros([1])],
            )
        )
    with pytest.raises(tf.errors.FailedPreconditionError, match="v cannot say what has changed since elsewhere"):
        session.run(
            raw.IncrSave(
                prefix=prefix,
                tensor_names=["v", "_incremental/since"],
                shape_and_slices=["", ""],
                is_sparse=[True, False],
                tensors=[variable.handle, tf.constant("elsewhere")],
            )
        )
