"""`tf.contrib.linear_optimizer`: dual coordinate ascent for the linear models of `tf.contrib.learn`.

The solver is estimator/canned/sdca_model.py's; contrib/learn/svm.py and linear.py train with SDCAOptimizer. Follows
TensorFlow 1.15's `contrib/linear_optimizer/python`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.feature_columns.crossed import _CrossedColumn
from tenfold.contrib.feature_columns.dense import _BucketizedColumn, _RealValuedColumn
from tenfold.contrib.feature_columns.sparse import _SparseColumn, _WeightedSparseColumn
from tenfold.estimator.canned.sdca import distinct_ids
from tenfold.estimator.canned.sdca_model import SDCAModel
from tenfold.estimator.canned.sdca_table import ShardedMutableDenseHashTable, SparseFeatureColumn
from tenfold.feature_column.base import Features
from tenfold.ops import array, math
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SDCAOptimizer", "SdcaModel", "ShardedMutableDenseHashTable", "SparseFeatureColumn"]

#: Columns whose ids are features.
_OF_IDS = (_BucketizedColumn, _WeightedSparseColumn, _CrossedColumn, _SparseColumn)


class SdcaModel(SDCAModel):
    """The solver, as contrib had it: it takes an L2 regularization below 1 for 1."""

    _SLOT = "_unshrinked/SDCAOptimizer"

    def _check_regularization(self, options: Mapping[str, Any]) -> None:
        for name in ("symmetric_l1_regularization", "symmetric_l2_regularization"):
            if options[name] < 0.0:
                raise ValueError(f"{name} should be non-negative. Found ({options[name]:f})")

    def _l2(self) -> float:
        return max(float(self._options["symmetric_l2_regularization"]), 1.0)


class SDCAOptimizer:
    """Trains tf.contrib.learn's LinearClassifier of two classes, LinearRegressor of one number, and SVM.

    Features name each example in `example_id_column`, a string. In a cluster `num_loss_partitions` is the number of
    workers, `num_table_shards` that of parameter servers. As `tf.contrib.linear_optimizer.SDCAOptimizer`.
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = True,
        partitioner: Any = None,
    ) -> None:
        self.example_id_column = example_id_column
        self.num_loss_partitions = num_loss_partitions
        self.num_table_shards = num_table_shards
        self.symmetric_l1_regularization = symmetric_l1_regularization
        self.symmetric_l2_regularization = symmetric_l2_regularization
        self.adaptive = adaptive
        self.partitioner = partitioner

    def get_name(self) -> str:
        return "SDCAOptimizer"

    def get_train_step(
        self,
        columns_to_variables: Mapping[Any, Any],
        weight_column_name: str | None,
        loss_type: str,
        features: Mapping[Any, Any],
        targets: Any,
        global_step: Any,
    ) -> tuple[SdcaModel, Any]:
        """The solver and the operation of a step. Features may be of columns, transformed.

        Raises ValueError for a column of another kind.
        """
        batch = Features(features)
        dense, dense_weights, sparse, sparse_weights = [], [], [], []
        for column, variables in sorted(columns_to_variables.items(), key=lambda item: str(item[0].key)):
            if isinstance(column, _RealValuedColumn):
                tensor = batch.get(column)
                dense.append(array.reshape(tensor, [array.shape(tensor)[0], -1]))
                dense_weights.append(variables[0])
            elif isinstance(column, _OF_IDS):
                sparse.append(distinct_ids(*column.sparse_tensors(batch)))
                sparse_weights.append(list(variables))
            else:
                raise ValueError(f"SDCAOptimizer does not support column type {type(column).__name__}.")
        weights = features[weight_column_name] if weight_column_name else array.ones([array.shape(targets)[0]])
        solver = SdcaModel(
            {
                "sparse_features": sparse,
                "dense_features": dense,
                "example_labels": math.cast(array.reshape(targets, [-1]), dtypes.float32),
                "example_weights": math.cast(array.reshape(weights, [-1]), dtypes.float32),
                "example_ids": features[self.example_id_column],
            },
            {"sparse_features_weights": sparse_weights, "dense_features_weights": dense_weights},
            {
                "symmetric_l1_regularization": self.symmetric_l1_regularization,
                "symmetric_l2_regularization": self.symmetric_l2_regularization,
                "adaptive": self.adaptive,
                "num_loss_partitions": self.num_loss_partitions,
                "num_table_shards": self.num_table_shards,
                "loss_type": loss_type,
            },
        )
        return solver, solver.minimize(global_step=global_step)
