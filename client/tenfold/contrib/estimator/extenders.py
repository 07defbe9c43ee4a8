"""Estimators and optimizers with a little more: features among the predictions, gradients that are clipped.

Follows TF 1.15's contrib/estimator/python/estimator/extenders.py, with its error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.estimator.estimator import Estimator
from tenfold.estimator.export.export_output import PredictOutput
from tenfold.graph import Tensor
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.ops import clip
from tenfold.ops.sparse import sparse_tensor_to_dense
from tenfold.train.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.estimator.model_fn import EstimatorSpec


def clip_gradients_by_norm(optimizer: Optimizer, clip_norm: Any) -> Optimizer:
    """`optimizer`, whose gradients together have a norm of at most `clip_norm` before they are applied."""

    def clipped(grads_and_vars: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        gradients, variables = zip(*grads_and_vars, strict=True)
        return list(zip(clip.clip_by_global_norm(gradients, clip_norm)[0], variables, strict=True))

    return _TransformGradients(optimizer, clipped, "ClipByNorm" + optimizer.get_name())


class _TransformGradients(Optimizer):
    """Applies what `transform` makes of the gradients; all else is the optimizer's."""

    def __init__(self, optimizer: Optimizer, transform: Callable[..., Any], name: str | None = None) -> None:
        super().__init__(False, name or optimizer.get_name())
        self._optimizer, self._transform = optimizer, transform

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        return self._optimizer.apply_gradients(self._transform(list(grads_and_vars)), global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        return self._optimizer.variables()


def forward_features(
    estimator: Estimator, keys: Any = None, sparse_default_values: Mapping[str, Any] | None = None
) -> Estimator:
    """A new estimator, on the same folder, whose predictions have these features as well (None: all).

    Sparse features with a default value become dense. Raises TypeError for keys that are no strings; the model
    function raises ValueError for a key that is no feature or is a prediction already.
    """
    wanted = _checked_keys(keys)

    def new_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if not isinstance(spec.predictions, dict):
            raise ValueError(
                f"Predictions should be a dict to be able to forward features. Given: {type(spec.predictions)}"
            )
        forwarded = {}
        for key in features.keys() if wanted is None else wanted:
            _check_key(key, features, spec.predictions)
            forwarded[key] = _dense(key, features[key], sparse_default_values or {})
        for name in ("predict", "serving_default"):
            output = (spec.export_outputs or {}).get(name)
            if isinstance(output, PredictOutput):
                output.outputs.update(forwarded)
        return spec._replace(predictions={**spec.predictions, **forwarded})

    return Estimator(model_fn=new_model_fn, model_dir=estimator.model_dir, config=estimator.config)


def _checked_keys(keys: Any) -> list[str] | None:
    if keys is None or isinstance(keys, str):
        return None if keys is None else [keys]
    if not isinstance(keys, (list, tuple)):
        raise TypeError(f"keys should be either a string or a list of strings. Given: {type(keys)}")
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(
                f"All items in the given keys list should be a string. There exist an item with type: {type(key)}"
            )
    return list(keys)


def _check_key(key: str, features: Mapping[str, Any], predictions: Mapping[str, Any]) -> None:
    if key not in features:
        raise ValueError(
            f'keys should be exist in features. Key "{key}" is not in features dict. features dict has following keys: '
            f"{features.keys()}. Please check arguments of forward_features."
        )
    if key in predictions:
        raise ValueError(
            f"Cannot forward feature key ({key}). Since it does exist in predictions. Existing prediction keys: "
            f"{predictions.keys()}. Please check arguments of forward_features."
        )


def _dense(key: str, value: Any, defaults: Mapping[str, Any]) -> Any:
    feature = convert_to_tensor_or_sparse_tensor(value)
    if key in defaults:
        if not isinstance(feature, SparseTensor):
            raise ValueError(f"Feature ({key}) is expected to be a `SparseTensor`.")
        feature = sparse_tensor_to_dense(feature, default_value=defaults[key])
    if not isinstance(feature, Tensor):
        raise ValueError(
            f"Feature ({key}) should be a Tensor. Please use `keys` argument of forward_features to filter unwanted "
            f"features, or add key to argument `sparse_default_values`. Type of features[{key}] is {type(feature)}."
        )
    return feature
