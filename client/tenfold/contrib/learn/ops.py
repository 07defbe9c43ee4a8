"""`tf.contrib.learn.ops`: losses of linear models, and embeddings of ids.

Follows TensorFlow 1.15's `contrib/learn/python/learn/ops`; its sequence models are `tf.contrib.legacy_seq2seq`'s.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.learn.models import mean_squared_error_regressor, softmax_classifier
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, slicing
from tenfold.ops.variable_scope import get_variable, variable_scope

__all__ = ["categorical_variable", "embedding_lookup", "mean_squared_error_regressor", "softmax_classifier"]


def embedding_lookup(params: Any, ids: Any, name: str = "embedding_lookup") -> Any:
    """The rows of `params` for ids of any shape: [*ids' shape, row]."""
    with name_scope(name, None, [params, ids]):
        params, ids = convert_to_tensor(params), convert_to_tensor(ids)
        rows = slicing.gather(params, array.reshape(ids, [-1]))
        shape = array.concat([array.shape(ids), array.shape(params)[1:]], 0)
        found = array.reshape(rows, shape)
        if ids.shape.ndims is not None and params.shape.ndims is not None:
            found.set_shape(ids.shape.concatenate(params.shape[1:]))
        return found


def categorical_variable(tensor_in: Any, n_classes: int, embedding_size: int, name: str) -> Any:
    """An embedding of class ids, in a variable `<name>/<name>_embeddings`."""
    with variable_scope(name):
        weights = get_variable(f"{name}_embeddings", [n_classes, embedding_size])
        return embedding_lookup(weights, tensor_in)
