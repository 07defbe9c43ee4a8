"""The `feed_dict` of `Session.run`: from keys and values of any kind to tensor names and arrays.

`resolve_feeds` looks up every key, takes composite keys apart, converts each value to an array of the tensor's type
and checks its shape. Pure but for a TensorHandle, whose value its session reads. Called by base_session.py; fetches.py
is the other half.
Follows TF 1.15's client/session.py in what is accepted and in wording; a bad value's error also names its tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.session.composite_values import find_expansion
from tenfold.session.elements import as_in_a_step, is_tensor
from tenfold.session.tensor_handles import TensorHandle

if TYPE_CHECKING:
    from tenfold.session.elements import GraphLike, TensorLike


def resolve_feeds(graph: GraphLike, feed_dict: Mapping[Any, Any] | None) -> dict[str, np.ndarray]:
    """Tensor name → array of that tensor's type, C-contiguous and aligned; strings are object arrays of `bytes`.

    An array that has the right type already is not copied: it still shares memory with the caller's value, so pass
    it on only through `read_only`. Raises TypeError for keys and values of a wrong type and ValueError for a wrong
    shape, a tensor that may not be fed, or a key given twice.
    """
    if not feed_dict:
        return {}
    if not isinstance(feed_dict, Mapping):
        raise TypeError(f"`feed_dict` must be a dictionary, but got {type(feed_dict).__name__}: {feed_dict!r}")
    feeds: dict[str, np.ndarray] = {}
    for key, value in _pairs(feed_dict):
        tensor = feed_tensor(graph, key)
        name = tensor.name
        if name in feeds:
            raise ValueError(f"Cannot flatten dict because this key is not unique: {tensor}")
        feeds[name] = convert_feed(tensor, value)
        if not graph.is_feedable(tensor):
            raise ValueError(f"Tensor {name} may not be fed.")
    return feeds


def feed_tensor(graph: GraphLike, key: Any) -> TensorLike:
    """The tensor that a feed key names. Raises TypeError if it names none."""
    try:
        tensor: TensorLike = graph.as_graph_element(key, allow_tensor=True, allow_operation=False)
    except (TypeError, ValueError, KeyError) as error:
        text = error.args[0] if error.args else error
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None
    return as_in_a_step(graph, tensor)  # type: ignore[no-any-return]


def feed_list_tensors(graph: GraphLike, feeds: Any) -> list[TensorLike]:
    """The tensors named by the `feeds` of a partial run: one key or a list of keys, composite ones taken apart."""
    tensors: list[TensorLike] = []
    for key in feeds if isinstance(feeds, (list, tuple)) else [feeds]:
        expansion = find_expansion(key)
        if expansion is None:
            parts: Any = [key]
        elif expansion.partial_feed is None:
            raise TypeError(f"Feed argument {key!r} has invalid type {type(key)!r}: it cannot be fed to a partial run")
        else:
            parts = expansion.partial_feed(key)
        tensors.extend(feed_tensor(graph, part) for part in parts)
    return tensors


def convert_feed(tensor: TensorLike, value: Any) -> np.ndarray:
    """`value` as an array that `tensor` can be fed. Raises TypeError or ValueError, naming the tensor."""
    if is_tensor(value):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
            "strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was "
            f"{value} which was passed to the argument `feed_dict` with key {tensor}."
        )
    if isinstance(value, TensorHandle):
        value = value._value_for(tensor)
    dtype = tensor.dtype
    kind = dtype.base_dtype.name
    if isinstance(value, int) and not _fits(dtype.as_numpy_dtype, value):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
            f"{dtype.as_numpy_dtype}. Try explicitly setting the type of the feed tensor to a larger type "
            "(e.g. int64)."
        )
    if dtype.base_dtype.is_carried and getattr(value, "dtype", None) != dtype.as_numpy_dtype:
        raise TypeError(f"{kind} is fed as an array of {dtype.as_numpy_dtype} (feeding Tensor {tensor.name})")
    try:
        array = bytes_array(value) if kind == "string" else np.asarray(value, dtype=dtype.as_numpy_dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        wrong = TypeError if isinstance(error, TypeError) else ValueError
        raise wrong(f"{error} (feeding Tensor {tensor.name}, which has dtype {kind})") from error
    if not array.flags.aligned:
        array = array.copy()
    shape = tensor.get_shape()
    if not shape.is_compatible_with(array.shape):
        raise ValueError(f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has shape {shape}")
    return array


def bytes_array(value: Any) -> np.ndarray:
    """`value` as an object array of `bytes`; text is encoded as UTF-8. Raises TypeError for any other element."""
    array = np.asarray(value, dtype=object, order="C")
    elements = array.ravel().tolist()
    if all(type(element) is bytes for element in elements):
        return array
    result = np.empty(len(elements), dtype=object)
    for position, element in enumerate(elements):
        if isinstance(element, str):
            result[position] = element.encode("utf-8")
        elif isinstance(element, bytes):
            result[position] = bytes(element)
        else:
            raise TypeError(f"Unsupported object type {type(element).__name__}: expected bytes or str, got {element!r}")
    return result.reshape(array.shape)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view of `array`: the form in which a feed enters a step."""
    view = array.view()
    view.flags.writeable = False
    return view


def _fits(numpy_type: Any, value: int) -> bool:
    """True if a Python integer survives the conversion to the tensor's type."""
    if numpy_type is object or numpy_type is np.object_:
        return False
    try:
        return bool(numpy_type(value) == value)
    except (OverflowError, TypeError):
        return False


def _pairs(feed_dict: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """(key of one tensor, value) for every tensor fed; tuples and composite keys are taken apart."""
    for key, value in feed_dict.items():
        yield from _expanded(key, value)


def _expanded(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(key, tuple):
        if not isinstance(value, (list, tuple)):
            raise TypeError(
                f"A feed_dict key that is a tuple needs a tuple or list of values, but got {type(value).__name__} "
                f"for key {list(key)}"
            )
        if len(key) != len(value):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(key)} elements, but value had {len(value)} elements. "
                f"Key: {list(key)}, value: {list(value)}."
            )
        for key_part, value_part in zip(key, value, strict=True):
            yield from _expanded(key_part, value_part)
        return
    expansion = find_expansion(key)
    if expansion is None:
        yield key, value
        return
    if expansion.feed is None:
        raise TypeError(f"Feed argument {key!r} has invalid type {type(key)!r}: no feed function is registered for it")
    yield from expansion.feed(key, value)
