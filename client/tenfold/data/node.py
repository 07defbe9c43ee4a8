"""DatasetNode: a dataset as a tensor of the graph, with what is known of its elements.

Transformations (transforms.py and beside it) make DatasetNodes of DatasetNodes; `tf.data.Dataset` (dataset.py) is a
DatasetNode with methods. DatasetSpec describes a dataset inside an element: what `window` gives and `flat_map` takes.
Follows DatasetV2 and DatasetSpec of TensorFlow 1.15's dataset_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tenfold.data import nest, structure
from tenfold.data.options import Options
from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import tensor_op
from tenfold.ops.type_specs import BatchableTypeSpec, TensorSpec
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.data.functions import StructuredFunction
    from tenfold.graph.graph import Graph
    from tenfold.graph.tensor import Tensor


class DatasetNode:
    """The tensor of a dataset, its element specification, and what it was made of."""

    def __init__(
        self,
        variant: Tensor,
        element_spec: Any,
        inputs: Sequence[DatasetNode] = (),
        functions: Sequence[StructuredFunction] = (),
        options: Options | None = None,
    ) -> None:
        self._variant_tensor = variant
        self._element_spec = element_spec
        self._input_nodes = tuple(inputs)
        self._function_list = tuple(functions)
        self._own_options = options
        self._graph: Graph = get_default_graph()

    @property
    def element_spec(self) -> Any:
        """The specification of the elements."""
        return self._element_spec

    def _inputs(self) -> list[DatasetNode]:
        return list(self._input_nodes)

    def _functions(self) -> list[StructuredFunction]:
        return list(self._function_list)

    def options(self) -> Options:
        """The options of this dataset and its inputs."""
        result = Options()
        for each in self._inputs():
            result = result.merge(each.options())
        return result if self._own_options is None else result.merge(self._own_options)

    @property
    def _type_spec(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    @property
    def _flat_structure(self) -> dict[str, Any]:
        return structure.flat_attrs(self.element_spec)

    @property
    def _flat_types(self) -> list[Any]:
        return structure.get_flat_tensor_types(self.element_spec)

    @property
    def _flat_shapes(self) -> list[Any]:
        return structure.get_flat_tensor_shapes(self.element_spec)

    def _has_captured_ref(self) -> bool:
        """Whether a function uses the value of a reference variable."""
        captured = [tensor for function in self._functions() for tensor in function.captured_inputs]
        seen = set()
        while captured:
            tensor = captured.pop()
            if tensor.dtype.is_ref_dtype:
                return True
            if tensor.op not in seen:
                seen.add(tensor.op)
                captured.extend(tensor.op.inputs)
        return any(each._has_captured_ref() for each in self._inputs())


def node_of(op_type: str, element_spec: Any, inputs: Any, functions: Any = (), **arguments: Any) -> DatasetNode:
    """A dataset made by an operation that is told its elements by `output_types` and `output_shapes`."""
    variant = tensor_op(op_type, **arguments, **structure.flat_attrs(element_spec))
    return DatasetNode(variant, element_spec, inputs, functions)


def int64(value: Any, name: str) -> Tensor:
    """An argument that is a scalar of type int64."""
    return convert_to_tensor(value, dtypes.int64, name=name)


def is_true(value: Tensor) -> bool:
    """Whether a bool is known to be true before the graph runs."""
    known = known_value(value)
    return known is not None and bool(known)


def known_size(value: Tensor) -> int | None:
    """A scalar, if it is known before the graph runs and says how many; else None."""
    known = known_value(value)
    return None if known is None or known.ndim or known < 0 else int(known)


class DatasetSpec(BatchableTypeSpec):
    """A dataset as (part of) an element."""

    #: Makes a `tf.data.Dataset` of a tensor and a specification. Set by dataset.py, which imports this module.
    make: ClassVar[Callable[[Tensor, Any], Any]]

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._dataset_shape = as_shape(dataset_shape)

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """Of a dataset."""
        return cls(value.element_spec)

    @property
    def value_type(self) -> Any:
        return DatasetNode

    @property
    def element_spec(self) -> Any:
        """The specification of the dataset's elements."""
        return self._element_spec

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_spec, self._dataset_shape

    @property
    def _component_specs(self) -> Any:
        return TensorSpec(self._dataset_shape, dtypes.variant)

    def _to_components(self, value: Any) -> Any:
        return value._variant_tensor

    def _from_components(self, components: Any) -> Any:
        if self._dataset_shape.ndims == 0:
            return DatasetSpec.make(components, self._element_spec)
        return _NestedDatasets(components, self)

    def _to_tensor_list(self, value: Any) -> list[Any]:
        # A list of datasets is a batch of them.
        variants = [each._variant_tensor for each in value] if isinstance(value, list) else value._variant_tensor
        return [convert_to_tensor(variants)]

    def _to_batched_tensor_list(self, value: Any) -> list[Any]:
        self._check_batched()
        return self._to_tensor_list(value)

    def _check_batched(self) -> None:
        if self._dataset_shape.ndims == 0:
            raise ValueError("Unbatching a dataset is only supported for rank >= 1")

    def _batch(self, batch_size: Any) -> DatasetSpec:
        return DatasetSpec(self._element_spec, TensorShape([batch_size]).concatenate(self._dataset_shape))

    def _unbatch(self) -> DatasetSpec:
        self._check_batched()
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])

    def _to_legacy_output_types(self) -> Any:
        return self

    def _to_legacy_output_shapes(self) -> Any:
        return self

    def _to_legacy_output_classes(self) -> Any:
        return self

    # What the code that compares shapes asks of them: a dataset has none that could turn out weaker.

    ndims = None

    def most_specific_compatible_shape(self, other: DatasetSpec) -> Any:
        """As a shape among shapes: what both are instances of."""
        return self.most_specific_compatible_type(other)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        other = spec_or_value if isinstance(spec_or_value, DatasetSpec) else getattr(spec_or_value, "_type_spec", None)
        return (
            isinstance(other, DatasetSpec)
            and structure.are_compatible(self._element_spec, other._element_spec)
            and self._dataset_shape.is_compatible_with(other._dataset_shape)
        )

    def most_specific_compatible_type(self, other: Any) -> DatasetSpec:
        if not self.is_compatible_with(other):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        specs = self._element_spec, other._element_spec
        spec = nest.map_structure(lambda a, b: a.most_specific_compatible_type(b), *specs)
        return DatasetSpec(spec, self._dataset_shape.most_specific_compatible_shape(other._dataset_shape))


class _NestedDatasets:
    """Several datasets in one tensor: an element of a batch of windows."""

    def __init__(self, variant: Tensor, spec: DatasetSpec) -> None:
        self._variant_tensor = variant
        self._type_spec = spec
