"""`tf.estimator.experimental.KMeans`, which is `tf.contrib.factorization.KMeansClustering`: k-means as an estimator.

The graph is that of contrib/kmeans_graph.py. Follows TensorFlow 1.15's `estimator/canned/kmeans.py`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging, metrics, summary
from tenfold.estimator.canned import kmeans_graph
from tenfold.estimator.canned.base_head import DEFAULT_SERVING_KEY
from tenfold.estimator.estimator import Estimator
from tenfold.estimator.export.export_output import PredictOutput
from tenfold.estimator.model_fn import EstimatorSpec
from tenfold.feature_column.model import input_layer
from tenfold.graph.default_scopes import colocate_with, control_dependencies
from tenfold.ops import array, math, state_ops
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunHook
from tenfold.train.training_util import get_global_step
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds after which a worker looks again whether the chief has chosen the first centers.
_LOOK_AGAIN_SECONDS = 1


class KMeansClustering(Estimator):
    """Finds `num_clusters` centers of points [N, D]; as TensorFlow 1.15's class.

    Features are the points, or a dictionary of columns of them, of which `feature_columns` chooses some. Without
    `use_mini_batch` a step is an iteration over all points, which the input function returns at once. Raises ValueError
    for another way to choose first centers or to measure distances; blocks and raises as `Estimator`.
    """

    SQUARED_EUCLIDEAN_DISTANCE = kmeans_graph.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = kmeans_graph.COSINE_DISTANCE
    RANDOM_INIT = kmeans_graph.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = kmeans_graph.KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = "clusters"

    def __init__(
        self,
        num_clusters: Any,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: Any = None,
        feature_columns: Any = None,
    ) -> None:
        if isinstance(initial_clusters, str) and initial_clusters not in (self.RANDOM_INIT, self.KMEANS_PLUS_PLUS_INIT):
            raise ValueError(f"Unsupported initialization algorithm '{initial_clusters}'")
        if distance_metric not in (self.SQUARED_EUCLIDEAN_DISTANCE, self.COSINE_DISTANCE):
            raise ValueError(f"Unsupported distance metric '{distance_metric}'")
        self._distance_metric = distance_metric

        def model_fn(features: Any, mode: str, config: Any) -> EstimatorSpec:
            graph = kmeans_graph.KMeans(
                _points(features, feature_columns), num_clusters, initial_clusters, distance_metric, use_mini_batch,
                mini_batch_steps_per_iteration, seed, kmeans_plus_plus_num_retries,
            )  # fmt: skip
            return _specification(graph, mode, config, relative_tolerance)

        super().__init__(model_fn, model_dir, config)

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The number of the nearest center, for one point after the other."""
        return self._predicted(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The distances to all centers, for one point after the other."""
        is_squared = self._distance_metric == self.SQUARED_EUCLIDEAN_DISTANCE
        for distances in self._predicted(input_fn, self.ALL_DISTANCES):
            yield np.sqrt(np.maximum(distances, 0)) if is_squared else distances

    def score(self, input_fn: Callable[..., Any]) -> Any:
        """The sum of the (squared) distances to the nearest centers, of the first batch of points."""
        return self.evaluate(input_fn=input_fn, steps=1)[self.SCORE]

    def cluster_centers(self) -> Any:
        """The centers [K, D] of the newest checkpoint. Raises ValueError without one."""
        return self.get_variable_value(self.CLUSTER_CENTERS_VAR_NAME)

    def _predicted(self, input_fn: Callable[..., Any], key: str) -> Iterator[Any]:
        for each in self.predict(input_fn=input_fn, predict_keys=[key]):
            yield each[key]


def _points(features: Any, feature_columns: Any) -> Any:
    """The points [N, D] of a dictionary's columns, in the order of their names; anything else as it is."""
    if not isinstance(features, dict):
        return features
    if feature_columns:
        return input_layer(features, feature_columns)
    names = sorted(features)
    with colocate_with(features[names[0]]):
        return array.concat([features[name] for name in names], axis=1)


def _specification(graph: Any, mode: str, config: Any, relative_tolerance: float | None) -> EstimatorSpec:
    all_distances, nearest, scores, initialized, init_op, training_op = graph.training_graph()
    loss = math.reduce_sum(math.add_n([math.reduce_sum(each) for each in scores]))
    summary.scalar("loss/raw", loss)
    step = state_ops.assign_add(get_global_step(), 1)
    with control_dependencies([training_op, step]):
        train_op = array.identity(loss)
    seconds = config.session_creation_timeout_secs
    hooks: list[SessionRunHook] = [_InitializeClustersHook(init_op, initialized, config.is_chief, seconds)]
    if relative_tolerance is not None:
        hooks.append(_LossRelativeChangeHook(loss, relative_tolerance))
    distances, index = KMeansClustering.ALL_DISTANCES, KMeansClustering.CLUSTER_INDEX
    return EstimatorSpec(
        mode=mode,
        predictions={distances: all_distances[0], index: nearest[0]},
        loss=loss,
        train_op=train_op,
        eval_metric_ops={KMeansClustering.SCORE: metrics.mean(loss)},
        training_hooks=hooks,
        export_outputs={
            distances: PredictOutput(all_distances[0]),
            index: PredictOutput(nearest[0]),
            DEFAULT_SERVING_KEY: PredictOutput(nearest[0]),
        },
    )


class _LossRelativeChangeHook(SessionRunHook):
    """Ends the training when the loss changes by less than its `tolerance`th part."""

    def __init__(self, loss: Any, tolerance: float) -> None:
        self._loss, self._tolerance = loss, tolerance
        self._last: Any = None

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = run_values.results
        if self._last and abs(loss - self._last) / (1 + abs(self._last)) < self._tolerance:
            run_context.request_stop()
        self._last = loss


class _InitializeClustersHook(SessionRunHook):
    """The chief chooses first centers, batch by batch until there are enough; workers wait for it.

    They wait as long as for a session that the chief must make: `seconds`. Then a DeadlineExceededError says so.
    """

    def __init__(self, init_op: Any, initialized: Any, is_chief: bool, seconds: float) -> None:
        self._init_op, self._initialized, self._is_chief, self._seconds = init_op, initialized, is_chief, seconds

    def after_create_session(self, session: Any, coord: Any) -> None:
        end = time.monotonic() + self._seconds
        while not session.run(self._initialized):
            if self._is_chief:
                session.run(self._init_op)
                continue
            left = end - time.monotonic()
            if left <= 0:
                raise errors.DeadlineExceededError(
                    None,
                    None,
                    f"The chief has not chosen the first centers in {self._seconds:g} s. Is it running? How long to "
                    "wait is RunConfig's session_creation_timeout_secs.",
                )
            logging.info("Waiting for the chief to choose the first centers.")
            if coord.wait_for_stop(min(left, _LOOK_AGAIN_SECONDS)):
                coord.raise_requested_exception()
                return
