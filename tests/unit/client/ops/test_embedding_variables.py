"""`tf.get_embedding_variable`: looked up, trained by each optimizer that can, in parts, saved, restored, shared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.compat.python.embedding_config import StorageType
from tenfold.ops.embedding_variables import EmbeddingVariable, is_embedding_variable

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS = [0, 1, 2, 5, -6, 1 << 40]


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def variable(name: str = "v", dim: int = 3, **more: Any) -> Any:
    return tf.get_embedding_variable(name, embedding_dim=dim, initializer=tf.ones_initializer(), **more)


def looked_up(table: Any, ids: Any = tuple(IDS)) -> Any:
    return tf.nn.embedding_lookup(table, tf.constant(ids, tf.int64))


def table_of(session: tf.Session, var: Any) -> dict[int, list[float]]:
    keys, values, _, _ = session.run(var.export())
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


def test_rows_come_with_their_first_lookup() -> None:
    var = variable()
    rows = looked_up(var)
    assert rows.shape.as_list() == [6, 3]
    assert (var.shape.as_list(), var.dtype, var.key_dtype) == ([3], tf.float32, tf.int64)
    assert tf.trainable_variables() == tf.global_variables() == [var]
    with tf.Session() as session:
        assert session.run(tf.report_uninitialized_variables()).tolist() == [b"v"]
        session.run(tf.global_variables_initializer())

        assert session.run(tf.report_uninitialized_variables()).tolist() == []
        assert session.run(rows).tolist() == [[1, 1, 1]] * 6
        assert session.run(var.total_count()).tolist() == [6, 3]
        assert sorted(table_of(session, var)) == sorted(IDS)


def test_each_id_begins_with_its_row_of_a_matrix() -> None:
    first = tf.InitializerOption(
        initializer=tf.random_uniform_initializer(seed=5), default_value_dim=7, default_value_no_permission=0.5
    )
    option = tf.EmbeddingVariableOption(init_option=first)
    var = tf.get_embedding_variable("v", embedding_dim=4, ev_option=option)
    rows = looked_up(var, [3, 10, -3, 4])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(rows)

    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    assert (found[0] != found[3]).any()


def test_ids_of_other_types() -> None:
    var = variable(key_dtype=tf.int32)
    rows = tf.nn.embedding_lookup(var, tf.constant([[1], [2]], tf.int32))
    wide = tf.nn.embedding_lookup(var, tf.constant([1], tf.int64))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        assert session.run(rows).shape == (2, 1, 3)
        assert session.run(wide).shape == (1, 3)
        assert session.run(var.export()[0]).dtype == np.int32
    with pytest.raises(TypeError, match="int64 or int32, not string"):
        variable("w", key_dtype=tf.string)


OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Momentum, Nesterov's": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
    "AdamAsync": lambda: tf.train.AdamAsyncOptimizer(0.1),
    "AdamAsync, by RMSProp": lambda: tf.train.AdamAsyncOptimizer(0.1, apply_sparse_rmsprop=True),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l2_regularization_strength=0.1),
    "Ftrl, another power": lambda: tf.train.FtrlOptimizer(0.1, learning_rate_power=-0.7),
    "FtrlV2": lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.2),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("parts", [None, 3])
def test_training_is_that_of_a_dense_table(optimizer: str, parts: int | None) -> None:
    """All rows are looked up in each step, some more than once: Adam's moments decay everywhere in the dense one."""
    ids = [0, 1, 2, 3, 4, 5, 2, 2, 5]
    losses = {}
    for kind in ("dense", "embedding"):
        with tf.Graph().as_default(), tf.Session() as session:
            if kind == "dense":
                table = tf.get_variable("v", [6, 3], initializer=tf.ones_initializer(), use_resource=True)
            else:
                divide = tf.fixed_size_partitioner(parts) if parts else None
                table = variable(partitioner=divide)
            rows = looked_up(table, ids)
            scale = tf.constant(np.arange(27).reshape(9, 3), tf.float32)
            loss = tf.reduce_sum(tf.square(rows * scale - 1.0))
            train = OPTIMIZERS[optimizer]().minimize(loss, global_step=tf.train.get_or_create_global_step())
            session.run(tf.global_variables_initializer())
            found = [session.run([loss, train])[0] for _ in range(6)]
            losses[kind] = [*found, *session.run(rows).reshape(-1)]

    np.testing.assert_allclose(losses["embedding"], losses["dense"], rtol=1e-5)


