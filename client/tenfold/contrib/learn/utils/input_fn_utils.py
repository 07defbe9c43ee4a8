"""Inputs of served models. Follows TensorFlow 1.15's `contrib/learn/python/learn/utils/input_fn_utils.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold.ops import array
from tenfold.ops.parsing import parse_example
from tenfold_core import dtypes


class InputFnOps(NamedTuple):
    """What a serving input function returns: features, labels (None), and the placeholders that requests fill."""

    features: Any
    labels: Any
    default_inputs: Any


def build_parsing_serving_input_fn(feature_spec: Any, default_batch_size: int | None = None) -> Any:
    """A serving input function that parses Example protos."""

    def input_fn() -> InputFnOps:
        serialized = array.placeholder(dtypes.string, shape=[default_batch_size], name="input_example_tensor")
        return InputFnOps(parse_example(serialized, feature_spec), None, {"examples": serialized})

    return input_fn


def build_default_serving_input_fn(features: Any, default_batch_size: int | None = None) -> Any:
    """A serving input function with a placeholder for each feature."""

    def input_fn() -> InputFnOps:
        made = {}
        for name, tensor in features.items():
            shape = [default_batch_size, *tensor.get_shape().as_list()[1:]]
            made[name] = array.placeholder(tensor.dtype, shape=shape, name=tensor.op.name)
        return InputFnOps(made, None, made)

    return input_fn
