"""Lookups and updates of many tables give the same bits whether they are one call or each a node's, on one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster
from tenfold_kernels.cpu._many_rows import ManyRows
from tenfold_kernels.cpu._many_updates import ManyUpdates

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 6
#: A table's rows and their width; the last two are looked up by ids that are columns of one placeholder.
TABLES = ((9, 4), (30, 4), (7, 1), (50, 16), (11, 4), (200, 3))
OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "Adam": lambda: tf.train.AdamOptimizer(0.01),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became one call."""
    found: list[str] = []
    for kind, name in ((ManyRows, lambda it: it.loop), (ManyUpdates, lambda it: "update")):
        build = kind.build

        def noted(self: Any, fallback: Any, cache: Any, build: Any = build, name: Any = name) -> Any:
            found.append(name(self))
            return build(self, fallback, cache)

        monkeypatch.setattr(kind, "build", noted)
    return found


class Model:
    """A loss of rows of many tables, and what trains it."""

    def __init__(self, optimizer: str, resource: bool, seed: int) -> None:
        choose = np.random.default_rng(seed)
        self.columns = tf.placeholder(tf.int64, [None, len(TABLES)])
        each = tf.unstack(self.columns, axis=1)
        #: In which each table has two parts, and one is looked up twice.
        self.rows, self.tables = [], []
        for number, (rows, width) in enumerate(TABLES):
            initial = choose.normal(size=(rows, width)).astype(np.float32)
            table = tf.get_variable(f"t{number}", initializer=initial, use_resource=resource)
            self.tables.append(table)
            ids = tf.cast(each[number], tf.int32) if seed % 2 else each[number]
            if number == 3:
                where = tf.where(tf.greater_equal(self.columns[:, :2], 0))
                bag = tf.SparseTensor(
                    where, tf.reshape(self.columns[:, 3:5], [-1]), [tf.shape(ids, out_type=tf.int64)[0], 2]
                )
                self.rows.append(tf.nn.embedding_lookup_sparse(table, bag, None, combiner="mean"))
            else:
                self.rows.append(tf.nn.embedding_lookup(table, ids))
            if number == 1:
                self.rows.append(tf.nn.embedding_lookup(table, tf.floormod(ids + 1, rows)))
        self.loss = tf.reduce_sum(tf.square(tf.concat(self.rows, 1) - 0.5), axis=1)
        self.train = OPTIMIZERS[optimizer]().minimize(self.loss)


def trained(target: str, optimizer: str, resource: bool, seed: int) -> Iterator[Any]:
    choose = np.random.default_rng(100 + seed)
    with tf.Graph().as_default():
        model = Model(optimizer, resource, seed)
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            for step in range(STEPS):
                size = int(choose.integers(1, 40))
                fed = {model.columns: np.stack([choose.integers(0, min(rows, 11), size) for rows, _ in TABLES], 1)}
                # what is within is there for who asks
                yield from session.run([model.loss, *model.rows] if step == 3 else [model.loss], fed)
                session.run(model.train, fed)
            yield from session.run(model.tables)


@pytest.mark.parametrize("resource", [False, True], ids=["references", "resources"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_tables_train_to_the_same_bits_as_one_call(
    optimizer: str,
    resource: bool,
    built: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setenv("TENFOLD_CACHE_DIR", str(tmp_path_factory.getbasetemp()))
    seed = 2 * list(OPTIMIZERS).index(optimizer) + resource
    results = []
    for mode in ("off", "eager"):
        monkeypatch.setenv("TENFOLD_FUSION", mode)
        with background_cluster({"worker": 1}) as servers:
            results.append(list(trained(servers["worker", 0].target, optimizer, resource, seed)))
    assert {"gather"} <= set(built)
    assert optimizer == "Adam" or "update" in built
    for mine, other in zip(*results, strict=True):
        assert mine.tobytes() == other.tobytes()


def test_an_index_out_of_range_is_told_in_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for mode in ("off", "eager"):
        monkeypatch.setenv("TENFOLD_FUSION", mode)
        with background_cluster({"worker": 1}) as servers, tf.Graph().as_default():
            model = Model("Adagrad", False, 0)
            with tf.Session(servers["worker", 0].target) as session:
                session.run(tf.global_variables_initializer())
                batch = np.zeros((3, len(TABLES)), np.int64)
                for _ in range(4):
                    session.run(model.train, {model.columns: batch})
                batch[1, 4] = 11
                with pytest.raises(tf.errors.InvalidArgumentError) as raised:
                    session.run(model.train, {model.columns: batch})
                found.append(raised.value.message)
    assert found[0] == found[1]
