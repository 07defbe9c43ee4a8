"""A head made of several: each has logits and labels of its own, by its name, and the losses are added.

`tf.estimator.MultiHead` is the class, `tf.contrib.estimator.multi_head` makes one of heads that sum. Follows TensorFlow
1.15's `estimator/head/multi_head.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import metrics, summary
from tenfold.estimator.canned.base_head import DEFAULT_SERVING_KEY, PREDICT_SERVING_KEY, LossSpec, _Head
from tenfold.estimator.canned.metric_keys import MetricKeys
from tenfold.estimator.canned.public_heads import Head, train_op_of
from tenfold.estimator.export.export_output import PredictOutput
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.model_fn import EstimatorSpec
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import math
from tenfold.ops.control_flow import no_op

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MultiHead(_Head, Head):
    """Several heads with names. `head_weights` multiply their losses. Raises ValueError.

    Logits are a dictionary by the heads' names, or one tensor that has them side by side; labels are a dictionary.
    """

    def __init__(self, heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                f"heads and head_weights must have the same size. Given len(heads): {len(heads)}. "
                f"Given len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if not head.name:
                raise ValueError(f"All given heads must have name specified. Given: {head}")
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())

    @property
    def name(self) -> str:
        return "_".join(head.name for head in self._heads)

    @property
    def logits_dimension(self) -> Any:
        return sum(head.logits_dimension for head in self._heads)

    @property
    def loss_reduction(self) -> str:
        """That of all heads. Raises ValueError if theirs differ."""
        found = [head.loss_reduction for head in self._heads]
        if len(set(found)) > 1:
            raise ValueError(f"The loss_reduction must be the same for different heads. Given: {found}")
        return str(found[0])

    def create_loss(self, features: Mapping[str, Any], mode: str | None, logits: Any, labels: Any) -> LossSpec:
        """The sum of the heads' losses; the other fields are dictionaries by the heads' names."""
        by_name = self._by_name(logits, labels)
        specs = {h.name: h.create_loss(features, mode, by_name[h.name], labels[h.name]) for h in self._heads}
        weights = dict(zip(specs, self._head_weights or [1.0] * len(specs), strict=True))
        return LossSpec(
            self._merged([spec.training_loss for spec in specs.values()]),
            {name: math.multiply(spec.unreduced_loss, weights[name]) for name, spec in specs.items()},
            {name: math.multiply(spec.weights, weights[name]) for name, spec in specs.items()},
            {name: spec.processed_labels for name, spec in specs.items()},
        )

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> Any:
        """The regularized loss, a scalar."""
        total = self.create_loss(features or {}, mode, logits, labels).training_loss
        return total + math.add_n(regularization_losses) if regularization_losses is not None else total

    def predictions(self, logits: Any, keys: Any = None) -> dict[Any, Any]:
        """(head's name, key) → prediction."""
        by_name = self._by_name(logits)
        with name_scope(None, "merge_pred"):
            found = [(head.name, head.predictions(by_name[head.name])) for head in self._heads]
        return {(name, key): value for name, each in found for key, value in each.items()}

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """A dictionary for `update_metrics` to fill."""
        return {}

    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Any = None,
    ) -> dict[str, Any]:
        """`eval_metrics` with the metrics of each head for its labels."""
        by_name = self._by_name(logits, labels)
        if regularization_losses is not None:
            key = MetricKeys.LOSS_REGULARIZATION
            eval_metrics[f"{key}/{self.name}"] = metrics.mean(math.add_n(regularization_losses), name=key)
        for head in self._heads:
            eval_metrics = head.update_metrics(eval_metrics, features, by_name[head.name], labels[head.name], mode)
        return eval_metrics

    def create_estimator_spec(  # type: ignore[override]  # Two arguments more, as in TensorFlow.
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Any = None,
        update_ops: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        by_name = self._by_name(logits, labels)
        specs = [
            head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=by_name[head.name],
                labels=labels[head.name] if labels else None,
                train_op_fn=lambda _: no_op(),
            )
            for head in self._heads
        ]
        pairs = list(zip(self._heads, specs, strict=True))
        predictions = {(head.name, key): value for head, spec in pairs for key, value in spec.predictions.items()}
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(ModeKeys.PREDICT, predictions=predictions, export_outputs=self._exported(pairs))
        if mode == ModeKeys.EVAL:
            found: dict[str, Any] = {}
            with name_scope(None, "merge_eval"):
                if regularization_losses is not None:
                    key = MetricKeys.LOSS_REGULARIZATION
                    found[f"{key}/{self.name}"] = metrics.mean(math.add_n(regularization_losses), name=key)
                for head, spec in pairs:
                    key = f"{MetricKeys.LOSS}/{head.name}"
                    found[key] = metrics.mean(spec.loss, name=key)
                    found.update(spec.eval_metric_ops)
                total = self._total(specs, regularization_losses)
            return EstimatorSpec(ModeKeys.EVAL, predictions=predictions, loss=total, eval_metric_ops=found)
        if mode != ModeKeys.TRAIN:
            raise ValueError(f"mode={mode} unrecognized")
        total = self._total(specs, regularization_losses)
        train_op = train_op_of(total, optimizer, trainable_variables, train_op_fn, update_ops)
        with name_scope(""):
            summary.scalar(MetricKeys.LOSS, total)
            if regularization_losses is not None:
                summary.scalar(MetricKeys.LOSS_REGULARIZATION, math.add_n(regularization_losses))
        return EstimatorSpec(ModeKeys.TRAIN, predictions=predictions, loss=total, train_op=train_op)

    def _total(self, specs: Sequence[EstimatorSpec], regularization_losses: Any) -> Any:
        total = self._merged([spec.loss for spec in specs])
        return total + math.add_n(regularization_losses) if regularization_losses is not None else total

    def _merged(self, losses: Sequence[Any]) -> Any:
        with name_scope(None, "merge_losses", [*losses, *self._head_weights]):
            if self._head_weights:
                losses = [math.multiply(loss, w) for loss, w in zip(losses, self._head_weights, strict=True)]
            return math.add_n(losses)

    def _by_name(self, logits: Any, labels: Any = None) -> dict[str, Any]:
        """The logits by the heads' names. Raises ValueError for those or labels that are missing."""
        found = logits if isinstance(logits, dict) else self._split(logits)
        if labels is not None and not isinstance(labels, dict):
            raise ValueError(f"labels must be a dict. Given: {labels}")
        for what, given in (("logits", found), ("labels", labels)):
            missing = [head.name for head in self._heads if given is not None and head.name not in given]
            if missing:
                raise ValueError(f"{what} has missing values for head(s): {missing}")
        return found

    def _split(self, logits: Any) -> dict[str, Any]:
        with name_scope(None, "split_logits", [logits]):
            logits = convert_to_tensor(logits)
            sizes = [head.logits_dimension for head in self._heads]
            shape = logits.shape.as_list()
            if shape[-1] is not None and shape[-1] != sum(sizes):
                raise ValueError(
                    f"Could not split logits of shape {shape!r} among the heads with individual logits dimensions: "
                    f"{sizes!r}. The last dimension of the logits tensor should equal {sum(sizes)} but is {shape[-1]}."
                )
            found, begin = {}, 0
            for head, size in zip(self._heads, sizes, strict=True):
                found[head.name] = logits[..., begin : begin + size]
                begin += size
            return found

    def _exported(self, pairs: Any) -> dict[str, Any]:
        first, spec = pairs[0]
        outputs = {DEFAULT_SERVING_KEY: _default_output(spec.export_outputs, first.name)}
        merged: dict[str, Any] = {}
        for head, spec in pairs:
            for key, value in spec.export_outputs.items():
                outputs[head.name if key == DEFAULT_SERVING_KEY else f"{head.name}/{key}"] = value
                if key == PREDICT_SERVING_KEY and isinstance(value, PredictOutput):
                    merged.update({f"{head.name}/{name}": tensor for name, tensor in value.outputs.items()})
        outputs[PREDICT_SERVING_KEY] = PredictOutput(merged)
        return outputs


def _default_output(outputs: dict[str, Any], name: str) -> Any:
    if len(outputs) == 1:
        return next(iter(outputs.values()))
    if DEFAULT_SERVING_KEY not in outputs:
        raise ValueError(
            f"{name} did not specify default export_outputs. Given: {outputs} Suggested fix: Use one of the heads in "
            f"tf.estimator, or include key {DEFAULT_SERVING_KEY} in export_outputs."
        )
    return outputs[DEFAULT_SERVING_KEY]
