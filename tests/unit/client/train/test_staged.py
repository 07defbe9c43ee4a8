"""tf.staged and its hook: structures, orders, ends, feeds, ignored errors, sessions one after another; refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.background_cluster import background_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def counted(number: int) -> Any:
    return tf.data.make_one_shot_iterator(tf.data.Dataset.range(number)).get_next()


def all_of(fetches: Any, master: str = "") -> list[Any]:
    """What the steps of one monitored session give until it ends by itself."""
    found = []
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(master=master), [tf.make_prefetch_hook()]) as session:
        while not session.should_stop():
            found.append(session.run(fetches))
    return found


def test_one_thread_gives_every_value_in_order() -> None:
    ahead = tf.staged(counted(20), capacity=3)
    assert ahead.shape == ()
    assert all_of(ahead * 2) == [2 * each for each in range(20)]


def test_several_threads_give_every_value_once() -> None:
    assert sorted(all_of(tf.staged(counted(50), capacity=40, num_threads=4))) == list(range(50))


def test_the_structure_and_its_shapes_stay() -> None:
    value = counted(3)
    sparse = tf.SparseTensor([[0, 1]], tf.reshape(value, [1]), [1, 4])
    features = {"ids": sparse, "none": None, "pair": (value, tf.fill([2, 3], tf.as_string(value)))}
    ahead = tf.staged(features)
    assert sorted(ahead) == ["ids", "none", "pair"]
    assert ahead["none"] is None
    assert isinstance(ahead["ids"], tf.SparseTensor)
    assert ahead["pair"][1].shape == (2, 3)
    found = all_of([ahead["ids"], ahead["pair"]])
    assert [int(pair[0]) for _, pair in found] == [int(ids.values[0]) for ids, _ in found] == [0, 1, 2]
    assert found[2][1][1].tolist() == [[b"2"] * 3] * 2
    assert found[0][0].dense_shape.tolist() == [1, 4]


def test_values_are_made_before_they_are_asked_for() -> None:
    made = tf.Variable(0, dtype=tf.int64, use_resource=True)
    ahead = tf.staged(made.assign_add(1), capacity=5)
    reached = tf.train.Coordinator()
    with tf.train.MonitoredSession(hooks=[tf.make_prefetch_hook()]) as session:
        raw = session._tf_sess()  # type: ignore[attr-defined]
        while raw.run(made) < 6 and not reached.wait_for_stop(0.001):
            pass
        # five wait in the buffer, the sixth for a place in it
        assert raw.run(made) == 6
        assert [session.run(ahead) for _ in range(6)] == [1, 2, 3, 4, 5, 6]


def test_feeds_of_the_making_are_tensors() -> None:
    scale = tf.placeholder(tf.int64, [])
    ahead = tf.staged(scale * 10, feed_dict={scale: counted(4)})
    assert all_of(ahead) == [0, 10, 20, 30]


def test_an_ignored_error_skips_a_value() -> None:
    value = counted(6)
    with tf.control_dependencies([tf.debugging.assert_none_equal(value % 3, tf.constant(1, tf.int64))]):
        checked = tf.identity(value)
    ahead = tf.staged(checked, ignored_exception_types=(tf.errors.INVALID_ARGUMENT,))
    assert all_of(ahead) == [0, 2, 3, 5]


def test_another_error_of_the_making_ends_the_session() -> None:
    value = counted(6)
    ahead = tf.staged(tf.debugging.check_numerics(1.0 / tf.cast(2 - value, tf.float32), "made"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="made : Tensor had Inf"):
        all_of(ahead)


def test_each_session_has_a_buffer_of_its_own() -> None:
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(4))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    ahead = tf.staged(iterator.get_next(), capacity=2)
    with background_cluster({"worker": 1}) as servers:
        for _ in range(3):
            assert all_of(ahead, servers["worker", 0].target) == [0, 1, 2, 3]


def test_a_saved_graph_says_nothing_of_runners(caplog: pytest.LogCaptureFixture) -> None:
    tf.staged(counted(2))
    assert "prefetch_runners" not in str(tf.train.export_meta_graph())
    assert not caplog.records


def test_refusals() -> None:
    value = counted(2)
    with pytest.raises(ValueError, match="needs a capacity and num_threads of 1 or more, not 0 and 1"):
        tf.staged(value, capacity=0)
    with pytest.raises(ValueError, match="needs a capacity and num_threads of 1 or more, not 1 and 0"):
        tf.staged(value, num_threads=0)
    with pytest.raises(ValueError, match=r"needs features with at least one tensor, not \{'a': None\}"):
        tf.staged({"a": None})
    with pytest.raises(TypeError, match="unexpected keyword argument 'threads'"):
        tf.staged(value, threads=2)
    assert tf.staged(value, use_stage_subgraph_thread_pool=True, stage_subgraph_thread_pool_id=1) is not None
