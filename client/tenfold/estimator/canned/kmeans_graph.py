"""k-means as a graph, which kmeans.py has as an estimator; `tf.contrib.factorization` has both.

Follows TensorFlow 1.15's `ops/clustering_ops.py`. Centers and counts are variables of the names that TensorFlow gives
them; what it does with ops of its own is composed of public ones here: the nearest center of each point, and the choice
of first centers by k-means++.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf

__all__ = [
    "COSINE_DISTANCE",
    "KMEANS_PLUS_PLUS_INIT",
    "RANDOM_INIT",
    "SQUARED_EUCLIDEAN_DISTANCE",
    "KMeans",
]

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"


class KMeans:
    """The graph of k-means over `inputs`, points [N, D] or a list of such; N may be another in each step.

    `initial_clusters` are centers [K, D], a function `(inputs, k) → centers`, "random" or "kmeans_plus_plus". With
    `use_mini_batch` each step moves the centers by its points; they become those that points are compared with each
    `mini_batch_steps_per_iteration` steps. Raises ValueError for another initialization or distance.
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: Any,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int | None = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT):
            raise ValueError(
                f"Unsupported initialization algorithm '{initial_clusters}': there are '{RANDOM_INIT}', "
                f"'{KMEANS_PLUS_PLUS_INIT}', centers, and functions that choose them"
            )
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        self._inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        self._num_clusters = num_clusters
        self._initial_clusters = initial_clusters
        self._cosine = distance_metric == COSINE_DISTANCE
        self._use_mini_batch = use_mini_batch
        self._steps = int(mini_batch_steps_per_iteration) if use_mini_batch else 1
        self._seed = random_seed
        self._retries = kmeans_plus_plus_num_retries

    @property
    def _kept_normal(self) -> bool:
        """Whether the centers that are kept have length one."""
        return self._cosine and (not self._use_mini_batch or self._steps > 1)

    def training_graph(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """(all_scores, cluster_idx, scores, cluster_centers_initialized, init_op, training_op).

        # the first three are lists, of a tensor for each input: [N, K] distances, [N] nearest center, [N] its distance
        `init_op` is run until `cluster_centers_initialized` is true, then `training_op` once a step.
        """
        given = self._initial_clusters
        if not isinstance(given, str) and not callable(given):
            given = tf.convert_to_tensor(given, dtype=tf.float32)
            self._num_clusters = tf.shape(given)[0]
        count = tf.convert_to_tensor(self._num_clusters)
        empty = tf.constant([], dtype=tf.float32)
        centers = tf.Variable(empty, name="clusters", validate_shape=False)
        initialized = tf.Variable(False, dtype=tf.bool, name="initialized")
        moved, left, totals = centers, None, None
        if self._steps > 1:
            moved = tf.Variable(empty, name="clusters_updated", validate_shape=False)
            left = tf.Variable(self._steps, dtype=tf.int64, name="update_in_steps")
            totals = tf.Variable(tf.zeros([count], tf.int64))
        elif self._use_mini_batch:
            totals = tf.Variable(tf.ones([count], tf.int64))
        init_op = self._initialization(given, count, centers, moved, initialized)
        points = [self._unit(each) for each in self._inputs]
        compared = centers if not self._cosine or self._kept_normal else self._unit(centers)
        all_scores = [self._distances(each, compared) for each in points]
        nearest = [tf.argmin(each, 1, output_type=tf.int32) for each in all_scores]
        scores = [tf.reduce_min(each, 1) for each in all_scores]
        if totals is None:
            training_op = self._whole_step(points, nearest, count, centers)
        else:
            with tf.control_dependencies([self._turn(left, centers, moved, totals)]):
                training_op = _mini_batch_step(points, nearest, moved, totals)
        return tuple(all_scores), tuple(nearest), tuple(scores), initialized, init_op, training_op

    def _unit(self, points: Any) -> Any:
        return tf.nn.l2_normalize(points, axis=1) if self._cosine else tf.convert_to_tensor(points)

    def _distances(self, points: Any, centers: Any) -> Any:
        # points (N points, D), centers (K centers, D) → (N, K)
        product = tf.matmul(points, centers, transpose_b=True)
        if self._cosine:
            return 1 - product
        lengths = tf.reduce_sum(tf.square(points), 1, keepdims=True)
        return lengths - 2 * product + tf.transpose(tf.reduce_sum(tf.square(centers), 1, keepdims=True))

    def _initialization(self, given: Any, count: Any, centers: Any, moved: Any, initialized: Any) -> Any:
        """Adds first centers until there are enough; one batch may have too few points."""
        known = tf.shape(centers)[0]
        wanted = count - known
        with tf.control_dependencies([tf.assert_positive(wanted)]):
            new = tf.identity(self._unit(self._chosen(given, wanted)))
        together = tf.cond(tf.equal(known, 0), lambda: new, lambda: tf.concat([centers, new], 0))
        assigned = tf.assign(centers, together, validate_shape=False)
        if moved is not centers:
            assigned = tf.assign(moved, assigned, validate_shape=False)
        enough = tf.equal(count, tf.shape(assigned)[0])
        return tf.assign(initialized, enough).op

    def _chosen(self, given: Any, wanted: Any) -> Any:
        if callable(given):
            return given(self._inputs, wanted)
        if not isinstance(given, str):
            return given
        points = tf.concat(self._inputs, 0)
        rows = tf.shape(points)[0]

        def at_random() -> Any:
            drawn = tf.random_uniform([wanted], 0, tf.cast(rows, tf.int64), tf.int64, seed=self._seed)
            return tf.gather(points, drawn)

        draw = at_random if given == RANDOM_INIT else lambda: self._far_apart(self._unit(points), wanted)
        return tf.cond(rows <= wanted, lambda: points, draw)

    def _far_apart(self, points: Any, wanted: Any) -> Any:
        """k-means++: the next center is drawn by its squared distance, the best of several draws is taken."""
        draws = 1 + (self._retries if self._retries >= 0 else 3)
        first = tf.random_uniform([1], 0, tf.cast(tf.shape(points)[0], tf.int64), tf.int64, seed=self._seed)

        def squared(centers: Any) -> Any:
            gaps = tf.expand_dims(points, 1) - tf.expand_dims(centers, 0)
            return tf.reduce_sum(tf.square(gaps), 2)

        def body(number: Any, rows: Any, nearest: Any) -> Any:
            candidates = tf.multinomial(tf.expand_dims(tf.log(nearest + 1e-30), 0), draws, seed=self._seed)[0]
            left = tf.minimum(tf.expand_dims(nearest, 1), squared(tf.gather(points, candidates)))
            best = tf.argmin(tf.reduce_sum(left, 0))
            return number + 1, tf.concat([rows, [candidates[best]]], 0), left[:, best]

        start = [tf.constant(1), first, tf.reshape(squared(tf.gather(points, first)), [-1])]
        shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
        _, rows, _ = tf.while_loop(lambda number, *_: number < wanted, body, start, shape_invariants=shapes)
        return tf.gather(points, rows)

    def _turn(self, left: Any, centers: Any, moved: Any, totals: Any) -> Any:
        """Every so many steps the centers that moved become those that points are compared with."""
        if left is None:
            return tf.no_op()

        def sync() -> Any:
            with tf.control_dependencies([tf.assign(left, self._steps - 1)]):
                new = self._unit(moved)
            with (
                tf.control_dependencies([tf.assign(centers, new)]),
                tf.control_dependencies([tf.assign(totals, tf.zeros_like(totals))]),
            ):
                return tf.identity(left)

        return tf.cond(left <= 0, sync, lambda: tf.assign_sub(left, 1))

    def _whole_step(self, points: list[Any], nearest: list[Any], count: Any, centers: Any) -> Any:
        sums = tf.add_n([tf.unsorted_segment_sum(*each, count) for each in zip(points, nearest, strict=True)])
        ones = [tf.ones([tf.shape(each)[0], 1]) for each in points]
        counts = tf.add_n([tf.unsorted_segment_sum(*each, count) for each in zip(ones, nearest, strict=True)])
        new = sums / (tf.cast(counts, sums.dtype) + 1e-6)
        return tf.assign(centers, self._unit(new) if self._kept_normal else new)


def _mini_batch_step(points: list[Any], nearest: list[Any], centers: Any, totals: Any) -> Any:
    """Moves each center by the mean of its new points, weighed with how many it had."""
    updates = []
    for rows, index in zip(points, nearest, strict=True):
        ids, position = tf.unique(index)
        size = tf.size(ids)
        old_counts, old_centers = tf.gather(totals, ids), tf.gather(centers, ids)
        counts = tf.unsorted_segment_sum(tf.ones_like(position, dtype=totals.dtype), position, size)
        change = tf.unsorted_segment_sum(rows, position, size)
        change -= tf.cast(tf.expand_dims(counts, 1), rows.dtype) * old_centers
        change *= tf.expand_dims(tf.reciprocal(tf.cast(old_counts + counts, rows.dtype)), 1)
        updates += [tf.scatter_add(totals, ids, counts).op, tf.scatter_add(centers, ids, change).op]
    return tf.group(*updates)