def test_ftrl_regularizes_the_norm_of_a_row() -> None:
    """DeepRec's numbers, to the last bit: l1 bounds the norm of a row where a dense variable's bounds each element."""
    var = variable()
    rows = looked_up(var, [0, 0, 0, 1, 1, 2])
    optimizer = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=2.0, l2_regularization_strength=0.00001)
    train = optimizer.minimize(tf.reduce_sum(rows * 2.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        found = session.run(rows)

    assert found[::2, 0].astype(str).tolist()[:2] == ["0.8282884", "0.8282884"]
    assert str(found[3, 1]) == "0.7927219"
    strong = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=1e9, name="strong").minimize(tf.reduce_sum(rows))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(strong)
        assert session.run(rows).tolist() == [[0, 0, 0]] * 6


@pytest.mark.parametrize("decays", [True, False])
def test_adamw_decays_rows_that_have_a_gradient(decays: bool) -> None:
    """By Adam's rate of the step times the decay, which is the rate of the first step to within epsilon."""
    var, other = variable(), tf.get_variable("w", initializer=tf.ones([3]))
    rows, kept = looked_up(var, [1]), looked_up(var, [2])
    optimizer = tf.train.AdamWOptimizer(0.5, learning_rate=0.1)
    loss = tf.reduce_sum(rows) + tf.reduce_sum(other)
    train = optimizer.minimize(loss, decay_var_list=None if decays else [other])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(kept)
        session.run(train)

        rate = 0.1 * np.sqrt(0.001) / 0.1
        expected = 1 - 0.1 - (0.5 * rate if decays else 0)
        np.testing.assert_allclose(session.run(rows), [[expected] * 3], rtol=1e-4)
        assert session.run(kept).tolist() == [[1, 1, 1]]
        np.testing.assert_allclose(session.run(other), [1 - 0.5 - 0.1] * 3, rtol=1e-5)


def test_weight_decay_without_an_update_says_so() -> None:
    loss = tf.reduce_sum(looked_up(variable()))
    with pytest.raises(
        NotImplementedError, match="MomentumWOptimizer has no weight decay of embedding variables, as v:0"
    ):
        tf.contrib.opt.MomentumWOptimizer(0.1, 0.1, 0.9).minimize(loss)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_half_rows_are_trained_and_saved(dtype: Any, tmp_path: Path) -> None:
    var = tf.get_embedding_variable(
        "v", 3, value_dtype=dtype, initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    rows = looked_up(var, [3, 4, 3])
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.cast(rows, tf.float32) * [1.0, 2.0, 3.0]))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        before = session.run(rows)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(train)
        after = session.run(rows)
    with tf.Session() as session:
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(rows), before)
        session.run(train)
        np.testing.assert_array_equal(session.run(rows), after)

    assert before.dtype == dtype.as_numpy_dtype
    twice = np.array([2.0, 4.0, 6.0])
    expected = 1 - 0.1 * twice / np.sqrt(0.1 + twice * twice)
    np.testing.assert_allclose(before[0].astype(np.float32), expected, rtol=0.004)


def test_an_optimizer_without_an_update_says_so() -> None:
    loss = tf.reduce_sum(looked_up(variable()))
    with pytest.raises(
        NotImplementedError, match="RMSPropOptimizer has no update of embedding variables, as v:0 is one"
    ):
        tf.train.RMSPropOptimizer(0.1).minimize(loss)


