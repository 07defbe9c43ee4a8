"""Type specifications: `tf.TypeSpec`, `tf.TensorSpec`, `tf.SparseTensorSpec`, `tf.TensorArraySpec`.

A specification says what a value is (types, shapes, what it is made of) without the value, and takes values apart into
tensors and back. tf.data describes the elements of its datasets by them; data/specs.py has those of datasets and
optionals. Follows TensorFlow 1.15's framework/type_spec.py, tensor_spec.py and the specs of sparse tensors and tensor
arrays; the names with an underscore are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import nest
from tenfold.graph.constant_value import constant_value_as_shape
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tenfold.graph.tensor import Tensor
from tenfold.ops import generated_ops
from tenfold.ops.sparse import serialize_many_sparse, serialize_sparse
from tenfold.ops.tensor_array import TensorArray
from tenfold.ops.tensor_array_list import ListArray, sizes_of
from tenfold_core import dtypes
from tenfold_core.dtypes import DType, as_dtype
from tenfold_core.tensor_shape import TensorShape, as_shape

__all__ = ["BatchableTypeSpec", "SparseTensorSpec", "TensorArraySpec", "TensorSpec", "TypeSpec"]


class TypeSpec:
    """What a value is: see the subclasses. Equal if all that they say is equal."""

    @property
    def value_type(self) -> Any:
        """The Python type of such values."""
        raise NotImplementedError(f"{type(self).__name__}.value_type")

    @property
    def _component_specs(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._component_specs")

    def _to_components(self, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_components()")

    def _from_components(self, components: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._from_components()")

    def _serialize(self) -> tuple[Any, ...]:
        """What the constructor takes, in order."""
        raise NotImplementedError(f"{type(self).__name__}._serialize()")

    @property
    def _flat_tensor_specs(self) -> list[TensorSpec]:
        """What `_to_tensor_list` gives."""
        return nest.flatten(self._component_specs)

    def _to_tensor_list(self, value: Any) -> list[Any]:
        return nest.flatten(self._to_components(value))

    def _from_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        """The value of such tensors. Raises ValueError if they are not of `_flat_tensor_specs`."""
        expected = self._flat_tensor_specs
        if len(tensor_list) != len(expected):
            raise ValueError("Incompatible input: wrong number of tensors")
        for i, (tensor, spec) in enumerate(zip(tensor_list, expected, strict=True)):
            if not spec.is_compatible_with(tensor):
                raise ValueError(f"Incompatible input: tensor {i} ({tensor}) is incompatible with {spec}")
        return self._from_compatible_tensor_list(tensor_list)

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        return self._from_components(nest.pack_sequence_as(self._component_specs, tensor_list))

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value can be of both specifications, or the value is of this one."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        return type(self) is type(other) and _compatible(self._serialize(), other._serialize())

    def most_specific_compatible_type(self, other: TypeSpec) -> Any:
        """The narrowest specification that both are instances of. Raises ValueError if there is none."""
        if type(self) is not type(other):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return type(self)(*_merged(self._serialize(), other._serialize()))

    def _to_legacy_output_types(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_types()")

    def _to_legacy_output_shapes(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._to_legacy_output_shapes()")

    def _to_legacy_output_classes(self) -> Any:
        return self.value_type

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _key(self._serialize()) == _key(other._serialize())

    def __hash__(self) -> int:
        return hash((type(self), _key(self._serialize())))

    def __reduce__(self) -> Any:
        return type(self), self._serialize()

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._serialize()!r}"


class BatchableTypeSpec(TypeSpec):
    """A specification whose values can be stacked, and taken apart along their first dimension."""

    def _batch(self, batch_size: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._batch")

    def _unbatch(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._unbatch")

    def _to_batched_tensor_list(self, value: Any) -> list[Any]:
        """The tensors of a stacked value, each with the stack's dimension first."""
        tensors = self._to_tensor_list(value)
        if any(convert_to_tensor(tensor).shape.ndims == 0 for tensor in tensors):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return tensors


