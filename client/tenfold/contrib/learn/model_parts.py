"""What `tf.contrib.learn`'s models are made of: dense layers and weighted sums over columns, and how they are trained.

Used by dnn.py, linear.py and dnn_linear_combined.py. Scopes and variables are those of TensorFlow 1.15
(`dnn/hiddenlayer_0/weights`, `linear/<column>/weights`, `linear/bias_weight`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.contrib.feature_columns.base import OldColumn
from tenfold.contrib.learn.keys import PredictionKey
from tenfold.contrib.learn.metric_spec import MetricSpec
from tenfold.contrib.learn.model_fn import ModeKeys
from tenfold.feature_column import model as new_columns
from tenfold.graph import get_collection
from tenfold.ops import math, nn
from tenfold.ops.partitioned_variables import min_max_variable_partitioner
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ACTIVATIONS = {"relu": nn.relu, "tanh": math.tanh, "sigmoid": math.sigmoid}

#: Weights of a model's input are split over parameter servers only into parts of this size.
INPUT_SLICE_BYTES = 64 << 20


def feature_dict(features: Any) -> dict[str, Any]:
    """The features by name; a single tensor has the name ""."""
    return features if isinstance(features, dict) else {"": features}


def activation(given: Any) -> Any:
    """An activation function or the function of that name. Raises ValueError for another name."""
    if not isinstance(given, str):
        return given
    if given not in _ACTIVATIONS:
        names = ", ".join(_ACTIVATIONS)
        raise ValueError(f"Activation name should be one of [{names}], you provided {given}.")
    return _ACTIVATIONS[given]


def made(optimizer: Any) -> Any:
    """An optimizer, its name, or what a function makes."""
    return optimizer() if callable(optimizer) else optimizer


def partitioner(config: Any, slice_bytes: int | None = None) -> Any:
    """Splits large variables over the parameter servers."""
    parts = config.num_ps_replicas if config else 0
    if slice_bytes is None:
        return min_max_variable_partitioner(max_partitions=parts)
    return min_max_variable_partitioner(max_partitions=parts, min_slice_size=slice_bytes)


def dense_layers(
    features: Mapping[str, Any],
    feature_columns: Sequence[Any],
    hidden_units: Sequence[int],
    units: int,
    mode: str,
    activation_fn: Any,
    dropout: float | None,
    collection: str,
    input_partitioner: Any,
    separator: str,
) -> tuple[Any, str]:
    """Logits [batch, units], and the scope of the input. Variables are in `collection`."""
    from tenfold.contrib import layers

    def summarize(value: Any, tag: str) -> None:
        summary.scalar(f"{tag}{separator}fraction_of_zero_values", nn.zero_fraction(value))
        summary.histogram(f"{tag}{separator}activation", value)

    with variable_scope(
        "input_from_feature_columns", values=list(features.values()), partitioner=input_partitioner
    ) as input_scope:
        if all(isinstance(column, OldColumn) for column in feature_columns):
            from tenfold.contrib.feature_columns import input_from_feature_columns

            net = input_from_feature_columns(
                features, feature_columns, weight_collections=[collection], scope=input_scope
            )
        else:
            net = new_columns.input_layer(features, feature_columns, weight_collections=[collection])
    for number, size in enumerate(hidden_units):
        with variable_scope(f"hiddenlayer_{number}", values=(net,)) as scope:
            net = layers.fully_connected(
                net, size, activation_fn=activation_fn, variables_collections=[collection], scope=scope
            )
            if dropout is not None and mode == ModeKeys.TRAIN:
                net = layers.dropout(net, keep_prob=1.0 - dropout)
        summarize(net, scope.name)
    with variable_scope("logits", values=(net,)) as scope:
        logits = layers.fully_connected(net, units, activation_fn=None, variables_collections=[collection], scope=scope)
    summarize(logits, scope.name)
    return logits, input_scope.name


def weighted_sum(
    features: Mapping[str, Any], feature_columns: Sequence[Any], units: int, collection: str, joint: Any, scope: Any
) -> Any:
    """Logits [batch, units]. Variables are in `collection`."""
    from tenfold.contrib import feature_columns as old_columns

    if not all(isinstance(column, OldColumn) for column in feature_columns):
        return new_columns.linear_model(features, feature_columns, units=units, weight_collections=[collection])
    layer = old_columns.weighted_sum_from_feature_columns
    if joint:
        layer = old_columns.joint_weighted_sum_from_feature_columns  # type: ignore[assignment]  # Another second value.
    return layer(features, feature_columns, num_outputs=units, weight_collections=[collection], scope=scope)[0]


def gradient_multipliers(multipliers: Any, collection: str, input_scope: str) -> Any:
    """Variable → multiplier of its gradient, for embeddings. Raises ValueError for another column."""
    if not multipliers:
        return None
    found = {}
    for column, multiplier in multipliers.items():
        if type(column).__name__ not in ("_EmbeddingColumn", "EmbeddingColumn"):
            raise ValueError(
                f"learning rate multipler can only be defined for embedding columns. It is defined for {column}"
            )
        variables = get_collection(collection, f"{input_scope}/{column.name}")
        if not variables:
            raise ValueError(f"Couldn't find a variable for column {column}")
        found.update(dict.fromkeys(variables, multiplier))
    return found


class ClassMethods:
    """What classifiers say of an example, a key each. Goes before `Estimator`."""

    def predict_classes(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The class of each example."""
        return _of_key(self, PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The probabilities of all classes for each example."""
        return _of_key(self, PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)


class ClassifierMethods(ClassMethods):
    """`predict` of classifiers: the classes, or the probabilities. Goes before `Estimator`."""

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The classes; with `outputs` dictionaries of those predictions."""
        if not outputs:
            return self.predict_classes(x, input_fn, batch_size, as_iterable)
        return super().predict(  # type: ignore[misc]  # That of the estimator.
            x=x, input_fn=input_fn, batch_size=batch_size, outputs=outputs, as_iterable=as_iterable
        )


class RegressorMethods:
    """`predict` and `evaluate` of regressors: numbers. Goes before `Estimator`."""

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The numbers; with `outputs` dictionaries of those predictions."""
        if not outputs:
            return self.predict_scores(x, input_fn, batch_size, as_iterable)
        return super().predict(  # type: ignore[misc]  # That of the estimator.
            x=x, input_fn=input_fn, batch_size=batch_size, outputs=outputs, as_iterable=as_iterable
        )

    def predict_scores(
        self, x: Any = None, input_fn: Any = None, batch_size: int | None = None, as_iterable: bool = True
    ) -> Any:
        """The numbers of each example."""
        return _of_key(self, PredictionKey.SCORES, x, input_fn, batch_size, as_iterable)

    def evaluate(self, *args: Any, metrics: Any = None, **kwargs: Any) -> Any:
        """As `Estimator.evaluate`; a function as a metric gets the numbers."""
        picked = {
            key if isinstance(metric, MetricSpec) or isinstance(key, tuple) else (key, PredictionKey.SCORES): metric
            for key, metric in (metrics or {}).items()
        }
        return super().evaluate(*args, metrics=picked, **kwargs)  # type: ignore[misc]  # That of the estimator.


def _of_key(estimator: Any, key: str, x: Any, input_fn: Any, batch_size: int | None, as_iterable: bool) -> Any:
    from tenfold.contrib.learn.estimator import BaseEstimator

    found = BaseEstimator.predict(
        estimator, x=x, input_fn=input_fn, batch_size=batch_size, outputs=[key], as_iterable=as_iterable
    )
    if as_iterable:
        return (each[key] for each in found)
    return found[key].reshape(-1) if key == PredictionKey.CLASSES else found[key]