def test_gradients_of_several_lookups_are_added() -> None:
    var = variable()
    loss = tf.reduce_sum(looked_up(var, [1, 2])) + 2.0 * tf.reduce_sum(looked_up(var, [2, 3]))
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)

        assert table_of(session, var) == {1: [0.75] * 3, 2: [0.25] * 3, 3: [0.5] * 3}


def test_synchronous_training_means_the_gradients_of_all() -> None:
    var = variable()
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.5), 1, total_num_replicas=1)
    train = optimizer.minimize(tf.reduce_sum(looked_up(var, [5, 5, 8])), global_step=step)
    exported = var.export()
    with tf.train.MonitoredTrainingSession(hooks=[optimizer.make_session_run_hook(is_chief=True)]) as session:
        for _ in range(2):
            session.run(train)
        keys, values, _, _ = session.run(exported)

    found = dict(zip(keys.tolist(), values[:, 0].tolist(), strict=True))
    # the last update may be under way
    assert found in ({5: 0, 8: 0.5}, {5: -1, 8: 0})


def test_sparse_lookups_are_combined() -> None:
    var = variable()
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([7, 7, 8], tf.int64), [2, 2])
    summed = tf.nn.embedding_lookup_sparse(var, ids, None, combiner="sum")
    gradient = tf.gradients(summed, [var])[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())

        assert session.run(summed).tolist() == [[2, 2, 2], [1, 1, 1]]
        slices = session.run(gradient)
        total = dict.fromkeys(slices.indices.tolist(), 0.0)
        for key, row in zip(slices.indices.tolist(), slices.values, strict=True):
            total[key] += row[0]
        assert total == {7: 2, 8: 1}


def test_filters_counts_and_versions() -> None:
    admit = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2))
    var = variable(ev_option=admit, steps_to_live=5)
    ids = tf.constant([4, 9], tf.int64)
    rows = var.sparse_read(ids, counts=tf.constant([2, 1]))
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_sum(rows)
    with tf.control_dependencies([rows]):
        train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train)

        assert session.run([var.get_frequency(ids), var.get_version(ids)])[0].tolist() == [2, 2]
        assert session.run(var.get_version(tf.constant([4, 9, 5], tf.int64))).tolist() == [1, 1, 0]
        first, second = session.run(rows)[:, 0]
        assert 0.8 < first < second < 1, "one was trained twice, the other when it was admitted"


def test_what_is_saved_is_restored_without_initializing(tmp_path: Path) -> None:
    option = tf.EmbeddingVariableOption(filter_option=tf.CBFFilter(filter_freq=2))
    var = variable(ev_option=option)
    rows, late = looked_up(var), looked_up(var, [77])
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(rows * rows))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        session.run(late)
        path = saver.save(session, str(tmp_path / "model"))
        before = session.run([var.export(), rows])
        session.run([train, late])
        after = session.run(rows)
    names = dict(tf.train.list_variables(path))
    assert names["v-keys"] == names["v-freqs"] == names["v-versions"] == [6]
    assert names["v-values"] == names["v/Adam-values"] == names["v/Adam_1-values"] == [6, 3]
    assert (names["v-keys_filtered"], names["v-partition_offset"]) == ([1], [1001])

    with tf.Session() as session:
        saver.restore(session, path)
        found = session.run([var.export(), rows])
        for mine, theirs in zip((*found[0], found[1]), (*before[0], before[1]), strict=True):
            assert sorted(mine.reshape(-1).tolist()) == sorted(theirs.reshape(-1).tolist())
        assert session.run(var.get_frequency(tf.constant([77], tf.int64))).tolist() == [1]
        session.run([train, late])
        np.testing.assert_array_equal(session.run(rows), after)
        saver.restore(session, path)
        assert session.run(var.total_count()).tolist() == [7, 3], "what came after the checkpoint is gone"


