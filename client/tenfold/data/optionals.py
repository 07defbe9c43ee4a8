"""`tf.data.experimental.Optional`: a value that may be missing, such as the next element at the end of a dataset.

Follows TensorFlow 1.15's data/ops/optional_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data import structure
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import create, tensor_op
from tenfold.ops.type_specs import TensorSpec, TypeSpec
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.data.iterators import Iterator
    from tenfold.graph.tensor import Tensor

__all__ = ["Optional", "OptionalSpec", "get_next_as_optional"]


class Optional:
    """A value, or none, of a known specification; made by the static methods or `get_next_as_optional`."""

    def __init__(self, variant: Tensor, value_structure: Any) -> None:
        self._variant_tensor = variant
        self._value_structure = value_structure

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with a value."""
        with name_scope("optional") as scope:
            with name_scope("value"):
                spec = structure.type_spec_from_value(value)
                tensors = structure.to_tensor_list(spec, value)
            return Optional(tensor_op("OptionalFromValue", scope, components=tensors), spec)

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """An optional without a value."""
        return Optional(tensor_op("OptionalNone"), value_structure)

    def has_value(self, name: str | None = None) -> Tensor:
        """A scalar bool: whether there is a value."""
        return tensor_op("OptionalHasValue", name, optional=self._variant_tensor)

    def get_value(self, name: str | None = None) -> Any:
        """The value; when run without one, InvalidArgumentError."""
        with name_scope(name, "OptionalGetValue", [self._variant_tensor]) as scope:
            attrs = structure.flat_attrs(self._value_structure)
            op = create("OptionalGetValue", scope, {"optional": self._variant_tensor, **attrs})
            return structure.from_tensor_list(self._value_structure, list(op.outputs))

    @property
    def value_structure(self) -> Any:
        """The specification of the value."""
        return self._value_structure

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._value_structure)


class OptionalSpec(TypeSpec):
    """`tf.OptionalSpec`: an optional as (part of) an element."""

    def __init__(self, value_structure: Any) -> None:
        self._value_structure = value_structure

    @classmethod
    def from_value(cls, value: Any) -> OptionalSpec:
        """Of an optional."""
        return cls(value.value_structure)

    @property
    def value_type(self) -> Any:
        return Optional

    def _serialize(self) -> tuple[Any, ...]:
        return (self._value_structure,)

    @property
    def _component_specs(self) -> Any:
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value: Any) -> Any:
        return [value._variant_tensor]

    def _from_components(self, components: Any) -> Optional:
        return Optional(components[0], self._value_structure)

    def _to_legacy_output_types(self) -> Any:
        return self

    def _to_legacy_output_shapes(self) -> Any:
        return self

    def _to_legacy_output_classes(self) -> Any:
        return self


def get_next_as_optional(iterator: Iterator) -> Optional:
    """What comes next in an iterator, or none at the end, where `get_next` raises."""
    attrs = structure.flat_attrs(iterator.element_spec)
    variant = tensor_op("IteratorGetNextAsOptional", iterator=iterator._iterator_resource, **attrs)
    return Optional(variant, iterator.element_spec)
