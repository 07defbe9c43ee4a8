"""From Python values to tensors: `convert_to_tensor` and the registry of conversion functions.

Tensors pass as they are; variables, indexed slices and constants register a function here, when tenfold.ops is loaded.
Functions are tried in the order of their priority, then of registration; one that does not apply returns
NotImplemented. As in TensorFlow 1.x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.tensor import Tensor
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: (priority, order of registration, base types, function), kept sorted.
_registry: list[tuple[int, int, tuple[type, ...], Callable[..., Any]]] = []
#: Type → the functions that apply; emptied by a registration.
_cache: dict[type, list[tuple[tuple[type, ...], Callable[..., Any]]]] = {}


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Registers `conversion_func(value, dtype=None, name=None, as_ref=False)` for instances of `base_type`.

    It returns a tensor, or NotImplemented if it cannot convert this value, or raises if nothing should.
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(t, type) for t in types):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _registry.append((priority, len(_registry), types, conversion_func))
    _registry.sort(key=lambda row: row[:2])
    _cache.clear()


def _functions_for(kind: type) -> list[tuple[tuple[type, ...], Callable[..., Any]]]:
    found = _cache.get(kind)
    if found is None:
        found = _cache[kind] = [(types, function) for _, _, types, function in _registry if issubclass(kind, types)]
    return found


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    as_ref: bool = False,
) -> Tensor:
    """`value` as a tensor of the default graph.

    `dtype` is required, `preferred_dtype` (alias `dtype_hint`) is preferred. With `as_ref`, a reference variable
    gives its reference. Raises TypeError if nothing can convert the type, ValueError if the value does not fit `dtype`.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        if wanted is not None and not wanted.base_dtype.is_compatible_with(value.dtype.base_dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.name}: {value!r}"
            )
        return value
    hint = preferred_dtype if preferred_dtype is not None else dtype_hint
    tried = None if wanted is not None or hint is None else as_dtype(hint)
    for types, function in _functions_for(type(value)):
        result: Any = NotImplemented
        if tried is not None:
            try:
                result = function(value, dtype=tried, name=name, as_ref=as_ref)
            except (TypeError, ValueError):
                result = NotImplemented
            else:
                if result is not NotImplemented and result.dtype.base_dtype != tried.base_dtype:
                    raise TypeError(
                        f"Conversion function {function!r} for type {types} returned incompatible dtype: "
                        f"requested = {tried.base_dtype.name}, actual = {result.dtype.base_dtype.name}"
                    )
        if result is NotImplemented:
            result = function(value, dtype=wanted, name=name, as_ref=as_ref)
        if result is NotImplemented:
            continue
        if not isinstance(result, Tensor):
            raise RuntimeError(f"Conversion function {function!r} for type {types} returned non-Tensor: {result!r}")
        if wanted is not None and not wanted.base_dtype.is_compatible_with(result.dtype.base_dtype):
            raise RuntimeError(
                f"Conversion function {function!r} for type {types} returned incompatible dtype: "
                f"requested = {wanted.name}, actual = {result.dtype.name}"
            )
        return result
    raise TypeError(
        f"Cannot convert {value!r} with type {type(value).__name__} to Tensor: no conversion function registered."
    )


def convert_n_to_tensor(
    values: Iterable[Any], dtype: Any = None, name: str | None = None, preferred_dtype: Any = None, as_ref: bool = False
) -> list[Tensor]:
    """Each of `values` as a tensor, named `name_0`, `name_1`, … where a node must be made."""
    return [
        convert_to_tensor(value, dtype, None if name is None else f"{name}_{i}", preferred_dtype, as_ref=as_ref)
        for i, value in enumerate(values)
    ]


def is_dense_tensor_like(value: Any) -> bool:
    """True for a tensor and for what registered itself as standing for one (a variable)."""
    return isinstance(value, Tensor) or hasattr(type(value), "_as_graph_element")
