"""Functions that make, change and join SparseTensors: `tf.sparse_reorder`, `tf.sparse_to_dense`, `tf.sparse_add`, ….

`tenfold/sparse.py` is the namespace of their short names; reductions and products with dense tensors are in
sparse_math.py. Follows TF 1.15's ops/sparse_ops.py, old argument names included.
"""

from __future__ import annotations

import math
from typing import Any

from tenfold.graph.constant_value import constant_value_as_shape, known_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.sparse_tensor import SparseTensor, as_sparse, as_sparse_list, is_sparse
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, control_flow, slicing
from tenfold.ops import math as m
from tenfold.ops.reductions import reduce_all, reduce_max
from tenfold_core import dtypes
from tenfold_core.tensor_shape import as_shape


def renamed(new: Any, old: Any, what: str, instead_of: str) -> Any:
    """The value of an argument with two names. Raises ValueError if both were given."""
    if old is not None and new is not None:
        raise ValueError(f"Cannot specify both '{instead_of}' and '{what}'")
    return new if old is None else old


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor that must be fed; a value for it is a SparseTensorValue or a tuple of its three parts."""
    rank = None
    sizes: Any = None
    if shape is not None:
        rank = as_shape(shape).ndims if not isinstance(shape, Tensor) else shape.get_shape().as_list()[0]
        if isinstance(shape, Tensor) or as_shape(shape).is_fully_defined():
            given = shape if isinstance(shape, Tensor) else as_shape(shape).as_list()
            sizes = convert_to_tensor(given, dtype=dtypes.int64, name=f"{name}/shape" if name else None)
    if sizes is None:
        sizes = array.placeholder(dtypes.int64, shape=[rank], name=f"{name}/shape" if name else None)
    values = array.placeholder(dtype, shape=[None], name=f"{name}/values" if name else None)
    indices = array.placeholder(dtypes.int64, shape=[None, rank], name=f"{name}/indices" if name else None)
    return SparseTensor(indices, values, sizes)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of `tensor` that are not zero."""
    with name_scope(name, "dense_to_sparse"):
        dense = convert_to_tensor(tensor)
        indices = slicing.where(m.not_equal(dense, array.constant(_zero(dense.dtype), dense.dtype)))
        return SparseTensor(indices, slicing.gather_nd(dense, indices), array.shape(dense, out_type=dtypes.int64))


def _zero(dtype: Any) -> Any:
    return "" if dtype.base_dtype == dtypes.string else 0


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of `default_value` with `sparse_values` at `sparse_indices`."""
    return tensor_op(
        "SparseToDense",
        name,
        sparse_indices=sparse_indices,
        output_shape=output_shape,
        sparse_values=sparse_values,
        default_value=default_value,
        validate_indices=validate_indices,
    )


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense tensor; `default_value` (default: zero or the empty string) where there is no element."""
    sparse = as_sparse(sp_input)
    default = array.zeros([], dtype=sparse.dtype) if default_value is None else default_value
    return sparse_to_dense(sparse.indices, sparse.dense_shape, sparse.values, default, validate_indices, name)


def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same tensor with its elements in row-major order."""
    sparse = as_sparse(sp_input)
    indices, values = apply_op(
        "SparseReorder",
        name,
        input_indices=sparse.indices,
        input_values=sparse.values,
        input_shape=sparse.dense_shape,
    )
    known = sparse.get_shape()
    return SparseTensor(
        indices, values, known.as_list() if known.is_fully_defined() else array.identity(sparse.dense_shape)
    )


def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in another shape, one dimension of which may be -1. ValueError if the sizes differ."""
    sparse = as_sparse(sp_input)
    wanted = m.cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape", [sparse.indices]) as scope:
        indices, sizes = apply_op(
            "SparseReshape", scope, input_indices=sparse.indices, input_shape=sparse.dense_shape, new_shape=wanted
        )
        static = constant_value_as_shape(wanted)
        if static.ndims is not None and sparse.shape.is_fully_defined():
            given = known_value(wanted)
            if given is not None and sum(d == -1 for d in given) > 1:
                raise ValueError(f"At most one dimension can be inferred (-1). Found: {given}")
            dims: Any = static.as_list()
            have: Any = sparse.shape.as_list()
            count = math.prod(have)
            missing = [i for i, dim in enumerate(dims) if dim is None]
            if len(missing) == 1:
                dims[missing[0]] = count // max(1, math.prod(d for d in dims if d is not None))
            if len(missing) <= 1:
                if math.prod(dims) != count:
                    raise ValueError(
                        f"Cannot reshape a tensor with {count} elements to shape {static.as_list()} "
                        f"({math.prod(dims)} elements)."
                    )
                sizes = array.constant(dims, dtype=dtypes.int64)
        return SparseTensor(indices, array.identity(sparse.values), sizes)