class TensorSpec(BatchableTypeSpec):
    """A tensor of a type and a shape, which may be partly known."""

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """Of another specification, with another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """Of a tensor. Raises ValueError for anything else."""
        if not isinstance(tensor, Tensor):
            raise ValueError("`tensor` should be a tf.Tensor")
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    @property
    def shape(self) -> TensorShape:
        """The shape, as far as it is known."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    @property
    def value_type(self) -> Any:
        return Tensor

    @property
    def _component_specs(self) -> Any:
        return self

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        return (
            isinstance(spec_or_value, (TensorSpec, Tensor))
            and self._dtype.is_compatible_with(spec_or_value.dtype)
            and self._shape.is_compatible_with(spec_or_value.shape)
        )

    def most_specific_compatible_type(self, other: Any) -> TensorSpec:
        if type(self) is not type(other) or self._dtype != other.dtype:
            raise ValueError(f"Types are not compatible: {self!r} vs {other!r}")
        name = self._name if self._name == other.name else None
        return TensorSpec(self._shape.most_specific_compatible_shape(other.shape), self._dtype, name)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._name

    def _to_components(self, value: Any) -> Tensor:
        wrong = f"Value {value!r} is not convertible to a tensor with dtype {self._dtype.name} and shape {self._shape}."
        try:
            tensor = convert_to_tensor(value, self._dtype)
        except (TypeError, ValueError):
            raise ValueError(wrong) from None
        if not tensor.shape.is_compatible_with(self._shape):
            raise ValueError(wrong)
        return tensor

    def _from_components(self, components: Any) -> Tensor:
        return self._from_compatible_tensor_list([components])

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> Tensor:
        tensor_list[0].set_shape(self._shape)
        return tensor_list[0]

    def _batch(self, batch_size: Any) -> TensorSpec:
        return TensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> TensorSpec:
        if self._shape.ndims == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return TensorSpec(self._shape[1:], self._dtype)

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape

    def _to_legacy_output_classes(self) -> Any:
        return Tensor

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, TensorSpec)
            and _key(self._shape) == _key(other._shape)
            and self._dtype == other._dtype
            and self._name == other._name
        )

    def __hash__(self) -> int:
        return hash((_key(self._shape), self._dtype))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


