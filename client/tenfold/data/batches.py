"""Transformations that put elements together and take them apart: batch, padded_batch, unbatch, sparse batches.

Functions that make DatasetNodes of DatasetNodes. Follows TensorFlow 1.15's dataset_ops.py and
data/experimental/ops/batching.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.data import nest, structure
from tenfold.data.mapping import mapped
from tenfold.data.node import DatasetNode, int64, is_true, known_size, node_of
from tenfold.data.transforms import restructured
from tenfold.graph.constant_value import constant_value_as_shape, known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops.type_specs import SparseTensorSpec
from tenfold_core import dtypes
from tenfold_core.dtypes import DType
from tenfold_core.tensor_shape import Dimension, TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def batched_spec(element_spec: Any, size: Tensor, drop_remainder: Tensor) -> Any:
    """What batches of such elements are: of a known size only if the last may not be smaller."""
    known = known_size(size) if is_true(drop_remainder) else None
    return nest.map_structure(lambda part: part._batch(known), element_spec)


def batched(source: DatasetNode, batch_size: Any, drop_remainder: Any) -> DatasetNode:
    """`batch_size` elements each, stacked; a smaller rest is dropped if `drop_remainder`."""
    size = int64(batch_size, "batch_size")
    drop = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
    return node_of(
        "BatchDatasetV2",
        batched_spec(source.element_spec, size, drop),
        (source,),
        input_dataset=source._variant_tensor,
        batch_size=size,
        drop_remainder=drop,
    )


def padded_batched(
    source: DatasetNode, batch_size: Any, padded_shapes: Any, padding_values: Any, drop_remainder: Any
) -> DatasetNode:
    """`batch_size` elements each, padded to one shape and stacked.

    In a shape None, or -1 in a tensor, stands for the largest of the batch. Raises TypeError for sparse elements and
    for values of another type, ValueError for shapes that do not fit.
    """
    spec = source.element_spec
    types, shapes = structure.legacy_types(spec), structure.legacy_shapes(spec)
    if any(_is_sparse(part) for part in nest.flatten(structure.legacy_classes(spec))):
        raise TypeError("Batching of padded sparse tensors is not currently supported")
    size = int64(batch_size, "batch_size")
    values = nest.map_structure(_default_padding, types) if padding_values is None else padding_values
    wanted = nest.flatten_up_to(shapes, padded_shapes)
    padded = [_padded_shape(each, known) for each, known in zip(wanted, nest.flatten(shapes), strict=True)]
    padding = nest.flatten(nest.map_structure_up_to(shapes, _padding_value, values, types))
    drop = convert_to_tensor(drop_remainder, dtypes.bool_, name="drop_remainder")
    known_drop = known_value(drop)
    rows = TensorShape([known_size(size) if is_true(drop) else None])
    output_shapes = [rows.concatenate(constant_value_as_shape(shape)) for shape in padded]
    element_spec = structure.convert_legacy_structure(
        types, nest.pack_sequence_as(shapes, output_shapes), structure.legacy_classes(spec)
    )
    arguments: dict[str, Any] = {
        "input_dataset": source._variant_tensor,
        "batch_size": size,
        "padded_shapes": padded,
        "padding_values": padding,
        "output_shapes": structure.get_flat_tensor_shapes(element_spec),
    }
    if known_drop is not None and not known_drop:
        variant = tensor_op("PaddedBatchDataset", **arguments)
    else:
        variant = tensor_op("PaddedBatchDatasetV2", **arguments, drop_remainder=drop)
    return DatasetNode(variant, element_spec, (source,))


def _is_sparse(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SparseTensor)


def _default_padding(dtype: Any) -> Any:
    if not isinstance(dtype, DType) or dtype.base_dtype == dtypes.variant:
        raise TypeError(
            "Unable to create padding for field of type 'variant' because t.base_type == dtypes.variant == "
            f"{getattr(dtype, 'base_dtype', dtype)}."
        )
    return "" if dtype.base_dtype == dtypes.string else np.zeros_like(dtype.as_numpy_dtype())


def partial_shape_to_tensor(shape: Any, what: str = "The given shape") -> Tensor:
    """A shape as a vector of int64, -1 for what is not known; a tensor is taken as it is.

    Raises ValueError for a tensor that is no vector, TypeError for one of another type.
    """
    try:
        sizes = as_shape(shape).as_list()
    except (TypeError, ValueError):
        tensor = convert_to_tensor(shape, preferred_dtype=dtypes.int64)
        but = "but its" if what == "Padded shape" else "but the"
        if tensor.shape.ndims is not None and tensor.shape.ndims != 1:
            raise ValueError(
                f"{what} {shape} must be a 1-D tensor of tf.int64 values, {but} shape was {tensor.shape}."
            ) from None
        if tensor.dtype != dtypes.int64:
            raise TypeError(
                f"{what} {shape} must be a 1-D tensor of tf.int64 values, {but} element type was {tensor.dtype.name}."
            ) from None
        return tensor
    return convert_to_tensor([-1 if size is None else size for size in sizes], dtypes.int64)


def _padded_shape(padded: Any, known: Any) -> Tensor:
    tensor = partial_shape_to_tensor(padded, "Padded shape")
    shape = constant_value_as_shape(tensor)
    if not _can_be_padded_to(shape, known):
        raise ValueError(
            f"The padded shape {shape} is not compatible with the corresponding input component shape {known}."
        )
    return tensor


def _can_be_padded_to(padded: TensorShape, known: TensorShape) -> bool:
    if padded.ndims is None or known.ndims is None:
        return True
    sizes = zip(padded.as_list(), known.as_list(), strict=False)
    return padded.ndims == known.ndims and all(a is None or b is None or a >= b for a, b in sizes)


def _padding_value(value: Any, dtype: Any) -> Tensor:
    tensor = convert_to_tensor(value, name="padding_value")
    if not tensor.shape.is_compatible_with([]):
        raise ValueError(f"Padding value should be a scalar, but is not: {tensor}")
    if tensor.dtype != dtype:
        raise TypeError(f"Padding value tensor ({tensor}) does not match output type: {dtype!r}")
    return tensor


def unbatched(source: DatasetNode) -> DatasetNode:
    """The rows of the elements. Raises ValueError where a part is a scalar or parts have different numbers of rows."""
    spec = source.element_spec

    def normalized(first: Any, *rest: Any) -> Any:
        return tuple(structure.to_batched_tensor_list(spec, (first, *rest) if rest else first))

    rows = restructured(mapped(source, normalized), spec)
    shapes = rows._flat_shapes
    if any(shape.ndims == 0 for shape in shapes):
        raise ValueError("Cannot unbatch an input with scalar components.")
    known = Dimension(None)
    for shape in shapes:
        try:
            known = known.merge_with(shape[0] if shape.ndims is not None else None)
        except ValueError:
            raise ValueError("Cannot unbatch an input whose components have different batch sizes.") from None
    element_spec = nest.map_structure(lambda part: part._unbatch(), spec)
    return node_of("UnbatchDataset", element_spec, (rows,), input_dataset=rows._variant_tensor)


def dense_to_sparse_batched(source: DatasetNode, batch_size: Any, row_shape: Any) -> DatasetNode:
    """`batch_size` tensors of any size up to `row_shape`, as one SparseTensor."""
    dtype = structure.legacy_types(source.element_spec)
    if not isinstance(dtype, DType):
        raise TypeError(
            "DenseToSparseDataset requires an input whose elements have a single component, whereas the input has "
            f"{dtype!r}."
        )
    return node_of(
        "DenseToSparseBatchDataset",
        SparseTensorSpec(TensorShape([None]).concatenate(_static(row_shape)), dtype),
        (source,),
        input_dataset=source._variant_tensor,
        batch_size=int64(batch_size, "batch_size"),
        row_shape=partial_shape_to_tensor(row_shape),
    )


def _static(shape: Any) -> TensorShape:
    try:
        return as_shape(shape)
    except TypeError:
        return constant_value_as_shape(convert_to_tensor(shape, preferred_dtype=dtypes.int64))
