"""contrib's fully connected layers, those of old (`legacy_…`) too.

Follows TensorFlow 1.15's contrib/layers/python/layers/layers.py.
"""

from __future__ import annotations

import functools
import numbers
from typing import Any

from tenfold.contrib.arg_scope import add_arg_scope
from tenfold.contrib.layers.initializers import xavier_initializer
from tenfold.contrib.layers.utils import (
    collect_named_outputs,
    finished,
    model_variables,
)
from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import add_to_collections
from tenfold.layers import core
from tenfold.ops import array, init_ops, math, nn, slicing
from tenfold.ops.variable_scope import get_variable, variable_scope

_XAVIER = xavier_initializer()
_ZEROS = init_ops.zeros_initializer()


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation_fn(inputs · weights + biases) over the last dimension; a normalizer replaces the biases.

    Raises ValueError if `num_outputs` is not an integer, or the rank or the last dimension of the inputs is unknown.
    """
    if not isinstance(num_outputs, numbers.Integral):
        raise ValueError(f"num_outputs type should be one of [<class 'int'>], got {type(num_outputs)}.")
    getter = model_variables({"bias": "biases", "kernel": "weights"})
    with variable_scope(scope, "fully_connected", [inputs], reuse=reuse, custom_getter=getter) as inner:
        inputs = convert_to_tensor(inputs)
        layer = core.Dense(
            int(num_outputs),
            use_bias=bool(not normalizer_fn and biases_initializer),
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=inner.name,
            dtype=inputs.dtype.base_dtype,
            _scope=inner,
            _reuse=reuse,
        )
        outputs = finished(layer(inputs), layer, variables_collections, normalizer_fn, normalizer_params, activation_fn)
        return collect_named_outputs(outputs_collections, inner.name, outputs)


elu = functools.partial(fully_connected, activation_fn=nn.elu)
relu = functools.partial(fully_connected, activation_fn=nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=nn.relu6)
linear = functools.partial(fully_connected, activation_fn=None)


def legacy_fully_connected(
    x: Any,
    num_output_units: int,
    activation_fn: Any = None,
    weight_init: Any = _XAVIER,
    bias_init: Any = _ZEROS,
    name: Any = None,
    weight_collections: Any = (GraphKeys.WEIGHTS,),
    bias_collections: Any = (GraphKeys.BIASES,),
    output_collections: Any = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Any:
    """activation_fn(x · weights + bias) over the last dimension; the variables are `weights` and `bias`."""
    with variable_scope(name, "fully_connected", [x]):
        x = convert_to_tensor(x)
        dims = x.get_shape().dims
        if dims is None:
            raise ValueError("dims of x must be known but is None")
        if len(dims) < 2:
            raise ValueError(f"rank of x must be at least 2 not: {len(dims)}")
        if dims[-1].value is None:
            raise ValueError("last dimension of x must be known but is None")
        sizes = x.get_shape().as_list()

        def made(short: str, shape: list[int], initializer: Any, regularizer: Any, keys: Any) -> Any:
            return get_variable(
                short,
                shape=shape,
                dtype=x.dtype.base_dtype,
                initializer=initializer,
                collections=list(dict.fromkeys([*(keys or ()), GraphKeys.GLOBAL_VARIABLES])),
                regularizer=regularizer,
                trainable=trainable,
            )

        weights = made("weights", [sizes[-1], num_output_units], weight_init, weight_regularizer, weight_collections)
        y = math.matmul(x if len(sizes) == 2 else array.reshape(x, [-1, sizes[-1]]), weights)
        if bias_init is not None:
            y = nn.bias_add(y, made("bias", [num_output_units], bias_init, bias_regularizer, bias_collections))
        if len(sizes) > 2:
            *leading, _ = slicing.unstack(array.shape(x))
            y = array.reshape(y, array.stack([*leading, num_output_units]))
            y.set_shape([*sizes[:-1], num_output_units])
        y = y if activation_fn is None else activation_fn(y)
        add_to_collections([*(output_collections or ()), GraphKeys.ACTIVATIONS], y)
        return y


legacy_relu = functools.partial(legacy_fully_connected, activation_fn=nn.relu)
legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)
