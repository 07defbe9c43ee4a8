"""Arrays, second part: slicing and `tensor[...]`, gathering and scattering, splitting, reversing, selecting.

The family's first part is ops/array.py. `getitem` is what `tensor[...]` builds: one StridedSlice whose bit masks mark
the omitted entries, as in TensorFlow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.operators import implement_operator
from tenfold.graph.tensor import Tensor
from tenfold.ops import math
from tenfold.ops.array import concat, constant, ones, ones_like, rank, reshape, shape, squeeze, stack, zeros_like
from tenfold.ops.math import cast
from tenfold.ops.spelling import warn_once
from tenfold.ops.variable_slice import assignable
from tenfold_core import dtypes
from tenfold_core.tensor_shape import Dimension, TensorShape

if TYPE_CHECKING:
    from tenfold.graph.argument_types import DTypeLike, TensorLike

_INDEX_TYPES = (dtypes.int32, dtypes.int64)


def slice(input_: Any, begin: TensorLike, size: TensorLike, name: str | None = None) -> Tensor:
    """`size[i]` elements from `begin[i]` on along dimension i; size -1 means all that remain."""
    return tensor_op("Slice", name, input=input_, begin=begin, size=size)


def strided_slice(
    input_: Any,
    begin: TensorLike,
    end: TensorLike | None = None,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """The StridedSlice op, NumPy's `input_[begin:end:strides]` with bit masks. `strides` default to ones."""
    if end is None:
        begin = convert_to_tensor(begin)
        end = begin + 1
    if strides is None:
        strides = np.ones(len(begin), np.int32) if isinstance(begin, (list, tuple)) else _ones_like_vector(begin)
    return tensor_op(
        "StridedSlice",
        name,
        input=input_,
        begin=begin,
        end=end,
        strides=strides,
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
    )


def _ones_like_vector(vector: Any) -> Tensor:
    return ones_like(vector)


def _check_index(index: Any) -> None:
    if isinstance(index, (bool, np.bool_, float, str)) or index is None:
        valid = False
    elif isinstance(index, Tensor):
        valid = index.dtype.base_dtype in _INDEX_TYPES and index.shape.ndims in (None, 0)
    else:
        valid = hasattr(index, "__index__") or isinstance(index, Dimension) or hasattr(type(index), "_as_graph_element")
    if not valid:
        raise TypeError(
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors "
            f"are valid indices, got {index!r}"
        )


def getitem(tensor: TensorLike, slice_spec: Any, var: Any = None) -> Tensor:
    """`tensor[slice_spec]`: integers, slices, `...`, `tf.newaxis` and scalar tensors; a boolean mask tensor too."""
    if isinstance(slice_spec, Tensor) and slice_spec.dtype.is_bool:
        return boolean_mask(tensor, slice_spec)
    if isinstance(slice_spec, np.ndarray) and slice_spec.dtype == np.bool_:
        return boolean_mask(tensor, slice_spec)
    spec = list(slice_spec) if isinstance(slice_spec, (list, tuple)) else [slice_spec]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks = {"begin": 0, "end": 0, "ellipsis": 0, "new_axis": 0, "shrink_axis": 0}
    for position, item in enumerate(spec):
        bit = 1 << position
        if item is None:
            masks["new_axis"] |= bit
            first, last, step = 0, 0, 1
        elif item is Ellipsis:
            if masks["ellipsis"]:
                raise ValueError("Multiple ellipses in slice spec not allowed")
            masks["ellipsis"] |= bit
            first, last, step = 0, 0, 1
        elif isinstance(item, _SLICE):
            for bound in (item.start, item.stop, item.step):
                if bound is not None:
                    _check_index(bound)
            if item.start is None:
                masks["begin"] |= bit
            if item.stop is None:
                masks["end"] |= bit
            first = 0 if item.start is None else item.start
            last = 0 if item.stop is None else item.stop
            step = 1 if item.step is None else item.step
        else:
            _check_index(item)
            masks["shrink_axis"] |= bit
            first, last, step = item, item + 1, 1
        begin.append(first)
        end.append(last)
        strides.append(step)
    with name_scope(None, "strided_slice", [tensor, *begin, *end, *strides]) as scope:
        if begin:
            vectors = [stack(begin), stack(end), stack(strides)]
            if len({v.dtype for v in vectors}) > 1:
                vectors = [cast(v, dtypes.int64) for v in vectors]
        else:
            vectors = [constant([], dtypes.int32) for _ in range(3)]
        part = strided_slice(
            tensor,
            vectors[0],
            vectors[1],
            vectors[2],
            begin_mask=masks["begin"],
            end_mask=masks["end"],
            shrink_axis_mask=masks["shrink_axis"],
            new_axis_mask=masks["new_axis"],
            ellipsis_mask=masks["ellipsis"],
            name=scope,
        )
    # a variable is not a tensor, but stands for one
    return assignable(part) if hasattr(type(tensor), "_as_graph_element") and hasattr(tensor, "assign") else part


