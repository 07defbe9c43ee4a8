"""Elements of datasets and their specifications: taken apart into flat tensors, and put together again.

An element is a nested structure (nest.py) of values; its specification is the same structure of TypeSpecs. Operations
see lists of tensors only. Follows TensorFlow 1.15's data/util/structure.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import nest
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.graph.tensor import Tensor
from tenfold.ops.tensor_array import TensorArray
from tenfold.ops.type_specs import SparseTensorSpec, TensorArraySpec, TensorSpec, TypeSpec, spec_or_none
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


def normalize_element(element: Any) -> Any:
    """The element with tensors for what is not yet a value of TensorFlow's."""
    components: list[Any] = []
    with name_scope("normalize_element"):
        for number, value in enumerate(nest.flatten(element)):
            spec = spec_or_none(value)
            if isinstance(spec, SparseTensorSpec):
                components.append(SparseTensor.from_value(value))
            elif spec is None or isinstance(spec, TensorSpec):
                components.append(convert_to_tensor(value, name=f"component_{number}"))
            else:
                components.append(value)
    return nest.pack_sequence_as(element, components)


def type_spec_from_value(element: Any) -> Any:
    """The specification of an element. Raises TypeError for what is neither a value nor converts to a tensor."""
    spec = spec_or_none(element)
    if spec is not None:
        return spec
    if nest.is_sequence(element):
        return nest.map_structure(type_spec_from_value, element)
    try:
        tensor = convert_to_tensor(element)
    except (TypeError, ValueError):
        raise TypeError(f"Could not build a TypeSpec for {element!r} with type {type(element).__name__}") from None
    return TensorSpec(tensor.shape, tensor.dtype.base_dtype)


def convert_legacy_structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    """The specification that types, shapes and classes give together, each in the structure of the elements."""
    flat = zip(*map(nest.flatten, (output_types, output_shapes, output_classes)), strict=False)
    return nest.pack_sequence_as(output_classes, [_spec(*column) for column in flat])


def _spec(dtype: Any, shape: Any, kind: Any) -> Any:
    if isinstance(kind, TypeSpec):
        return kind
    if isinstance(kind, type) and issubclass(kind, SparseTensor):
        return SparseTensorSpec(shape, dtype)
    if isinstance(kind, type) and issubclass(kind, Tensor):
        return TensorSpec(shape, dtype)
    if isinstance(kind, type) and issubclass(kind, TensorArray):
        dims = as_shape(shape).as_list()
        dynamic, inferred = (None if flag is None else bool(flag) for flag in dims[:2])
        return TensorArraySpec(dims[2:], dtype, dynamic, inferred)
    raise TypeError(f"Could not build a structure for output class {kind!r}")


# --- what programs know of a specification: types, shapes and classes ---


def legacy_types(element_spec: Any) -> Any:
    """The types, in the structure of the elements."""
    return nest.map_structure(lambda spec: spec._to_legacy_output_types(), element_spec)


def legacy_shapes(element_spec: Any) -> Any:
    """The static shapes, in the structure of the elements."""
    return nest.map_structure(lambda spec: spec._to_legacy_output_shapes(), element_spec)


def legacy_classes(element_spec: Any) -> Any:
    """The Python classes (`tf.Tensor`, `tf.SparseTensor`, …), in the structure of the elements."""
    return nest.map_structure(lambda spec: spec._to_legacy_output_classes(), element_spec)


# --- flat tensors ---


def get_flat_tensor_specs(element_spec: Any) -> list[TensorSpec]:
    """What the tensors of an element are."""
    return [spec for part in nest.flatten(element_spec) for spec in part._flat_tensor_specs]


def get_flat_tensor_shapes(element_spec: Any) -> list[TensorShape]:
    """The static shapes of the tensors of an element."""
    return [spec.shape for spec in get_flat_tensor_specs(element_spec)]


def get_flat_tensor_types(element_spec: Any) -> list[DType]:
    """The types of the tensors of an element."""
    return [spec.dtype for spec in get_flat_tensor_specs(element_spec)]


def flat_attrs(element_spec: Any) -> dict[str, Any]:
    """The attributes by which operations are told what the elements are."""
    return {
        "output_types": get_flat_tensor_types(element_spec),
        "output_shapes": get_flat_tensor_shapes(element_spec),
    }


def to_tensor_list(element_spec: Any, element: Any) -> list[Any]:
    """The tensors of an element. Raises TypeError or ValueError if it is not of the specification."""
    return _encoded(element_spec, element, lambda spec, value: spec._to_tensor_list(value))


def to_batched_tensor_list(element_spec: Any, element: Any) -> list[Any]:
    """The tensors of an element that is a batch, with the batch as their first dimension."""
    return _encoded(element_spec, element, lambda spec, value: spec._to_batched_tensor_list(value))


def _encoded(element_spec: Any, element: Any, encode: Callable[[Any, Any], list[Any]]) -> list[Any]:
    nest.assert_same_structure(element_spec, element)
    pairs = zip(nest.flatten(element_spec), nest.flatten(element), strict=True)
    return [tensor for spec, value in pairs for tensor in encode(spec, value)]


def from_tensor_list(element_spec: Any, tensor_list: list[Any]) -> Any:
    """The element of such tensors. Raises ValueError if they are not of the specification."""
    return _decoded(element_spec, tensor_list, lambda spec, tensors: spec._from_tensor_list(tensors))


def from_compatible_tensor_list(element_spec: Any, tensor_list: list[Any]) -> Any:
    """`from_tensor_list` of tensors that are known to be of the specification."""
    return _decoded(element_spec, tensor_list, lambda spec, tensors: spec._from_compatible_tensor_list(tensors))


def _decoded(element_spec: Any, tensor_list: list[Any], decode: Callable[[Any, list[Any]], Any]) -> Any:
    specs = nest.flatten(element_spec)
    lengths = [len(spec._flat_tensor_specs) for spec in specs]
    if sum(lengths) != len(tensor_list):
        raise ValueError(f"Expected {sum(lengths)} tensors but got {len(tensor_list)}.")
    values, start = [], 0
    for spec, length in zip(specs, lengths, strict=True):
        values.append(decode(spec, list(tensor_list[start : start + length])))
        start += length
    return nest.pack_sequence_as(element_spec, values)


def are_compatible(spec1: Any, spec2: Any) -> bool:
    """Whether an element can be of both specifications."""
    try:
        nest.assert_same_structure(spec1, spec2)
    except (TypeError, ValueError):
        return False
    pairs = zip(nest.flatten(spec1), nest.flatten(spec2), strict=True)
    return all(a.is_compatible_with(b) and b.is_compatible_with(a) for a, b in pairs)
