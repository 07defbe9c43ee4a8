"""k-means as a graph: centers are chosen, and move to the middle of their points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.estimator.canned import kmeans as kmeans_estimator

if TYPE_CHECKING:
    from pathlib import Path

factorization = tf.contrib.factorization
MIDDLES = np.array([[0.0, 10.0], [10.0, 0.0], [-10.0, -10.0]], np.float32)
POINTS = np.concatenate([MIDDLES + shift for shift in ([0, 0], [1, 0], [-1, 0], [0, 1], [0, -1])]).astype(np.float32)


def trained(steps: int, batches: int = 1, **settings: Any) -> tuple[Any, Any, Any]:
    """The centers, the nearest center of each point and its distance, after some steps."""
    with tf.Graph().as_default(), tf.Session() as session:
        points = tf.placeholder(tf.float32, [None, 2])
        kmeans = factorization.KMeans(points, 3, **settings)
        _, (nearest,), (scores,), initialized, init_op, train = kmeans.training_graph()
        session.run(tf.global_variables_initializer())
        for rows in np.array_split(POINTS, batches):
            if not session.run(initialized):
                session.run(init_op, {points: rows})
        assert session.run(initialized)
        for _ in range(steps):
            session.run(train, {points: POINTS})
        (centers,) = (each for each in tf.global_variables() if each.op.name == "clusters")
        return session.run([centers, nearest, scores], {points: POINTS})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_mini_batch": True},
        {"use_mini_batch": True, "mini_batch_steps_per_iteration": 2},
    ],
)
def test_centers_come_to_the_middle_of_their_points(settings: Any) -> None:
    centers, nearest, scores = trained(60, initial_clusters=MIDDLES + 2, **settings)

    np.testing.assert_allclose(centers, MIDDLES, atol=0.2)
    assert nearest.tolist() == [0, 1, 2] * 5
    assert scores.max() < 2


@pytest.mark.parametrize("chosen", ["kmeans_plus_plus", lambda inputs, k: inputs[0][:k]])
def test_first_centers_are_points_far_apart(chosen: Any) -> None:
    centers, _, _ = trained(0, initial_clusters=chosen)

    assert sorted(int(np.argmin(((MIDDLES - each) ** 2).sum(1))) for each in centers) == [0, 1, 2]


def test_random_centers_are_points_from_as_many_batches_as_it_takes() -> None:
    centers, _, scores = trained(0, batches=8, distance_metric="cosine")

    assert centers.shape == (3, 2)
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, atol=1e-6)
    assert scores.min() == pytest.approx(0, abs=1e-6)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="Unsupported initialization algorithm 'kmc2': there are"):
        factorization.KMeans(tf.zeros([1, 1]), 1, initial_clusters="kmc2")
    with pytest.raises(ValueError, match="Unsupported distance metric 'l1'"):
        factorization.KMeans(tf.zeros([1, 1]), 1, distance_metric="l1")
    with pytest.raises(AttributeError, match=r"factorization\.GMM is not part of Tenfold"):
        factorization.GMM  # noqa: B018


# --- the estimator ---


def whole_input() -> Any:
    return tf.train.limit_epochs(tf.constant(POINTS), num_epochs=1)


@pytest.mark.parametrize("is_cosine", [False, True])
def test_an_estimator_of_clusters(tmp_path: Path, is_cosine: bool) -> None:
    distance = tf.estimator.experimental.KMeans.COSINE_DISTANCE if is_cosine else "squared_euclidean"
    kmeans = factorization.KMeansClustering(
        3, tmp_path, MIDDLES + np.float32(0.5), distance, use_mini_batch=False, relative_tolerance=1e-3
    )

    for _ in range(2):
        kmeans.train(whole_input)

    centers = kmeans.cluster_centers()
    middles = MIDDLES / np.linalg.norm(MIDDLES, axis=1, keepdims=True) if is_cosine else MIDDLES
    np.testing.assert_allclose(centers, middles, atol=1e-2)
    assert [*map(int, kmeans.predict_cluster_index(whole_input))] == [0, 1, 2] * 5
    far = np.array(list(kmeans.transform(whole_input)))
    if not is_cosine:
        np.testing.assert_allclose(far, np.linalg.norm(POINTS[:, None] - MIDDLES[None], axis=2), atol=1e-2)
        assert kmeans.score(whole_input) == pytest.approx(12, rel=1e-3)  # 12 points are one away from their center
    tf.summary.FileWriterCache.clear()


def test_an_estimator_of_clusters_by_batches_of_columns(tmp_path: Path) -> None:
    columns = {"x": POINTS[:, :1], "y": POINTS[:, 1:]}
    batches = tf.estimator.inputs.numpy_input_fn(columns, batch_size=5, num_epochs=40, shuffle=False)
    kmeans = factorization.KMeansClustering(3, tmp_path, "kmeans_plus_plus", seed=3, kmeans_plus_plus_num_retries=9)

    kmeans.train(batches)

    centers = kmeans.cluster_centers()
    assert sorted(np.argmin(np.linalg.norm(centers[:, None] - MIDDLES[None], axis=2), axis=1)) == [0, 1, 2]
    with pytest.raises(ValueError, match="Unsupported initialization algorithm 'best'"):
        factorization.KMeansClustering(3, initial_clusters="best")
    with pytest.raises(ValueError, match="Unsupported distance metric 'taxi'"):
        factorization.KMeansClustering(3, distance_metric="taxi")
    tf.summary.FileWriterCache.clear()


class _NeverReady:
    """A session whose chief has chosen no centers; one look stops the program if told so."""

    def __init__(self, coord: Any = None) -> None:
        self.looks, self._coord = 0, coord

    def run(self, fetches: Any) -> bool:
        self.looks += 1
        if self._coord is not None:
            self._coord.request_stop(ValueError("a queue runner failed"))
        return False


def test_a_worker_gives_up_waiting_for_the_chiefs_centers() -> None:
    hook = kmeans_estimator._InitializeClustersHook(None, "initialized", is_chief=False, seconds=0)
    session = _NeverReady()

    with pytest.raises(tf.errors.DeadlineExceededError, match="has not chosen the first centers in 0 s"):
        hook.after_create_session(session, tf.train.Coordinator())
    assert session.looks == 1


def test_a_worker_that_waits_for_centers_ends_with_its_program() -> None:
    coord = tf.train.Coordinator()
    hook = kmeans_estimator._InitializeClustersHook(None, "initialized", is_chief=False, seconds=3600)

    with pytest.raises(ValueError, match="a queue runner failed"):
        hook.after_create_session(_NeverReady(coord), coord)