def serialize_sparse(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """A vector of three strings: indices, values and shape, each a serialized TensorProto."""
    return _serialized("SerializeSparse", sp_input, name, out_type)


def serialize_many_sparse(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """A row of three strings for each member of a batch, its first dimension."""
    return _serialized("SerializeManySparse", sp_input, name, out_type)


def _serialized(op_type: str, sp_input: Any, name: str | None, out_type: Any) -> Tensor:
    sparse = as_sparse(sp_input)
    return tensor_op(
        op_type,
        name,
        sparse_indices=sparse.indices,
        sparse_values=sparse.values,
        sparse_shape=sparse.dense_shape,
        out_type=out_type,
    )


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The batch that `serialize_many_sparse`, or several `serialize_sparse`, serialized.

    Its shape holds the largest member. `rank`, if known, is the rank of a member.
    """
    indices, values, shape = apply_op(
        "DeserializeManySparse", name, serialized_sparse=serialized_sparse, dtype=dtypes.as_dtype(dtype)
    )
    indices.set_shape([None, None if rank is None else rank + 1])
    shape.set_shape([None if rank is None else rank + 1])
    return SparseTensor(indices, values, shape)


def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """The dimensions in the order of `perm`, by default reversed."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseTranspose", [sparse.indices]):
        if perm is None:
            rank = array.size(sparse.dense_shape)
            perm = rank - 1 - m.range(0, rank, 1)
        indices = array.transpose(slicing.gather(array.transpose(sparse.indices), perm))
        order, known = known_value(convert_to_tensor(perm)), sparse.get_shape()
        if order is not None and known.is_fully_defined():
            sizes: Any = [known.as_list()[p] for p in order]
        else:
            sizes = slicing.gather(sparse.dense_shape, perm)
        return sparse_reorder(SparseTensor(indices, sparse.values, sizes))


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """The same tensor with a dimension of size 1 before `axis` (default: at the end)."""
    sparse = as_sparse(sp_input)
    rank = sparse.dense_shape.get_shape().as_list()[0]
    with name_scope(name, "expand_dims", [sparse.indices]):
        place = convert_to_tensor(-1 if axis is None else axis, name="axis", dtype=dtypes.int32)
        place = slicing.where(m.greater_equal(place, 0), place, place + rank + 1)
        column = array.zeros(array.stack([array.shape(sparse.indices)[0], 1]), dtype=dtypes.int64)
        before = slicing.slice(sparse.indices, [0, 0], array.stack([-1, place]))
        after = slicing.slice(sparse.indices, array.stack([0, place]), [-1, -1])
        ends = array.reshape(place, [1])
        sizes = [slicing.slice(sparse.dense_shape, [0], ends), slicing.slice(sparse.dense_shape, ends, [-1])]
        one = array.constant([1], dtype=dtypes.int64)
        return SparseTensor(
            array.concat([before, column, after], axis=1),
            sparse.values,
            array.concat([sizes[0], one, sizes[1]], axis=0),
        )


def sparse_eye(num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None) -> Any:
    """The identity matrix, not necessarily square."""
    with name_scope(name, "eye"):
        rows = m.cast(num_rows, dtypes.int64)
        columns = rows if num_columns is None else m.cast(num_columns, dtypes.int64)
        count = m.minimum(rows, columns)
        diagonal = m.range(count, dtype=dtypes.int64)
        ones = array.ones(array.reshape(count, [1]), dtype=dtype)
        return SparseTensor(array.stack([diagonal, diagonal], axis=1), ones, array.stack([rows, columns]))


def sparse_concat(
    axis: Any,
    sp_inputs: Any,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """The tensors joined along `axis`; `expand_nonconcat_dims` lets their other dimensions differ."""
    axis = renamed(axis, concat_dim, "axis", "concat_dim")
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    inputs = as_sparse_list(sp_inputs)
    if len(inputs) == 1:
        return inputs[0]
    shapes: list[Any] = [sparse.dense_shape for sparse in inputs]
    if expand:
        largest = reduce_max(array.concat([array.reshape(shape, [1, -1]) for shape in shapes], 0), 0)
        shapes = [
            array.concat(
                [largest[:-1], shape[-1:]]
                if axis == -1
                else [largest[:axis], shape[axis : axis + 1], largest[axis + 1 :]],
                0,
            )
            for shape in shapes
        ]
    indices, values, sizes = apply_op(
        "SparseConcat",
        name,
        indices=[sparse.indices for sparse in inputs],
        values=[sparse.values for sparse in inputs],
        shapes=shapes,
        concat_dim=axis,
    )
    known = [known_value(shape) for shape in shapes]
    if all(shape is not None for shape in known):
        joined = [int(dim) for dim in known[0]]
        joined[axis] = sum(int(shape[axis]) for shape in known)
        sizes = array.constant(joined, dtype=dtypes.int64)
    return SparseTensor(indices, values, sizes)


def sparse_split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """`num_split` parts along `axis`. Takes keyword arguments only, since their order has changed once."""
    if keyword_required is not None:
        raise ValueError("Keyword arguments are required for this function.")
    axis = renamed(axis, split_dim, "axis", "split_dim")
    for what, value in (("sp_input", sp_input), ("num_split", num_split), ("axis", axis)):
        if value is None:
            raise ValueError(f"{what} is required")
    sparse = as_sparse(sp_input)
    parts = apply_op(
        "SparseSplit",
        name,
        split_dim=m.cast(axis, dtypes.int64),
        indices=sparse.indices,
        values=sparse.values,
        shape=sparse.dense_shape,
        num_split=num_split,
    )
    return [SparseTensor(*part) for part in zip(*parts, strict=True)]


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The elements within the box of `size` at `start`."""
    sparse = as_sparse(sp_input)
    start, size = convert_to_tensor(start, dtypes.int64), convert_to_tensor(size, dtypes.int64)
    return SparseTensor(
        *apply_op(
            "SparseSlice",
            name,
            indices=sparse.indices,
            values=sparse.values,
            shape=sparse.dense_shape,
            start=start,
            size=size,
        )
    )


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The elements for which the boolean vector `to_retain` is true."""
    sparse, keep = as_sparse(sp_input), convert_to_tensor(to_retain)
    count = keep.get_shape().with_rank(1)
    if sparse.values.get_shape().ndims is not None:
        sparse.values.get_shape()[0].merge_with(count[0])
    places = array.reshape(slicing.where(keep), [-1])
    return SparseTensor(
        slicing.gather(sparse.indices, places),
        slicing.gather(sparse.values, places),
        array.identity(sparse.dense_shape),
    )


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a larger shape, or without `new_shape` in the smallest possible.

    Raises ValueError, or InvalidArgumentError in the step, for a shape that is too small.
    """
    sparse = as_sparse(sp_input)
    indices, values = array.identity(sparse.indices), array.identity(sparse.values)
    old = array.identity(sparse.dense_shape)
    if new_shape is None:
        needed = m.add(reduce_max(indices, axis=0), array.ones_like(old))
        return SparseTensor(indices, values, m.maximum(array.constant(0, dtype=dtypes.int64), needed))
    wanted = convert_to_tensor(new_shape)
    wanted.get_shape().assert_has_rank(1)
    wanted = m.cast(wanted, dtypes.int64)
    wanted.get_shape()[0].merge_with(old.get_shape().with_rank(1)[0])
    known, have = known_value(wanted), sparse.get_shape()
    if known is not None and have.is_fully_defined():
        if any(is_ < was for is_, was in zip(known, have.as_list(), strict=True)):
            raise ValueError(
                "Requested new_shape should have dimension sizes >= sp_input.shape.  Found new_shape "
                f"({known}), sp_input.shape ({have.as_list()})."
            )
    else:
        same_rank = m.equal(array.size(old), array.size(wanted))
        with control_dependencies([control_flow.Assert(same_rank, [old, wanted])]):
            fits = control_flow.Assert(reduce_all(m.less_equal(old, wanted)), [old, wanted])
        with control_dependencies([fits]):
            wanted = array.identity(wanted)
    return SparseTensor(indices, values, wanted)


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """(the matrix with `default_value` in column 0 of each empty row, which rows were empty)."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [sparse.indices]):
        filled = apply_op(
            "SparseFillEmptyRows",
            indices=sparse.indices,
            values=sparse.values,
            dense_shape=sparse.dense_shape,
            default_value=convert_to_tensor(default_value, dtype=sparse.values.dtype),
        )
        return SparseTensor(filled[0], filled[1], sparse.dense_shape), filled[2]


def sparse_merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """`result[row, ids[i]] = values[i]`: values at the columns that `sp_ids` names; lists of ids: more dimensions."""
    ids, sizes = ([sp_ids], [vocab_size]) if is_sparse(sp_ids) else (list(sp_ids), list(vocab_size))
    for size in sizes:
        if not isinstance(size, (Tensor, int)):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(size)}")
    if len(ids) != len(sizes):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    columns, values = as_sparse_list(ids), as_sparse(sp_values)
    with name_scope(name, "SparseMerge", [columns[0].indices, values.values]):
        last = [array.expand_dims(m.cast(column.values, dtypes.int64), axis=1) for column in columns]
        indices = array.concat([columns[0].indices[:, :-1], *last], 1)
        tail = array.stack([m.cast(size, dtypes.int64) for size in sizes])
        shape = array.concat([columns[0].dense_shape[:-1], tail], 0)
        merged = SparseTensor(indices, values.values, shape)
        if already_sorted:
            return merged
        ordered = sparse_reorder(merged)
        return SparseTensor(ordered.indices, ordered.values, shape)


def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """A boolean tensor: true at the ids that each row of `sp_input` holds."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sparse.indices]):
        held = array.fill(array.expand_dims(array.shape(sparse.indices)[0], 0), True)
        merged = sparse_merge(sparse, SparseTensor(sparse.indices, held, sparse.dense_shape), vocab_size)
        return sparse_tensor_to_dense(merged, default_value=False, validate_indices=False)


def sparse_mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """The IndexedSlices `a` without the rows whose index is in `mask_indices`."""
    with name_scope(name, "sparse_mask", [a.values, a.indices, mask_indices]):
        kept, places = slicing.setdiff1d(a.indices, mask_indices)
        return IndexedSlices(slicing.gather(a.values, places), kept, a.dense_shape)