# The function of this name hides Python's class in this module.
_SLICE = type(np.s_[:])
implement_operator("__getitem__", getitem)


# --- gather and scatter ---


def gather(
    params: Any,
    indices: TensorLike,
    validate_indices: Any = None,
    name: str | None = None,
    axis: TensorLike | None = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of `params` at `indices` along `axis`. Of a resource variable, reads only those rows.

    With `batch_dims` the first so many dimensions of both are walked together, and `axis` is the next one if it is
    None; TensorFlow ignores them for an axis of 0, and so does this.
    """
    if axis is None and batch_dims:
        axis = batch_dims
    elif axis is None or (isinstance(axis, int) and axis == 0):
        batch_dims = 0
        sparse_read = getattr(params, "sparse_read", None)
        if sparse_read is not None:
            result: Tensor = sparse_read(indices, name=name)
            return result
    return tensor_op(
        "GatherV2", name, params=params, indices=indices, axis=0 if axis is None else axis, batch_dims=batch_dims
    )


def gather_nd(params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: Any = 0) -> Tensor:
    """The slices of `params` whose leading indices are the rows of `indices`, batch by batch.

    # params (batch, G, rest), indices (batch, I, depth of G) → (batch, I, rest)
    Raises ValueError for a batch_dims that is negative, or not less than a rank that is known.
    """
    if isinstance(batch_dims, Tensor):
        known = known_value(batch_dims)
        if known is None:
            raise ValueError(f"batch_dims must be known when the graph is built, got {batch_dims!r}")
        batch_dims = int(known)
    if not batch_dims:
        return tensor_op("GatherNd", name, params=params, indices=indices)
    with name_scope(name, "BatchGatherND", [params, indices]) as scope:
        params, indices = convert_to_tensor(params, name="params"), convert_to_tensor(indices, name="indices")
        for what, tensor in (("params", params), ("indices", indices)):
            if batch_dims < 0 or (tensor.shape.ndims is not None and batch_dims >= tensor.shape.ndims):
                raise ValueError(f"batch_dims = {batch_dims} must be in [0, rank) of {what} of shape {tensor.shape}")
        sizes, index_sizes = shape(params), shape(indices)
        count = math.reduce_prod(sizes[:batch_dims])
        flat = reshape(params, concat([[count], sizes[batch_dims:]], 0))
        places = reshape(indices, concat([[count], index_sizes[batch_dims:]], 0))
        # The number of its batch before each index.
        column = concat([[-1], ones([rank(places) - 1], dtypes.int32)], 0)
        batches = reshape(math.cast(math.range(count), indices.dtype), column)
        places = concat([zeros_like(places[..., :1]) + batches, places], -1)
        found = tensor_op("GatherNd", None, params=flat, indices=places)
        result = reshape(found, concat([sizes[:batch_dims], shape(found)[1:]], 0), name=scope)
        if params.shape.ndims is not None and indices.shape.ndims is not None:
            depth = indices.shape.as_list()[-1]
            if depth is not None:
                lead = params.shape[:batch_dims].merge_with(indices.shape[:batch_dims])
                result.set_shape(
                    lead.concatenate(indices.shape[batch_dims:-1]).concatenate(params.shape[batch_dims + depth :])
                )
        return result


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Zeros of `shape` with `updates` added at the rows of `indices`."""
    return tensor_op("ScatterNd", name, indices=indices, updates=updates, shape=shape)


def dynamic_partition(data: TensorLike, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """Distributes the slices of `data` over `num_partitions` tensors by the numbers in `partitions`."""
    result: list[Tensor] = apply_op(
        "DynamicPartition", name, data=data, partitions=partitions, num_partitions=num_partitions
    )
    return result


def dynamic_stitch(indices: TensorLike, data: TensorLike, name: str | None = None) -> Tensor:
    """Interleaves the slices of `data`: `merged[indices[m][i]] = data[m][i]`."""
    return tensor_op("DynamicStitch", name, indices=indices, data=data)


def boolean_mask(tensor: TensorLike, mask: TensorLike, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The slices of `tensor` where `mask` is true. Raises ValueError for a scalar mask or one of unknown rank."""
    with name_scope(name, values=[tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        mask_rank, first = mask.shape.ndims, 0 if axis is None else axis
        if mask_rank == 0:
            raise ValueError("mask cannot be scalar.")
        if mask_rank is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. shape=[None] is "
                "ok, but shape=None is not."
            )
        tensor.shape[first : first + mask_rank].assert_is_compatible_with(mask.shape)
        sizes = shape(tensor)
        leading = apply_op("Prod", None, input=sizes[first : first + mask_rank], reduction_indices=[0])
        flat = reshape(tensor, concat([sizes[:first], [leading], sizes[first + mask_rank :]], 0))
        static = tensor.shape
        if static.ndims is not None:
            flat.set_shape(
                static[:first]
                .concatenate([static[first : first + mask_rank].num_elements()])
                .concatenate(static[first + mask_rank :])
            )
        indices = squeeze(where(reshape(mask, [-1])), axis=[1])
        return gather(flat, indices, axis=first)


# --- splitting and joining back ---


def split(
    value: TensorLike, num_or_size_splits: Any, axis: TensorLike = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Splits `value` along `axis` into equal parts (an int) or parts of the given sizes (a list or vector).

    The argument order of releases before 1.0, `split(axis, number, value)`, is accepted too: a number cannot be split.
    """
    result: list[Tensor]
    if _is_int(value) and not _is_int(axis) and (isinstance(axis, (list, tuple)) or hasattr(axis, "shape")):
        if not _is_int(num_or_size_splits):
            raise ValueError(f"split(axis, number, value) takes an int as number, got {num_or_size_splits!r}")
        warn_once("tf.split(axis, number, value)", "tf.split(value, number, axis)")
        value, axis = axis, value
    sizes = (
        convert_to_tensor(num_or_size_splits, preferred_dtype=dtypes.int32) if not _is_int(num_or_size_splits) else None
    )
    if sizes is None:
        # A node that nothing reads: TensorFlow makes one here, and seeds that are not given count the nodes.
        constant(int(num_or_size_splits), dtypes.int32)
        result = apply_op("Split", name, split_dim=axis, value=value, num_split=int(num_or_size_splits))
        return result
    if sizes.shape.ndims == 0:
        raise ValueError("Rank-0 tensors are not supported as the num_or_size_splits argument to split.")
    if num is None:
        num = sizes.shape.as_list()[0] if sizes.shape.ndims == 1 else None
        if num is None:
            raise ValueError(f"Cannot infer num from shape {sizes.shape} of num_or_size_splits")
    result = apply_op("SplitV", name, value=value, size_splits=sizes, split_dim=axis, num_split=num)
    return result


def _is_int(value: Any) -> bool:
    return isinstance(value, Dimension) or (
        not isinstance(value, (bool, Tensor, np.ndarray)) and hasattr(value, "__index__")
    )


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices of `value` along `axis`, that dimension removed. Raises ValueError if their number is unknown."""
    if num is None:
        value = convert_to_tensor(value)
        known: TensorShape = value.shape
        if known.ndims is not None:
            if not -known.ndims <= axis < known.ndims:
                raise ValueError(f"axis = {axis} not in [{-known.ndims}, {known.ndims})")
            num = known.as_list()[axis]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {known}")
    result: list[Tensor] = apply_op("Unpack", name, value=value, num=num, axis=axis)
    return result


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """With x and y: their elements by `condition`. Without: the indices of the true elements, one a row."""
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            return tensor_op(
                "Where", scope, input=convert_to_tensor(condition, preferred_dtype=dtypes.bool_, name="condition")
            )
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return tensor_op("Select", name, condition=condition, t=x, e=y)


def where_v2(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Like `where`, but condition, x and y broadcast against each other."""
    if x is None and y is None:
        return where(condition, name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return tensor_op("SelectV2", name, condition=condition, t=x, e=y)


def one_hot(
    indices: TensorLike,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Vectors of length `depth` with `on_value` at the index and `off_value` elsewhere; float32 by default."""
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        on = None if on_value is None else convert_to_tensor(on_value, preferred_dtype=wanted, name="on_value")
        off = None if off_value is None else convert_to_tensor(off_value, preferred_dtype=wanted, name="off_value")
        found = next((t.dtype.base_dtype for t in (on, off) if t is not None), None)
        if wanted is not None and found is not None and wanted != found:
            raise TypeError(f"dtype {found.name} of on_value or off_value does not match dtype parameter {wanted.name}")
        if on is not None and off is not None and on.dtype.base_dtype != off.dtype.base_dtype:
            raise TypeError(f"dtype {on.dtype.name} of on_value does not match dtype {off.dtype.name} of off_value")
        kind = wanted or found or dtypes.float32
        on = convert_to_tensor(1, kind, name="on_value") if on is None else on
        off = convert_to_tensor(0, kind, name="off_value") if off is None else off
        return tensor_op(
            "OneHot",
            scope,
            indices=indices,
            depth=depth,
            on_value=on,
            off_value=off,
            axis=-1 if axis is None else axis,
        )


def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Reverses the dimensions in `axis`."""
    return tensor_op("ReverseV2", name, tensor=tensor, axis=axis)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverses the first `seq_lengths[i]` elements along `seq_axis` of each entry i along `batch_axis`."""
    along = seq_axis if seq_axis is not None else seq_dim
    if along is None:
        raise ValueError("Either seq_dim or seq_axis must be specified")
    return tensor_op(
        "ReverseSequence",
        name,
        input=input,
        seq_lengths=seq_lengths,
        seq_dim=along,
        batch_dim=batch_axis if batch_axis is not None else batch_dim or 0,
    )


def unique(x: TensorLike, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """`(y, idx)`: the distinct elements in the order of their first appearance, and where each element is in y."""
    return apply_op("Unique", name, x=x, out_idx=out_idx)


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of a permutation of 0, 1, …, n-1."""
    return tensor_op("InvertPermutation", name, x=x)


def setdiff1d(x: TensorLike, y: TensorLike, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """`(out, idx)`: the elements of x that are not in y, and where they were."""
    return apply_op("ListDiff", name, x=x, y=y, out_idx=index_dtype)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None) -> Tensor:
    """True at the first `lengths[i]` of `maxlen` positions."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            maxlen = math.maximum(math.reduce_max(lengths), constant(0, lengths.dtype))
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.shape.ndims not in (None, 0):
            raise ValueError(f"maxlen must be scalar for sequence_mask, got shape {maxlen.shape}")
        first, step = constant(0, maxlen.dtype), constant(1, maxlen.dtype)
        columns = apply_op("Range", None, start=first, limit=maxlen, delta=step)
        rows = apply_op("Cast", None, x=apply_op("ExpandDims", None, input=lengths, dim=-1), DstT=maxlen.dtype)
        mask = math.less(columns, rows)
        return mask if dtypes.as_dtype(dtype).is_bool else math.cast(mask, dtype)