@pytest.mark.parametrize(("saved", "restored"), [(None, 3), (3, None), (3, 2), (2, 4), (3, 1), (1, 2)])
def test_a_checkpoint_may_be_read_into_other_parts(tmp_path: Path, saved: int | None, restored: int | None) -> None:
    ids = [*range(30), 1001, 2002, -17, 1 << 50]
    path = ""
    for parts, is_first in ((saved, True), (restored, False)):
        with tf.Graph().as_default(), tf.Session() as session:
            var = variable(partitioner=tf.fixed_size_partitioner(parts) if parts else None)
            rows = looked_up(var, ids)
            train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows * tf.range(34.0)[:, None]))
            saver = tf.train.Saver()
            if is_first:
                session.run(tf.global_variables_initializer())
                session.run(train)
                path = saver.save(session, str(tmp_path / "model"))
            else:
                saver.restore(session, path)
            found = session.run(rows)
            session.run(train)
            again = session.run(rows)
            if is_first:
                expected = found, again
            else:
                np.testing.assert_array_equal((found, again), expected)
                counts = [session.run(part.total_count())[0] for part in (var if parts else [var])]
                assert sum(counts) == 34


@pytest.mark.parametrize("parts", [None, 2])
def test_variables_and_slots_are_saved_under_names_of_the_programs_choice(tmp_path: Path, parts: int | None) -> None:
    var = variable(partitioner=tf.fixed_size_partitioner(parts) if parts else None)
    rows = looked_up(var)
    optimizer = tf.train.AdagradOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(rows))
    slot = (
        [optimizer.get_slot(part, "accumulator") for part in var] if parts else optimizer.get_slot(var, "accumulator")
    )
    saver = tf.train.Saver({"other": var, "sums": slot})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(train)
        after = session.run(rows)
    saved = [name for name, _ in tf.train.list_variables(path) if name.endswith("-keys")]
    if parts:
        assert saved == [
            "other/part_0-keys",
            "other/part_1-keys",
            "sums/part_0/Adagrad-keys",
            "sums/part_1/Adagrad-keys",
        ]
    else:
        assert saved == ["other-keys", "sums-keys"]

    with tf.Session() as session:
        saver.restore(session, path)
        session.run(train)
        np.testing.assert_array_equal(session.run(rows), after)


def test_old_ids_go_when_a_checkpoint_is_saved(tmp_path: Path) -> None:
    var = variable(steps_to_live=3)
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    once, always = (optimizer.minimize(tf.reduce_sum(looked_up(var, [id_])), global_step=step) for id_ in (1, 2))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(once)
        for _ in range(2):
            session.run(always)
        saver.save(session, str(tmp_path / "model"))
        assert sorted(table_of(session, var)) == [1, 2]
        session.run(always)
        saver.save(session, str(tmp_path / "model"))
        assert sorted(table_of(session, var)) == [2]


def test_age_goes_by_the_updates_of_all_tables_where_the_step_is_saved_elsewhere(tmp_path: Path) -> None:
    """As on a parameter server that has tables and no global step."""
    old, busy = variable(steps_to_live=3), tf.get_embedding_variable("busy", 2)
    step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    once, always = (
        optimizer.minimize(tf.reduce_sum(looked_up(var, [1])), global_step=step) for var in (old, busy)
    )  # fmt: skip
    savers = [tf.train.Saver(each) for each in ([old], [old, busy])]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(once)
        for _ in range(4):
            session.run(always)
        savers[0].save(session, str(tmp_path / "model"))
        assert sorted(table_of(session, old)) == [1], "of other tables it knows nothing"
        savers[1].save(session, str(tmp_path / "model"))
        assert sorted(table_of(session, old)) == []
        assert sorted(table_of(session, busy)) == [1]


