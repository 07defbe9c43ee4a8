"""`tf.saved_model.signature_def_utils`: makes signatures, and says which ones a server serves.

Used by builder_impl.py and loader_impl.py. Follows TF 1.15's saved_model/signature_def_utils_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.tensor import Tensor
from tenfold.saved_model import signature_constants as names
from tenfold.saved_model import utils
from tenfold_core import errors
from tenfold_protos import meta_graph_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph.operation import Operation
    from tenfold_protos.meta_graph_pb2 import SignatureDef, TensorInfo

__all__ = [
    "build_signature_def",
    "classification_signature_def",
    "is_valid_signature",
    "load_op_from_signature_def",
    "op_signature_def",
    "predict_signature_def",
    "regression_signature_def",
    "supervised_eval_signature_def",
    "supervised_train_signature_def",
]


def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """A signature of these tensors, by the names that a caller uses."""
    signature = meta_graph_pb2.SignatureDef()
    for name, info in (inputs or {}).items():
        signature.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        signature.outputs[name].CopyFrom(info)
    if method_name is not None:
        signature.method_name = method_name
    return signature


def _examples(examples: Any, method: str) -> dict[str, TensorInfo]:
    if examples is None:
        raise ValueError(f"{method} examples cannot be None.")
    if not isinstance(examples, Tensor):
        raise ValueError(f"{method} examples must be a string Tensor.")
    return {"inputs": _checked(examples, types_pb2.DT_STRING, f"{method} examples must be a string Tensor.")}


def _checked(tensor: Any, dtype: Any, refusal: str) -> TensorInfo:
    info = utils.build_tensor_info(tensor)
    if info.dtype != dtype:
        raise ValueError(refusal)
    return info


def regression_signature_def(examples: Tensor, predictions: Tensor) -> SignatureDef:
    """A signature of the method "regress": serialized tf.Examples (string) to float32 predictions.

    Raises ValueError for None or another type.
    """
    inputs = _examples(examples, "Regression")
    if predictions is None:
        raise ValueError("Regression predictions cannot be None.")
    output = _checked(predictions, types_pb2.DT_FLOAT, "Regression output must be a float Tensor.")
    return build_signature_def(inputs, {names.REGRESS_OUTPUTS: output}, names.REGRESS_METHOD_NAME)


def classification_signature_def(examples: Tensor, classes: Tensor | None, scores: Tensor | None) -> SignatureDef:
    """A signature of the method "classify": serialized tf.Examples (string) to classes (string), scores (float32).

    Raises ValueError for another type, and if neither classes nor scores are given.
    """
    if examples is not None and isinstance(examples, Tensor) and classes is None and scores is None:
        raise ValueError("Classification classes and scores cannot both be None.")
    inputs = _examples(examples, "Classification")
    outputs = {}
    if classes is not None:
        outputs[names.CLASSIFY_OUTPUT_CLASSES] = _checked(
            classes, types_pb2.DT_STRING, "Classification classes must be a string Tensor."
        )
    if scores is not None:
        outputs[names.CLASSIFY_OUTPUT_SCORES] = _checked(
            scores, types_pb2.DT_FLOAT, "Classification scores must be a float Tensor."
        )
    return build_signature_def(inputs, outputs, names.CLASSIFY_METHOD_NAME)


def _infos(tensors: Mapping[str, Any]) -> dict[str, TensorInfo]:
    return {name: utils.build_tensor_info(tensor) for name, tensor in tensors.items()}


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """A signature of the method "predict": any tensors. Raises ValueError without inputs or without outputs."""
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), names.PREDICT_METHOD_NAME)


def supervised_train_signature_def(
    inputs: Mapping[str, Any],
    loss: Mapping[str, Any] | None,
    predictions: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> SignatureDef:
    """A signature of the training graph that an estimator exports. Raises ValueError without inputs."""
    return _supervised(names.SUPERVISED_TRAIN_METHOD_NAME, inputs, loss, predictions, metrics)


def supervised_eval_signature_def(
    inputs: Mapping[str, Any],
    loss: Mapping[str, Any] | None,
    predictions: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> SignatureDef:
    """A signature of the evaluation graph that an estimator exports. Raises ValueError without inputs."""
    return _supervised(names.SUPERVISED_EVAL_METHOD_NAME, inputs, loss, predictions, metrics)


def _supervised(method: str, inputs: Mapping[str, Any], *outputs: Mapping[str, Any] | None) -> SignatureDef:
    if not inputs:
        raise ValueError(f"{method} inputs cannot be None or empty.")
    found: dict[str, TensorInfo] = {}
    for tensors in outputs:
        found.update(_infos(tensors or {}))
    return build_signature_def(_infos(inputs), found, method)


def is_valid_signature(signature_def: SignatureDef | None) -> bool:
    """Whether a server can serve it: classify, regress or predict, with the tensors that the method needs."""
    if signature_def is None:
        return False
    inputs = {name: info.dtype for name, info in signature_def.inputs.items()}
    outputs = {name: info.dtype for name, info in signature_def.outputs.items()}
    if not inputs or not outputs:
        return False
    if signature_def.method_name == names.PREDICT_METHOD_NAME:
        return True
    examples = {names.CLASSIFY_INPUTS: types_pb2.DT_STRING}
    if signature_def.method_name == names.REGRESS_METHOD_NAME:
        return inputs == examples and outputs == {names.REGRESS_OUTPUTS: types_pb2.DT_FLOAT}
    if signature_def.method_name == names.CLASSIFY_METHOD_NAME:
        allowed = {
            names.CLASSIFY_OUTPUT_CLASSES: types_pb2.DT_STRING,
            names.CLASSIFY_OUTPUT_SCORES: types_pb2.DT_FLOAT,
        }
        return inputs == examples and outputs.items() <= allowed.items()
    return False


def op_signature_def(op: Any, key: str) -> SignatureDef:
    """A signature whose one output `key` names an operation."""
    return build_signature_def(outputs={key: utils.build_tensor_info_from_op(op)})


def load_op_from_signature_def(
    signature_def: SignatureDef, key: str, import_scope: str | None = None
) -> Tensor | Operation:
    """The operation of such a signature in the default graph. Raises NotFoundError if it is not there."""
    try:
        return utils.get_element_from_tensor_info(signature_def.outputs[key], import_scope=import_scope)
    except KeyError:
        raise errors.NotFoundError(
            None,
            None,
            f"The {key} could not be found in the graph. Please make sure the SavedModel was created by the internal "
            "_SavedModelBuilder. If you are using the public API, please make sure the SignatureDef in the SavedModel "
            f'does not contain the key "{key}".',
        ) from None
