"""Lookups as one exchange: ids are split, rows merged, gradients summed; many tables are asked and updated at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_kernels.cpu._compiled import spreading
from tenfold_services.master import client_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

raw = tf.raw_ops
LOOPS = [spreading._spread, spreading._spread_in_numpy, spreading.spread()]


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def longs(values: Any) -> Any:
    return tf.constant(values, tf.int64)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("distinct", [True, False])
def test_ids_are_spread_over_parts(loop: Any, distinct: bool) -> None:
    choose = np.random.default_rng(5)
    for parts in (1, 2, 7):
        lookups = [choose.integers(-30, 30, size) for size in (40, 0, 1, 300)]
        ids = np.concatenate(lookups)
        table, first, keys, places = np.zeros(1024, np.int64), *(np.empty(ids.size, np.int64) for _ in range(3))
        sizes = np.zeros(parts * len(lookups), np.int64)
        ends = np.cumsum([each.size for each in lookups])

        with np.errstate(over="ignore"):
            total = loop(ids, ends, parts, distinct, table, first, keys, sizes, places)

        assert (keys[places] == ids).all()
        asked = [[*dict.fromkeys(each.tolist())] if distinct else each.tolist() for each in lookups]
        by_part = [[[i for i in each if i % 1000 % parts == part] for each in asked] for part in range(parts)]
        assert keys[:total].tolist() == [i for part in by_part for each in part for i in each]
        assert sizes.tolist() == [len(each) for part in by_part for each in part]


def test_keys_of_parts_and_the_place_of_each_id(session: tf.Session) -> None:
    split = raw.EmbeddingSplit(ids=[longs([[5, 4], [5, 7]]), longs(4)], parts=2)

    keys, sizes, places = session.run([split.keys, split.sizes, split.places])

    # the second lookup asks for 4 as well
    assert [each.tolist() for each in keys] == [[4, 4], [5, 7]]
    assert [each.tolist() for each in sizes] == [[1, 1], [2, 0]]
    assert places.tolist() == [2, 0, 2, 3, 1]
    assert [str(each.shape) for each in (*split.keys, *split.sizes, split.places)] == ["(?,)"] * 2 + ["(2,)"] * 2 + [
        "(?,)"
    ]


def test_ids_of_four_bytes(session: tf.Session) -> None:
    split = raw.EmbeddingSplit(ids=[tf.constant([-1, 3, -1])], parts=1, distinct=False)

    (keys,), places = session.run([split.keys, split.places])

    assert (keys.dtype, keys.tolist(), places.tolist()) == (np.int32, [-1, 3, -1], [0, 1, 2])


def test_rows_come_back_in_the_shape_of_the_ids(session: tf.Session) -> None:
    rows = [tf.constant([[0.0, 0.5], [1.0, 1.5]]), tf.constant([[2.0, 2.5]])]

    merged = raw.EmbeddingMerge(ids=[longs([[5, 4]]), longs(4)], places=longs([2, 0, 1]), rows=rows)

    assert [str(each.shape) for each in merged] == ["(1, 2, 2)", "(2,)"]
    first, second = session.run(merged)
    assert (first.tolist(), second.tolist()) == ([[[2, 2.5], [0, 0.5]]], [1, 1.5])


@pytest.mark.parametrize(
    ("places", "rows", "message"),
    [
        ([0, 3], [[[1.0]], [[2.0]]], r"places\[1\] is not in \[0, 2\)"),
        ([0, -1], [[[1.0]]], r"places\[1\] is not in \[0, 1\)"),
        ([0], [[[1.0]]], "sizes come to 2, but there are 1 places"),
        (
            [0, 1],
            [[[1.0]], [[2.0, 3.0]]],
            r"Rows of one width are needed from all parts, but they are \[1,1\], \[1,2\]",
        ),
    ],
)
def test_places_that_are_not_there(session: tf.Session, places: Any, rows: Any, message: str) -> None:
    given = [tf.placeholder_with_default(np.array(each, np.float32), None) for each in rows]
    merged = raw.EmbeddingMerge(ids=[longs([5, 4])], places=longs(places), rows=given)

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(merged)


def test_gradients_of_one_id_are_summed(session: tf.Session) -> None:
    ids = [longs([5, 4, 5]), longs([4])]
    split = raw.EmbeddingSplit(ids=ids, parts=2)
    rows = [tf.ones([tf.size(keys), 1]) for keys in split.keys]
    merged = raw.EmbeddingMerge(ids=ids, places=split.places, rows=rows)
    weights = [tf.constant([[1.0], [2.0], [4.0]]), tf.constant([[8.0]])]

    gradients = tf.gradients([a * b for a, b in zip(merged, weights, strict=True)], rows)

    assert [each.tolist() for each in session.run(gradients)] == [[[2], [8]], [[5]]]


def test_second_gradients_go_back_to_each_id(session: tf.Session) -> None:
    ids = [longs([5, 4, 5]), longs([4])]
    split = raw.EmbeddingSplit(ids=ids, parts=2)
    rows = [tf.ones([tf.size(keys), 1]) for keys in split.keys]
    merged = raw.EmbeddingMerge(ids=ids, places=split.places, rows=rows)
    weights = [tf.constant([[1.0], [2.0], [4.0]]), tf.constant([[8.0]])]
    sums = tf.gradients([a * b for a, b in zip(merged, weights, strict=True)], rows)

    again = tf.gradients([each * each for each in sums], weights)

    # 5 has a sum of 1 + 4; 4 is asked for by each lookup, with 2 and 8
    assert [each.tolist() for each in session.run(again)] == [[[10], [4], [10]], [[16]]]


def test_gradients_that_do_not_fit(session: tf.Session) -> None:
    def summed(places: Any, sizes: Any) -> Any:
        return raw.EmbeddingSum(gradients=[tf.ones([2, 1])], places=longs(places), sizes=[longs(sizes)])

    with pytest.raises(tf.errors.InvalidArgumentError, match="There are 2 rows of gradients for 1 places"):
        session.run(summed([0], [1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"places\[1\] is not in \[0, 1\)"):
        session.run(summed([0, 1], [1]))


def test_places_of_something_else_have_no_gradient(session: tf.Session) -> None:
    rows = tf.ones([1, 1])
    (merged,) = raw.EmbeddingMerge(ids=[longs([5])], places=longs([0]), rows=[rows])

    with pytest.raises(LookupError, match="is not the places of an EmbeddingSplit"):
        tf.gradients(merged, rows)


def test_rows_of_each_lookup(session: tf.Session) -> None:
    apart = raw.EmbeddingRows(rows=tf.constant([[1], [2], [3]]), sizes=longs([1, 0, 2]), N=3)

    assert [each.tolist() for each in session.run(apart)] == [[[1]], [], [[2], [3]]]
    for sizes, total in (([1, 1, 2], 4), ([4, -1, 0], 3)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"sizes come to {total}, but there are 3 rows"):
            session.run(raw.EmbeddingRows(rows=tf.constant([[1], [2], [3]]), sizes=longs(sizes), N=3))


class Tables:
    """Two embedding variables of 2 elements a row, and an accumulator of each."""

    def __init__(self, session: tf.Session) -> None:
        self.session = session
        self.tables, self.slots = [self.made(name, name, 1.0) for name in "ab"], []
        self.slots = [self.made(f"{name}/slot", name, 3.0) for name in "ab"]

    def made(self, name: str, primary: str, start: float) -> Any:
        handle, of = (
            raw.KvVarHandleOp(dtype=tf.float32, shape=[2], Tkeys=tf.int64, shared_name=each) for each in (name, primary)
        )
        given = {"shape": [2], "counter_type": tf.int64, "slot_index": int(name != primary)}
        value, key = tf.fill([1, 2], start), tf.constant(-1, tf.int64)
        self.session.run(
            raw.InitializeKvVariableOp(resource_self=handle, resource_primary=of, value=value, empty_key=key, **given)
        )
        return handle

    def apply(self, op: str = "KvResourceSparseApplyAdagrad", sizes: Any = (1, 2), **attrs: Any) -> None:
        given = {"apart": [0, 1], "grad": tf.constant([[1.0, 1], [2, 2], [4, 4]]), "indices": longs([7, 7, 8]), **attrs}
        # lr, global_step
        others = [tf.constant(1.0), longs(0)]
        resources = [each for both in zip(self.tables, self.slots, strict=True) for each in both]
        self.session.run(
            raw.KvResourceSparseApplies(resources=resources, others=others, sizes=longs(sizes), op=op, N=2, **given)
        )


def test_many_tables_are_asked_and_updated_in_one_call(session: tf.Session) -> None:
    tables = Tables(session)
    gather = raw.KvResourceGathers(
        resources=tables.tables, keys=longs([7, 7, 8]), sizes=longs([1, 2]), dtype=tf.float32
    )

    assert session.run(gather).tolist() == [[1, 1]] * 3
    tables.apply()
    rows = session.run(gather)[:, 0]
    # w - g / sqrt(accumulator + g^2)
    np.testing.assert_allclose(rows, [1 - 1 / 2, 1 - 2 / 7**0.5, 1 - 4 / 19**0.5], rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="sizes come to 2, but there are 3 keys"):
        session.run(
            raw.KvResourceGathers(resources=tables.tables, keys=longs([7, 7, 8]), sizes=longs([1, 1]), dtype=tf.float32)
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"op": "ApplyAdagrad"}, "'ApplyAdagrad' is no update of embedding variables"),
        ({"op": "KvResourceSparseApplyNothing"}, "'KvResourceSparseApplyNothing' is no update"),
        ({"apart": [0, 9]}, r"has 9 inputs for 2 updates by KvResourceSparseApplyAdagrad with \[0, 9\] apart"),
        ({"op": "KvResourceSparseApplyAdam"}, r"has 9 inputs for 2 updates by KvResourceSparseApplyAdam"),
        ({"sizes": [1, 1]}, "sizes come to 2, but there are 3 keys"),
        ({"grad": np.ones([1, 2], np.float32)}, r"grad has shape \[1,2\] for keys of shape \[3\]"),
    ],
)
def test_updates_that_do_not_fit(session: tf.Session, given: dict[str, Any], message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        Tables(session).apply(**given)


@pytest.mark.parametrize("optimizer", ["GradientDescent", "Adagrad", "Adam", "Ftrl", "AdamAsync"])
@pytest.mark.parametrize("parts", [1, 3])
def test_steps_of_joined_lookups_train_as_those_of_single_ones(
    monkeypatch: pytest.MonkeyPatch, optimizer: str, parts: int
) -> None:
    def trained() -> list[Any]:
        choose = np.random.default_rng(2)
        with tf.Graph().as_default(), tf.Session() as session:
            columns = [tf.placeholder(tf.int64, [None]) for _ in range(4)]
            rows = []
            for number, ids in enumerate(columns):
                table = tf.get_embedding_variable(
                    f"t{number}",
                    3 if number < 3 else 2,
                    initializer=tf.random_normal_initializer(seed=number + 1),
                    partitioner=tf.fixed_size_partitioner(parts),
                )
                rows.append(tf.nn.embedding_lookup(table, ids))
            loss = tf.reduce_sum(tf.square(tf.reduce_sum(tf.concat(rows, 1), 1) - 1))
            train = getattr(tf.train, f"{optimizer}Optimizer")(0.05).minimize(loss)
            session.run(tf.global_variables_initializer())
            found = []
            for size in (9, 0, 1, 40):
                batch = {ids: choose.integers(-20, 20, size) for ids in columns}
                found.append(session.run([*rows, train], batch)[:-1])
            return found

    together = trained()
    monkeypatch.setattr(client_graph, "join_lookups", lambda graph: graph)
    apart = trained()

    for mine, other in zip(together, apart, strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_partial_run_gets_rows_of_one_lookup_before_the_ids_of_another(session: tf.Session) -> None:
    ids = [tf.placeholder(tf.int64, [None]) for _ in range(2)]
    tables = [tf.get_embedding_variable(name, 2, initializer=tf.ones_initializer()) for name in "ab"]
    rows = [tf.nn.embedding_lookup(table, each) for table, each in zip(tables, ids, strict=True)]
    session.run(tf.global_variables_initializer())

    run = session.partial_run_setup(rows, ids)

    assert session.partial_run(run, rows[0], {ids[0]: [3]}).tolist() == [[1, 1]]
    assert session.partial_run(run, rows[1], {ids[1]: [4, 5]}).tolist() == [[1, 1]] * 2
