"""What the layers of contrib share: names of outputs, static conditions, collections, and contrib's variables.

A layer of `tf.layers` makes `kernel` and `bias`; contrib's variables are `weights` and `biases`, and they are in
MODEL_VARIABLES. `model_variables` is the custom getter that does both. Follows TensorFlow 1.15's
contrib/layers/python/layers/utils.py, which is public as `tf.contrib.layers.utils` is imported by programs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from tenfold.contrib.framework.variables import model_variable
from tenfold.graph.constant_value import constant_value as tensor_value
from tenfold.graph.default_scopes import add_to_collections
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.tensor import Tensor
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.variables import Variable
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "channel_dimension", "collect_named_outputs", "constant_value", "convert_collection_to_dict",
    "gather_tensors_aliases", "get_tensor_aliases", "get_variable_collections", "last_dimension",
    "n_positive_integers", "smart_cond", "static_cond", "two_element_tuple",
]  # fmt: skip

DATA_FORMATS_2D = ("NCHW", "NHWC")
DATA_FORMATS_3D = ("NCDHW", "NDHWC")


# --- outputs ---


def collect_named_outputs(collections: Any, alias: str, outputs: Any) -> Any:
    """The outputs, added to the collections under the name `alias`."""
    if collections:
        append_tensor_alias(outputs, alias)
        add_to_collections(collections, outputs)
    return outputs


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Gives the tensor one more name; a slash at its end is dropped."""
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.removesuffix("/")]
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """The names that collections know the tensor by: else its operation's, if it is the first output."""
    if hasattr(tensor, "aliases"):
        return list(tensor.aliases)
    return [tensor.op.name if tensor.name.endswith(":0") else tensor.name]


def gather_tensors_aliases(tensors: Iterable[Any]) -> list[str]:
    """The names of several tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection: Any, clear_collection: bool = False) -> OrderedDict[str, Any]:
    """Name → tensor of a collection, in its order; slim calls this the end points."""
    graph = get_default_graph()
    found = OrderedDict(
        (alias, tensor) for tensor in graph.get_collection(collection) for alias in get_tensor_aliases(tensor)
    )
    if clear_collection:
        graph.clear_collection(collection)
    return found


# --- conditions ---


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """The value of a constant or of a Python value; None for a variable or another tensor.

    Raises ValueError for None, and for a tensor that is not of type `dtype`.
    """
    given = value_or_tensor_or_var
    if given is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if not isinstance(given, (Tensor, Variable)):
        return given
    if dtype and given.dtype != dtype:
        raise ValueError(f"It has the wrong type {given.dtype} instead of {dtype}")
    return None if isinstance(given, Variable) else tensor_value(given)


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """One of the two functions' results, chosen now. Raises TypeError for what cannot be called."""
    if not callable(fn1):
        raise TypeError("fn1 must be callable.")
    if not callable(fn2):
        raise TypeError("fn2 must be callable.")
    return fn1() if pred else fn2()


def smart_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None) -> Any:
    """`static_cond` where the value of `pred` is known, else `tf.cond`."""
    known = constant_value(pred)
    return cond(pred, fn1, fn2, name=name) if known is None else static_cond(known, fn1, fn2)


# --- shapes ---


def _dimension(shape: Any, dim: int, min_rank: int) -> int:
    if shape.dims is None:
        raise ValueError("dims of shape must be known but is None")
    if len(shape.dims) < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {len(shape.dims)}")
    value: int | None = shape.dims[dim].value
    if value is None:
        raise ValueError(f"dimension {dim} of shape must be known but is None: {shape}")
    return value


def channel_dimension(shape: Any, data_format: str, min_rank: int = 1) -> int:
    """The number of channels. Raises ValueError if it is unknown."""
    return _dimension(shape, 1 if data_format == "channels_first" else -1, min_rank)


def last_dimension(shape: Any, min_rank: int = 1) -> int:
    """The size of the last dimension. Raises ValueError if it is unknown."""
    return _dimension(shape, -1, min_rank)


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Two integers from one or two. Raises ValueError for anything else."""
    if isinstance(int_or_tuple, (list, tuple)):
        if len(int_or_tuple) != 2:
            raise ValueError(f"Must be a list with 2 elements: {int_or_tuple}")
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    if isinstance(int_or_tuple, TensorShape) and int_or_tuple.ndims == 2:
        return int_or_tuple[0], int_or_tuple[1]
    raise ValueError("Must be an int, a list with 2 elements or a TensorShape of length 2")


def n_positive_integers(n: Any, value: Any) -> tuple[int, ...]:
    """`n` positive integers from one or `n`. Raises ValueError for anything else."""
    if int(n) < 1 or int(n) != n:
        raise ValueError("n must be a positive integer")
    try:
        values: tuple[int, ...] = (int(value),) * int(n)
    except (TypeError, ValueError):
        wrong = f"Expected sequence of {int(n)} positive integers, but received {value!r}"
        if len(value) != n:
            raise ValueError(wrong) from None
        try:
            values = tuple(int(each) for each in value)
        except (TypeError, ValueError):
            raise ValueError(wrong) from None
    for each in values:
        if each < 1:
            raise ValueError(f"expected positive integer, but received {each}")
    return values


def layers_format(data_format: str | None, accepted: tuple[str, ...]) -> str:
    """The `data_format` of `tf.layers` for that of contrib. Raises ValueError unless it is one of `accepted`."""
    if data_format not in accepted:
        raise ValueError(f"data_format has to be either {accepted[0]} or {accepted[1]}.")
    return "channels_first" if data_format.startswith("NC") else "channels_last"


# --- variables ---


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of the variable `name`: those given for it, or those given for all."""
    return variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections


def model_variables(rename: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """A custom getter: variables are model variables, their short names changed as `rename` says."""
    names = rename or {}

    def get(getter: Any, name: str, **given: Any) -> Any:
        head, slash, short = name.rpartition("/")
        kept = {key: value for key, value in given.items() if key in _PASSED_ON}
        return model_variable(head + slash + names.get(short, short), custom_getter=getter, **kept)

    return get


#: Arguments of a variable that contrib's variables take; the others, such as `constraint`, they drop.
_PASSED_ON = frozenset({
    "shape", "dtype", "initializer", "regularizer", "trainable", "collections", "caching_device", "partitioner",
    "use_resource", "synchronization", "aggregation",
})  # fmt: skip


def add_variable_to_collections(variable: Any, collections_set: Any, collections_name: str) -> None:
    """Adds a variable of a layer, or each of its partitions, to the collections given for it, once."""
    graph = get_default_graph()
    parts = list(variable) if hasattr(variable, "as_tensor") else [variable]
    for key in get_variable_collections(collections_set, collections_name) or ():
        for part in parts:
            if not any(part is other for other in graph.get_collection_ref(key)):
                graph.add_to_collection(key, part)


def normalized(outputs: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any) -> Any:
    """The outputs after the normalizer, if there is one, and the activation, if there is one."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return outputs if activation_fn is None else activation_fn(outputs)


def finished(
    outputs: Any, layer: Any, variables_collections: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any
) -> Any:
    """The outputs of a layer with `kernel` and `bias`, normalized; its variables in their collections."""
    add_variable_to_collections(layer.kernel, variables_collections, "weights")
    if layer.bias is not None:
        add_variable_to_collections(layer.bias, variables_collections, "biases")
    return normalized(outputs, normalizer_fn, normalizer_params, activation_fn)