@pytest.mark.parametrize("width", [2, 5])
@pytest.mark.parametrize("parts", [None, 2])
def test_rows_of_another_width_are_restored_where_that_is_asked_for(
    tmp_path: Path, width: int, parts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for dim in (3, width):
        with tf.Graph().as_default(), tf.Session() as session:
            divide = tf.fixed_size_partitioner(parts) if parts else None
            var = tf.get_embedding_variable("v", dim, initializer=tf.constant_initializer(7.0), partitioner=divide)
            rows = looked_up(var)
            train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows * tf.range(float(dim))))
            if dim == 3:
                session.run(tf.global_variables_initializer())
                session.run(train)
                path = tf.train.Saver().save(session, str(tmp_path / "model"))
            else:
                refused = tf.train.Saver()
                with pytest.raises(tf.errors.InvalidArgumentError, match=f"has rows of {width} elements; . keys came"):
                    refused.restore(session, path)
                monkeypatch.setenv("TF_EV_RESTORE_CUSTOM_DIM", "True")
                tf.train.Saver().restore(session, path)
            found[dim] = session.run(rows)
            session.run(train)

    common = min(3, width)
    assert (found[width][:, :common] == found[3][:, :common]).all()
    assert (found[width][:, common:] == 7).all(), "as in new rows"


def test_ids_that_wait_need_not_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_EV_SAVE_FILTERED_FEATURES", "False")
    var = variable(ev_option=tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2)))
    rows = looked_up(var, [1, 1, 2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(rows)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))

    names = dict(tf.train.list_variables(path))
    assert (names["v-keys"], names["v-keys_filtered"], names["v-freqs_filtered"]) == ([1], [0], [0])


def test_a_variable_is_shared_by_its_scope() -> None:
    with tf.variable_scope("s"):
        one = variable()
    with tf.variable_scope("s", reuse=True):
        assert variable() is one
    assert one.op.name == "s/v"
    with tf.variable_scope("s"), pytest.raises(ValueError, match="s/v already exists"):
        variable()
    with (
        tf.variable_scope("s", reuse=True),
        pytest.raises(ValueError, match="is there, but is no embedding variable of 5"),
    ):
        variable(dim=5)


def test_meta_graphs_bring_embedding_variables_back(tmp_path: Path) -> None:
    var = variable(partitioner=tf.fixed_size_partitioner(2))
    rows = tf.identity(looked_up(var), name="rows")
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows), name="train")
    assert train is not None
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run("train")
        path = saver.save(session, str(tmp_path / "model"))
        expected = session.run(rows)

    with tf.Graph().as_default(), tf.Session() as session:
        again = tf.train.import_meta_graph(path + ".meta")
        found = [each for each in tf.global_variables() if is_embedding_variable(each)]
        assert [each.op.name for each in found] == [
            *("v/part_0", "v/part_1", "v/part_0/Adagrad", "v/part_1/Adagrad"),
        ]
        assert [each.primary.op.name for each in found] == ["v/part_0", "v/part_1"] * 2
        again.restore(session, path)
        np.testing.assert_array_equal(session.run("rows:0"), expected)
        fresh = tf.train.Saver(tf.global_variables())
        fresh.restore(session, path)
        np.testing.assert_array_equal(session.run("rows:0"), expected)


def test_what_an_embedding_variable_has_not() -> None:
    var = variable()
    for call in (var.value, var.read_value, lambda: var.assign([1.0]), lambda: tf.identity(var), lambda: var + 1.0):
        with pytest.raises(NotImplementedError, match="v:0 has no tensor of all its rows: look ids up"):
            call()
    assert isinstance(var, EmbeddingVariable)
    with pytest.raises(NotImplementedError, match="cannot be filled from a data source"):
        variable("w", init_data_source="x")
    with pytest.raises(ValueError, match="default_value_dim must be positive, not 0"):
        tf.InitializerOption(default_value_dim=0)


