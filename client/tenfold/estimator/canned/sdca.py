"""`tf.estimator.experimental.LinearSDCA`: the solver of sdca_model.py in the place of a linear estimator's optimizer.

Called by linear.py. Follows TensorFlow 1.15's `estimator/canned/linear.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.estimator.canned.class_heads import Binary
from tenfold.estimator.canned.model_parts import fraction_of_zeros
from tenfold.estimator.canned.regression_heads import Regression
from tenfold.estimator.canned.sdca_model import SDCAModel
from tenfold.estimator.canned.sdca_table import SparseFeatureColumn
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.feature_column.base import CategoricalColumn, DenseColumn, Features
from tenfold.feature_column.model import linear_model
from tenfold.ops import array, math, slicing
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunHook
from tenfold.train.training_util import get_global_step
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class LinearSDCA:
    """Trains LinearClassifier with two classes, and LinearRegressor with one number, by dual coordinate ascent.

    Features name each example in `example_id_column`, a string. As `tf.estimator.experimental.LinearSDCA`; in a cluster
    `num_loss_partitions` is the number of workers, `num_table_shards` that of parameter servers.
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = False,
    ) -> None:
        self._example_id_column = example_id_column
        self._options = {
            "symmetric_l1_regularization": symmetric_l1_regularization,
            "symmetric_l2_regularization": symmetric_l2_regularization,
            "adaptive": adaptive,
            "num_loss_partitions": num_loss_partitions,
            "num_table_shards": num_table_shards,
        }

    def train_step(
        self, weights: Mapping[Any, Any], weight_column: str | None, loss_type: str, columns: Iterable[Any],
        features: Mapping[str, Any], labels: Any,
    ) -> tuple[SDCAModel, Any]:  # fmt: skip
        """The solver and the operation of a step. `weights` is column → its variables, and "bias" → the bias'.

        Raises ValueError for a column that is neither categorical nor dense, or has a variable of its own.
        """
        batch, count = Features(features), array.shape(labels)[0]
        dense, dense_weights, sparse, sparse_weights = [], [], [], []
        for column in sorted(columns, key=lambda each: each.name):
            if isinstance(column, CategoricalColumn):
                sparse.append(distinct_ids(*column.sparse_tensors(batch)))
                sparse_weights.append(weights[column])
            elif isinstance(column, DenseColumn):
                if column.variable_shape.ndims != 1:
                    raise ValueError(
                        f"Column {type(column).__name__} has rank {column.variable_shape.ndims}, larger than 1."
                    )
                if any(not _is_of_the_sum(each) for each in weights[column]):
                    raise ValueError(f"LinearSDCA does not support column type {type(column).__name__}.")
                dense.append(column.dense_tensor(batch, (), True))
                dense_weights.append(weights[column])
            else:
                raise ValueError(f"LinearSDCA does not support column type {type(column).__name__}.")
        dense.append(array.ones([count, 1]))
        dense_weights.append(weights["bias"])
        given = array.reshape(features[weight_column], [-1]) if weight_column else array.ones([count])
        solver = SDCAModel(
            {
                "sparse_features": sparse,
                "dense_features": dense,
                "example_labels": math.cast(array.reshape(labels, [-1]), dtypes.float32),
                "example_weights": math.cast(given, dtypes.float32),
                "example_ids": features[self._example_id_column],
            },
            {"sparse_features_weights": sparse_weights, "dense_features_weights": dense_weights},
            {**self._options, "loss_type": loss_type},
        )
        return solver, solver.minimize(global_step=get_global_step())


def _is_of_the_sum(variable: Any) -> bool:
    """Whether it is a weight of the linear model or a part of one, and not a column's own variable."""
    return "weights" in variable.op.name.split("/")[-2:]


class UpdateWeightsHook(SessionRunHook):
    """Gives the weights their shrunk values in each step."""

    def __init__(self, solver: SDCAModel, train_op: Any) -> None:
        self._solver, self._train_op = solver, train_op

    def begin(self) -> None:
        self._update = self._solver.update_weights(self._train_op)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._update)


def check_optimizer(optimizer: Any, sparse_combiner: str, n_classes: int = 2, label_dimension: int = 1) -> None:
    """Raises ValueError for a model that LinearSDCA cannot train."""
    if not isinstance(optimizer, LinearSDCA):
        return
    if sparse_combiner != "sum":
        raise ValueError('sparse_combiner must be "sum" when optimizer is a LinearSDCA object.')
    if n_classes > 2:
        raise ValueError("LinearSDCA cannot be used in a multi-class setting.")
    if label_dimension > 1:
        raise ValueError("LinearSDCA can only be used with one-dimensional label.")


def sdca_model_fn(
    features: Mapping[str, Any], labels: Any, mode: str, head: Any, feature_columns: Any, optimizer: LinearSDCA
) -> Any:
    """The EstimatorSpec of a linear model that `optimizer` trains. Raises ValueError for another kind of head."""
    if isinstance(head, Binary):
        loss_type = "logistic_loss"
    elif isinstance(head, Regression) and head.logits_dimension == 1:
        loss_type = "squared_loss"
    else:
        raise ValueError(f"Unsupported head type: {head}")
    weights: dict[Any, Any] = {}
    logits = linear_model(features, feature_columns, units=1, cols_to_vars=weights)
    summary.scalar("bias", weights["bias"][0][0])
    summary.scalar("fraction_of_zero_weights", fraction_of_zeros([weights[each] for each in weights if each != "bias"]))
    if mode != ModeKeys.TRAIN:
        return head.create_estimator_spec(features=features, mode=mode, labels=labels, logits=logits)
    solver, train_op = optimizer.train_step(weights, head._weight_column, loss_type, feature_columns, features, labels)
    spec = head.create_estimator_spec(
        features=features, mode=mode, labels=labels, logits=logits, train_op_fn=lambda _: train_op
    )
    hook = UpdateWeightsHook(solver, train_op)
    return spec._replace(training_chief_hooks=(*spec.training_chief_hooks, hook))


def distinct_ids(ids: Any, weights: Any) -> SparseFeatureColumn:
    """The ids of a batch as a sparse feature: each once an example, with the sum of its weights; without those below 0,
    which stand for unknown values.
    """
    values = array.ones([array.shape(ids.indices)[0]]) if weights is None else weights.values
    examples = ids.indices[:, 0]
    flat = math.cast(array.reshape(ids.values, [-1]), dtypes.int64)
    known = math.greater_equal(flat, 0)
    flat, examples = slicing.boolean_mask(flat, known), slicing.boolean_mask(examples, known)
    values = slicing.boolean_mask(array.reshape(values, [-1]), known)
    # an id and its example in one number
    width = math.reduce_max(flat) + 1
    pairs, place = slicing.unique(width * examples + flat)
    of_pair = math.floordiv(pairs, width)
    sums = math.unsorted_segment_sum(values, place, array.shape(pairs)[0])
    return SparseFeatureColumn(of_pair, pairs - width * of_pair, sums)
