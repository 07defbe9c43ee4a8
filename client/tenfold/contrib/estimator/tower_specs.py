"""One spec of the towers' specs, for towers.py: losses are summed, metrics joined, predictions concatenated.

Follows TF 1.15's contrib/estimator/python/estimator/replicate_model_fn.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.estimator.export.export_output import ClassificationOutput, PredictOutput, RegressionOutput
from tenfold.graph import IndexedSlices, control_dependencies, device, get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, control_flow, math, state_ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.estimator.model_fn import EstimatorSpec


def sum_on_device(values: Sequence[Any], place: Any, name: str | None = None) -> Any:
    """The sum of tensors, or of slices, whose indices may repeat."""
    with device(place):
        if not isinstance(values[0], IndexedSlices):
            return math.add_n(list(values), name=name)
        return IndexedSlices(
            array.concat([each.values for each in values], axis=0),
            array.concat([each.indices for each in values], axis=0),
            values[0].dense_shape,
        )


def train_spec(specs: Sequence[EstimatorSpec], place: str) -> EstimatorSpec:
    """The last tower's, whose train op applies all gradients and whose hooks know of it."""
    return specs[-1]._replace(loss=sum_on_device([each.loss for each in specs], place, "loss"))


def eval_spec(specs: Sequence[EstimatorSpec], place: str) -> EstimatorSpec:
    """The first tower's, whose metrics get what the others have counted."""
    updates = [update for each in specs for _, update in each.eval_metric_ops.values()]
    with control_dependencies(updates):
        joined = _reduce_metric_variables(len(specs))
    metrics = {name: (value, joined) for name, (value, _) in specs[0].eval_metric_ops.items()}
    return specs[0]._replace(loss=sum_on_device([each.loss for each in specs], place, "loss"), eval_metric_ops=metrics)


def _reduce_metric_variables(number: int) -> Any:
    """Adds the other towers' variables of metrics to those of the first, and sets them to 0, so that it may repeat."""
    variables = get_collection(GraphKeys.METRIC_VARIABLES)
    each_has = len(variables) // number
    if len(variables) % number:
        raise ValueError(
            "Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls. "
            f"Expected {each_has * number} local variables, but got {len(variables)} instead."
        )
    ops = []
    for at in range(each_has):
        others = variables[at + each_has :: each_has]
        added = state_ops.assign_add(variables[at], math.add_n(others))
        with control_dependencies([added]):
            ops += [state_ops.assign(other, array.zeros_like(other)) for other in others]
    return control_flow.group(*ops)


def predict_spec(specs: Sequence[EstimatorSpec], place: str) -> EstimatorSpec:
    """The first tower's, with the predictions and outputs of all."""
    with device(place):
        predictions = _joined([each.predictions for each in specs])
        outputs = {
            name: _joined_output([each.export_outputs[name] for each in specs]) for name in specs[0].export_outputs
        }
    return specs[0]._replace(predictions=predictions, export_outputs=outputs)


def _joined(values: Sequence[Any]) -> Any:
    if not isinstance(values[0], dict):
        return array.concat(list(values), axis=0)
    return {name: array.concat([each[name] for each in values], axis=0, name=name) for name in values[0]}


def _joined_output(outputs: Sequence[Any]) -> Any:
    first = outputs[0]
    if isinstance(first, PredictOutput):
        return PredictOutput(_joined([each.outputs for each in outputs]))
    if isinstance(first, RegressionOutput):
        return RegressionOutput(_joined([each.value for each in outputs]))
    if not isinstance(first, ClassificationOutput):
        raise ValueError(f"outputs of {type(first).__name__} cannot be joined: use a PredictOutput")
    scores = None if first.scores is None else _joined([each.scores for each in outputs])
    classes = None if first.classes is None else _joined([each.classes for each in outputs])
    return ClassificationOutput(scores, classes)