def test_a_hook_saves_and_a_monitored_session_restores(tmp_path: Path) -> None:
    def run(steps: int) -> dict[int, list[float]]:
        with tf.Graph().as_default():
            var = variable()
            step = tf.train.get_or_create_global_step()
            train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(looked_up(var)), global_step=step)
            exported = var.export()
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, log_step_count_steps=None
            ) as session:
                for _ in range(steps):
                    session.run(train)
                keys, values, _, _ = session.run(exported)
            return dict(zip(keys.tolist(), values.tolist(), strict=True))

    run(3)
    assert run(2) == pytest.approx(run(0))


@pytest.mark.parametrize("kind", [StorageType.DRAM_SSDHASH, StorageType.LEVELDB])
def test_rows_may_be_on_a_disk(tmp_path: Path, kind: StorageType) -> None:
    """1,100 rows of 1,024 floats with a slot: more than the 4 MB that stay in memory."""
    option = tf.EmbeddingVariableOption(
        storage_option=tf.StorageOption(kind, storage_path=str(tmp_path / "rows"), storage_size=[1 << 20])
    )
    found = {}
    for options in ({"ev_option": option}, {}):
        with tf.Graph().as_default(), tf.Session() as session:
            var = variable(dim=1024, **options)
            ids = tf.placeholder(tf.int64, [None])
            rows = tf.nn.embedding_lookup(var, ids)
            train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows * tf.range(1024.0)))
            saver = tf.train.Saver()
            session.run(tf.global_variables_initializer())
            for first in range(0, 1100, 100):
                session.run(train, {ids: range(first, first + 110)})
            path = saver.save(session, str(tmp_path / "model"))
            found[len(options)] = session.run(rows, {ids: range(1110)})
            if options:
                files = {os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()}
                assert len([name for name in files if name.startswith(str(tmp_path / "rows"))]) == 2
                assert session.run(var.get_frequency(tf.constant([5, 105], tf.int64))).tolist() == [2, 3]
                assert session.run(var.lookup_tier(tf.constant([5, 1 << 40], tf.int64))).tolist() == [0, -1]
            saver.restore(session, path)
            np.testing.assert_array_equal(session.run(rows, {ids: range(1110)}), found[len(options)])

    np.testing.assert_array_equal(found[1], found[0])


def test_a_folder_for_rows_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    storage = tf.StorageOption(StorageType.SSDHASH, storage_path=str(tmp_path / "file/rows"))
    var = variable(ev_option=tf.EmbeddingVariableOption(storage_option=storage))
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="file/rows; Not a directory"):
        session.run(var.initializer)
    with pytest.raises(ValueError, match=r"The storage type .* needs a storage_path, a folder for its files"):
        tf.StorageOption(StorageType.SSDHASH)


@pytest.mark.parametrize(("saved", "started"), [(None, None), (None, 3), (3, None), (2, 3)])
@pytest.mark.parametrize("by_scope", [False, True])
def test_rows_may_begin_with_those_of_a_checkpoint(
    tmp_path: Path, saved: int | None, started: int | None, by_scope: bool
) -> None:
    ids = [1, 2, 1001, -7]
    with tf.Graph().as_default(), tf.Session() as session:
        var = variable("a/v", partitioner=tf.fixed_size_partitioner(saved) if saved else None)
        train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(looked_up(var, ids)))
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        before = session.run(looked_up(var, ids))

    with tf.variable_scope("b"):
        var = variable(partitioner=tf.fixed_size_partitioner(started) if started else None)
    with pytest.raises(ValueError, match="Tensor nothing is not found in"):
        tf.train.init_from_checkpoint(path, {"nothing": var})
    tf.train.init_from_checkpoint(path, {"a/": "b/"} if by_scope else {"a/v": var})
    rows = looked_up(var, [*ids, 9])
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(rows), [*before, [1, 1, 1]])
        session.run(train)
        assert (session.run(rows) < 1).all()
