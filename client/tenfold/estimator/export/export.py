"""What feeds an exported model: input receivers, which are placeholders and the features made of them.

saved_models.py calls the functions that make them. Follows TF 1.15's estimator/export/export.py, with its names of
inputs and error messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.estimator.util import parse_input_fn_result
from tenfold.graph import Graph, Tensor, convert_to_tensor
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, parsing
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The name of a single feature, input or label among several.
SINGLE_FEATURE_DEFAULT_NAME = "feature"
SINGLE_RECEIVER_DEFAULT_NAME = "input"
SINGLE_LABEL_DEFAULT_NAME = "label"

_DEFAULT_NAMES = {
    "feature": SINGLE_FEATURE_DEFAULT_NAME,
    "label": SINGLE_LABEL_DEFAULT_NAME,
    "receiver_tensor": SINGLE_RECEIVER_DEFAULT_NAME,
    "receiver_tensors_alternative": SINGLE_RECEIVER_DEFAULT_NAME,
}


def wrap_and_check_input_tensors(tensors: Any, field_name: str, allow_int_keys: bool = False) -> dict[Any, Any]:
    """Name → tensor; a single tensor gets the default name. Raises ValueError for None, other keys or values."""
    if tensors is None:
        raise ValueError(f"{field_name}s must be defined.")
    given = tensors if isinstance(tensors, dict) else {_DEFAULT_NAMES[field_name]: tensors}
    for name, tensor in given.items():
        if not isinstance(name, (str, int) if allow_int_keys else str):
            kinds = "strings or ints" if allow_int_keys else "strings"
            raise ValueError(f"{field_name} keys must be {kinds}: {name}.")
        _check_tensor(tensor, name, field_name)
    return given


def _check_tensor(tensor: Any, name: Any, error_label: str = "feature") -> None:
    """Raises ValueError unless it is a tensor, or holds one that it converts to, as LabeledTensor does."""
    if isinstance(tensor, (Tensor, SparseTensor)):
        return
    wrong = ValueError(f"{error_label}{f' {name}' if name else ''} must be a Tensor or SparseTensor.")
    if not hasattr(tensor, "tensor"):
        raise wrong
    try:
        convert_to_tensor(tensor)
    except TypeError:
        raise wrong from None


class _Serving(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: dict[str, Any] | None


class ServingInputReceiver(_Serving):
    """Features of a model, and the tensors that a request feeds.

    A single feature becomes a dictionary with the key "feature", a single receiver one with "input".
    `receiver_tensors_alternatives` are further ways to feed, by name: each is a signature of its own. Raises
    ValueError for what are no tensors. As TensorFlow 1.15's `tf.estimator.export.ServingInputReceiver`.
    """

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        features = wrap_and_check_input_tensors(features, "feature", allow_int_keys=True)
        return super().__new__(cls, features, *_checked_receivers(receiver_tensors, receiver_tensors_alternatives))


class TensorServingInputReceiver(_Serving):
    """As ServingInputReceiver, for a model whose only feature is a tensor and stays one."""

    __slots__ = ()

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined.")
        _check_tensor(features, None)
        return super().__new__(cls, features, *_checked_receivers(receiver_tensors, receiver_tensors_alternatives))


def _checked_receivers(receivers: Any, alternatives: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    receivers = wrap_and_check_input_tensors(receivers, "receiver_tensor")
    if alternatives is None:
        return receivers, None
    if not isinstance(alternatives, dict):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {alternatives}.")
    checked = {
        name: wrap_and_check_input_tensors(each, "receiver_tensors_alternative") for name, each in alternatives.items()
    }
    return receivers, checked


class UnsupervisedInputReceiver(ServingInputReceiver):
    """Features and what feeds them, for exporting a training or evaluation without labels."""

    __slots__ = ()

    def __new__(cls, features: Any, receiver_tensors: Any) -> UnsupervisedInputReceiver:
        made = super().__new__(cls, features, receiver_tensors)
        assert isinstance(made, UnsupervisedInputReceiver)
        return made


class _Supervised(NamedTuple):
    features: Any
    labels: Any
    receiver_tensors: dict[str, Any]


class SupervisedInputReceiver(_Supervised):
    """Features, labels and what feeds them, for exporting a training or evaluation. The first two stay as given."""

    __slots__ = ()

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        wrap_and_check_input_tensors(features, "feature", allow_int_keys=True)
        wrap_and_check_input_tensors(labels, "label", allow_int_keys=True)
        receivers = wrap_and_check_input_tensors(receiver_tensors, "receiver_tensor")
        return super().__new__(cls, features, labels, receivers)


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a receiver of serialized tf.train.Examples, [batch] strings, parsed by `feature_spec`."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = array.placeholder(dtypes.string, shape=[default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parsing.parse_example(examples, feature_spec), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a receiver of the features themselves, like the given tensors but for the batch size."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        receivers = _placeholders_from_receiver_tensors_dict(features, default_batch_size)
        return ServingInputReceiver(receivers, receivers)

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes a receiver of features and labels, each a tensor or a dictionary of tensors.

    Raises ValueError for names that both have. As TensorFlow 1.15's
    `tf.estimator.experimental.build_raw_supervised_input_receiver_fn`.
    """

    def as_dict(values: Any, name: str) -> dict[str, Any]:
        return values if isinstance(values, dict) else {name: values}

    feature_dict = as_dict(features, SINGLE_RECEIVER_DEFAULT_NAME)
    label_dict = as_dict(labels, SINGLE_LABEL_DEFAULT_NAME)
    both = set(feature_dict) & set(label_dict)
    if both:
        raise ValueError(f"Features and labels must have distinct keys. Found overlapping keys: {both}")

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        of_features = _placeholders_from_receiver_tensors_dict(feature_dict, default_batch_size)
        of_labels = _placeholders_from_receiver_tensors_dict(label_dict, default_batch_size)
        return SupervisedInputReceiver(
            of_features if isinstance(features, dict) else of_features[SINGLE_RECEIVER_DEFAULT_NAME],
            of_labels if isinstance(labels, dict) else of_labels[SINGLE_LABEL_DEFAULT_NAME],
            {**of_features, **of_labels},
        )

    return supervised_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(
    input_fn: Callable[..., Any], **input_fn_args: Any
) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes a receiver like what `input_fn` returns, which is called in a graph of its own."""
    with Graph().as_default():
        features, labels, _ = parse_input_fn_result(input_fn(**input_fn_args))
    return build_raw_supervised_input_receiver_fn(features, labels)


def _placeholder_from_tensor(tensor: Any, default_batch_size: int | None = None) -> Any:
    """A placeholder of the tensor's type, shape but for the batch size, and name."""
    shape = TensorShape([default_batch_size]).concatenate(tensor.get_shape()[1:])
    return array.placeholder(tensor.dtype, shape=shape, name=tensor.op.name)


def _placeholders_from_receiver_tensors_dict(
    input_vals: Mapping[str, Any], default_batch_size: int | None = None
) -> dict[str, Any]:
    return {name: _placeholder_from_tensor(each, default_batch_size) for name, each in input_vals.items()}