class SparseTensorSpec(BatchableTypeSpec):
    """A SparseTensor. In a dataset it travels as one variant, so that it can be batched."""

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """Of a SparseTensor or SparseTensorValue. Raises TypeError for anything else."""
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if not isinstance(value, SparseTensorValue):
            raise TypeError("Expected SparseTensor or SparseTensorValue")
        if isinstance(value.values, np.ndarray):
            return cls(value.dense_shape, value.values.dtype)
        return cls.from_value(SparseTensor.from_value(value))

    @property
    def shape(self) -> TensorShape:
        """The dense shape, as far as it is known."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def value_type(self) -> Any:
        return SparseTensor

    @property
    def _component_specs(self) -> Any:
        rank = self._shape.ndims
        return [
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        ]

    def _to_components(self, value: Any) -> Any:
        value = SparseTensor.from_value(value) if isinstance(value, SparseTensorValue) else value
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: Any) -> Any:
        if all(isinstance(part, np.ndarray) for part in components):
            return SparseTensorValue(*components)
        return SparseTensor(*components)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    @property
    def _flat_tensor_specs(self) -> list[TensorSpec]:
        # One sparse tensor is three variants, a batch of them a matrix: the rank is not known.
        return [TensorSpec(None, dtypes.variant)]

    def _to_tensor_list(self, value: Any) -> list[Any]:
        return [serialize_sparse(SparseTensor.from_value(value), out_type=dtypes.variant)]

    def _to_batched_tensor_list(self, value: Any) -> list[Any]:
        if self._shape.merge_with(constant_value_as_shape(value.dense_shape)).ndims == 0:
            raise ValueError("Unbatching a sparse tensor is only supported for rank >= 1")
        return [serialize_many_sparse(value, out_type=dtypes.variant)]

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> SparseTensor:
        parts = generated_ops.deserialize_sparse(tensor_list[0], self._dtype)
        result = SparseTensor(*parts)
        result.indices.set_shape([None, self._shape.ndims])
        result.dense_shape.set_shape([self._shape.ndims])
        return result

    def _batch(self, batch_size: Any) -> SparseTensorSpec:
        return SparseTensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> SparseTensorSpec:
        if self._shape.ndims == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return SparseTensorSpec(self._shape[1:], self._dtype)

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape


class TensorArraySpec(TypeSpec):
    """A TensorArray. In a dataset it travels as a list of tensors, one variant."""

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool | None = False,
        infer_shape: bool | None = True,
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size = dynamic_size
        self._infer_shape = infer_shape

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """Of a TensorArray. Raises TypeError for anything else."""
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but saw: {type(value)}")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> Any:
        return TensorArray

    @property
    def _component_specs(self) -> Any:
        return [TensorSpec([], dtypes.variant)]

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        return (
            isinstance(other, TensorArraySpec)
            and self._dtype.is_compatible_with(other._dtype)
            and self._element_shape.is_compatible_with(other._element_shape)
            and self._dynamic_size == other._dynamic_size
        )

    def most_specific_compatible_type(self, other: Any) -> TensorArraySpec:
        if not self.is_compatible_with(other):
            raise ValueError("Types are not compatible")
        shape = self._element_shape.most_specific_compatible_shape(other._element_shape)
        return TensorArraySpec(shape, self._dtype, self._dynamic_size, self._infer_shape and other._infer_shape)

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    def _to_components(self, value: Any) -> Any:
        if not isinstance(value, TensorArray):
            raise TypeError(f"value must be a TensorArray, but saw: {type(value)}")
        if isinstance(value, ListArray):
            return [value.flow]
        with name_scope("convert_tensor_array"):
            sizes = sizes_of(value.element_shape)
            return [tensor_op("TensorListFromTensor", tensor=value.stack(), element_shape=sizes)]

    def _from_components(self, components: Any) -> TensorArray:
        (variant,) = components
        grows, infers = bool(self._dynamic_size), bool(self._infer_shape)
        made = ListArray(self._dtype, flow=variant, dynamic_size=grows, infer_shape=infers)
        made._element_shape = [self._element_shape]
        return made

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        # As in TensorFlow, the two flags stand for dimensions before the shape.
        flags = [None if flag is None else int(flag) for flag in (self._dynamic_size, self._infer_shape)]
        return TensorShape(flags).concatenate(self._element_shape)


def type_spec_from_value(value: Any) -> Any:
    """The specification of one value: a tensor, or what says itself what it is. Raises TypeError for anything else."""
    spec = spec_or_none(value)
    if spec is not None:
        return spec
    try:
        return TensorSpec.from_tensor(convert_to_tensor(value))
    except (TypeError, ValueError):
        raise TypeError(f"Could not build a TypeSpec for {value!r} with type {type(value).__name__}") from None


def spec_or_none(value: Any) -> Any:
    """The specification of a value that has one without being converted, or None."""
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype.base_dtype)
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        return SparseTensorSpec.from_value(value)
    if isinstance(value, TensorArray):
        return TensorArraySpec.from_value(value)
    if isinstance(value, list) and value:
        # Datasets, say, of which a list is a batch; a list of anything else becomes a tensor.
        specs = [getattr(each, "_type_spec", None) for each in value]
        if all(isinstance(spec, BatchableTypeSpec) for spec in specs):
            merged: Any = specs[0]
            for spec in specs[1:]:
                merged = merged.most_specific_compatible_type(spec)
            return merged._batch(len(specs))
    return getattr(value, "_type_spec", None)


# --- comparing what specifications say ---


def _compatible(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_compatible(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_compatible(a[key], b[key]) for key in a)
    if isinstance(a, (TypeSpec, TensorShape, DType)):
        return a.is_compatible_with(b)
    return bool(a == b)


def _merged(a: Any, b: Any) -> Any:
    wrong = f"Types are not compatible: {a!r} vs {b!r}"
    if type(a) is not type(b):
        raise ValueError(wrong)
    if isinstance(a, tuple):
        if len(a) != len(b):
            raise ValueError(wrong)
        parts = [_merged(x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, dict):
        if a.keys() != b.keys():
            raise ValueError(wrong)
        return {key: _merged(a[key], b[key]) for key in a}
    if isinstance(a, TensorShape):
        return a.most_specific_compatible_shape(b)
    if isinstance(a, TypeSpec):
        return a.most_specific_compatible_type(b)
    if a != b:
        raise ValueError(wrong)
    return a


def _key(value: Any) -> Any:
    """What a specification says, in a form that can be compared and hashed."""
    if isinstance(value, tuple):
        return tuple(_key(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _key(value[key])) for key in sorted(value))
    if isinstance(value, TensorShape):
        return TensorShape, None if value.ndims is None else tuple(value.as_list())
    return value
