"""Shape functions: from the static shapes of an op's inputs to those of its outputs.

Each takes a `ShapeContext` (tenfold_core/shape_inference.py) and gives one TensorShape an output; a row of a table names its
function. What is not known stays unknown; ValueError means that no run could ever succeed. Follows common_shape_fns.cc
and the ops' own shape functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.tensor_shape import TensorShape, as_shape, from_dims, unknown_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

_UNKNOWN = TensorShape(None)
_SCALAR = TensorShape([])


def _merge(a: int | None, b: int | None, what: str) -> int | None:
    """The size that both allow; ValueError naming `what` where they differ."""
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}{what}")
    return b if a is None else a


def _dims(shape: TensorShape) -> list[int | None] | None:
    return None if shape.ndims is None else shape.as_list()


def _scalar_constant(c: ShapeContext, index: int) -> int | None:
    value = c.constant(index)
    return None if value is None else int(value.reshape(()))


def _times(size: int | None, count: int) -> int | None:
    """No copies are nothing, of however much."""
    return 0 if count == 0 else None if size is None else size * count


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in [{-rank}, {rank}) for a shape of rank {rank}")
    return axis + rank if axis < 0 else axis


# ---- the same, one value, nothing ------------------------------------------------------------------------------------


def unchanged(c: ShapeContext) -> Shapes:
    return [c.input(0)]


first_input = unchanged


def scalar(c: ShapeContext) -> Shapes:
    return [_SCALAR]


def always(*shapes: Sequence[int | None] | None) -> Callable[[ShapeContext], Shapes]:
    """The function of an op whose outputs have these shapes (None: any), whatever goes in."""
    found = [_UNKNOWN if shape is None else from_dims(shape) for shape in shapes]
    return lambda c: list(found)


def no_outputs(c: ShapeContext) -> Shapes:
    return []


def identity_n(c: ShapeContext) -> Shapes:
    return list(c.inputs)


def const(c: ShapeContext) -> Shapes:
    return [TensorShape(c.attrs["value"].tensor_shape)]


def placeholder(c: ShapeContext) -> Shapes:
    # A scalar shape in the attribute of an old graph means "not said"; our client writes unknown rank instead.
    return [as_shape(c.attrs["shape"])]


def placeholder_with_default(c: ShapeContext) -> Shapes:
    return [as_shape(c.attrs["shape"])]


def attr_shape(c: ShapeContext) -> Shapes:
    return [as_shape(c.attrs["shape"])]


# ---- element by element ----------------------------------------------------------------------------------------------


def broadcast_shapes(left: TensorShape, right: TensorShape) -> TensorShape:
    """NumPy's broadcasting over partly known shapes. Raises ValueError where the sizes cannot go together."""
    a, b = _dims(left), _dims(right)
    if a is None or b is None:
        return _UNKNOWN
    width = max(len(a), len(b))
    a, b = [*[1] * (width - len(a)), *a], [*[1] * (width - len(b)), *b]
    result: list[int | None] = []
    for x, y in zip(a, b, strict=True):
        if x is None or y is None:
            known = y if x is None else x
            # An unknown size against one above 1 can only be 1 or the same.
            result.append(known if known is not None and known > 1 else None)
        elif x == y or y == 1:
            result.append(x)
        elif x == 1:
            result.append(y)
        else:
            raise ValueError(f"Dimensions must be equal, but are {x} and {y} for shapes {left} and {right}")
    return from_dims(result)


def broadcast(c: ShapeContext) -> Shapes:
    return [broadcast_shapes(c.input(0), c.input(1))]


def broadcast_args(c: ShapeContext) -> Shapes:
    ranks = [_dims(c.input(0)), _dims(c.input(1))]
    if ranks[0] and ranks[1] and ranks[0][0] is not None and ranks[1][0] is not None:
        return [TensorShape([max(ranks[0][0], ranks[1][0])])]
    return [unknown_shape(1)]


def broadcast_gradient_args(c: ShapeContext) -> Shapes:
    return [unknown_shape(1), unknown_shape(1)]


def broadcast_to(c: ShapeContext) -> Shapes:
    wanted, given = _dims(c.partial(1)), _dims(c.input(0))
    if wanted is None or given is None or len(given) > len(wanted):
        return [c.partial(1)]
    given = [*[1] * (len(wanted) - len(given)), *given]
    # Only a 1 can grow: every other size is also the result's.
    return [from_dims(g if w is None and g != 1 else w for w, g in zip(wanted, given, strict=True))]


def equal(c: ShapeContext) -> Shapes:
    """As `broadcast`; without errors for shapes that do not fit, the answer is then a scalar."""
    if c.attrs.get("incompatible_shape_error", True):
        return broadcast(c)
    a, b = _dims(c.input(0)), _dims(c.input(1))
    if a is None or b is None:
        return [_UNKNOWN]
    width = max(len(a), len(b))
    a, b = [*[1] * (width - len(a)), *a], [*[1] * (width - len(b)), *b]
    for x, y in zip(a, b, strict=True):
        if 1 in (x, y) or (x is None and y is None):
            continue
        if x is None or y is None:
            return [_UNKNOWN]  # it may fit, and it may not
        if x != y:
            return [_SCALAR]
    return [broadcast_shapes(c.input(0), c.input(1))]


def add_n(c: ShapeContext) -> Shapes:
    result = c.input(0)
    for shape in c.inputs[1:]:
        result = result.merge_with(shape)
    return [result]


def select(c: ShapeContext) -> Shapes:
    data = c.input(1).merge_with(c.input(2))
    condition = c.input(0)
    if condition.ndims not in (None, 0, 1):
        data = data.merge_with(condition)
    return [data]


def select_v2(c: ShapeContext) -> Shapes:
    return [broadcast_shapes(c.input(0), broadcast_shapes(c.input(1), c.input(2)))]


# ---- reductions and products -----------------------------------------------------------------------------------------


def reduction(c: ShapeContext) -> Shapes:
    keep = bool(c.attrs.get("keep_dims", False))
    dims, axes = _dims(c.input(0)), c.constant(1)
    if dims is None:
        return [_UNKNOWN]
    if axes is None:
        return [unknown_shape(len(dims)) if keep else _UNKNOWN]
    gone = {_axis(int(axis), len(dims)) for axis in axes.reshape(-1)}
    if keep:
        return [from_dims(1 if i in gone else d for i, d in enumerate(dims))]
    return [from_dims(d for i, d in enumerate(dims) if i not in gone)]


def arg_reduction(c: ShapeContext) -> Shapes:
    dims, axis = _dims(c.input(0)), _scalar_constant(c, 1)
    if dims is None:
        return [_UNKNOWN]
    if len(dims) <= 1:
        return [_SCALAR]
    if axis is None:
        return [unknown_shape(len(dims) - 1)]
    gone = _axis(axis, len(dims))
    return [from_dims(d for i, d in enumerate(dims) if i != gone)]


def matmul(c: ShapeContext) -> Shapes:
    a = c.input(0).with_rank(2).as_list()
    b = c.input(1).with_rank(2).as_list()
    a = a[::-1] if c.attrs.get("transpose_a") else a
    b = b[::-1] if c.attrs.get("transpose_b") else b
    _merge(a[1], b[0], f" for a product of shapes {c.input(0)} and {c.input(1)}")
    return [TensorShape([a[0], b[1]])]


def batch_matmul_v1(c: ShapeContext) -> Shapes:
    """As `batch_matmul` of two batches of the same shape."""
    a, b = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(2)
    if a.ndims is None and b.ndims is None:
        return [_UNKNOWN]
    rank = a.ndims if a.ndims is not None else b.ndims
    a, b = a.merge_with(unknown_shape(rank)), b.merge_with(unknown_shape(rank))
    left, right = a.as_list()[-2:], b.as_list()[-2:]
    left = left[::-1] if c.attrs.get("adj_x") else left
    right = right[::-1] if c.attrs.get("adj_y") else right
    _merge(left[1], right[0], f" for a product of shapes {a} and {b}")
    return [a[:-2].merge_with(b[:-2]).concatenate([left[0], right[1]])]


def batch_matmul(c: ShapeContext) -> Shapes:
    a, b = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(2)
    if a.ndims is None or b.ndims is None:
        return [_UNKNOWN]
    left, right = a.as_list()[-2:], b.as_list()[-2:]
    left = left[::-1] if c.attrs.get("adj_x") else left
    right = right[::-1] if c.attrs.get("adj_y") else right
    _merge(left[1], right[0], f" for a product of shapes {a} and {b}")
    return [broadcast_shapes(a[:-2], b[:-2]).concatenate([left[0], right[1]])]


def range_(c: ShapeContext) -> Shapes:
    start, limit, delta = (c.constant(i) for i in range(3))
    if start is None or limit is None or delta is None:
        return [unknown_shape(1)]
    a, b, d = (value.reshape(()).item() for value in (start, limit, delta))
    if d == 0:
        raise ValueError("Range: delta must not be 0")
    if (b < a and d > 0) or (b > a and d < 0):
        raise ValueError(f"Range: start {a}, limit {b} and delta {d} describe no range")
    size = -(-(b - a) // d) if isinstance(d, int) else -int(-(b - a) // d)
    return [TensorShape([int(size)])]


def lin_space(c: ShapeContext) -> Shapes:
    return [TensorShape([_scalar_constant(c, 2)])]


def segment(c: ShapeContext) -> Shapes:
    return [c.input(0) if c.input(0).ndims is None else TensorShape([None]).concatenate(c.input(0)[1:])]


sparse_segment = segment


def unsorted_segment(c: ShapeContext) -> Shapes:
    ids = c.input(1)
    if ids.ndims is None or c.input(0).ndims is None:
        return [_UNKNOWN]
    return [TensorShape([_scalar_constant(c, 2)]).concatenate(c.input(0)[ids.ndims :])]


# ---- neural networks -------------------------------------------------------------------------------------------------


def _channels(c: ShapeContext, shape: TensorShape) -> int | None:
    dims = _dims(shape)
    if not dims:
        return None
    return dims[1] if c.attrs.get("data_format", b"NHWC") == b"NCHW" else dims[-1]


def bias_add(c: ShapeContext) -> Shapes:
    """As the value, whose channels are as many as the bias has."""
    shape, bias = c.input(0), c.input(1).with_rank(1)
    if shape.ndims is None:
        return [_UNKNOWN]
    first = c.attrs.get("data_format", b"NHWC") == b"NCHW"
    shape = shape.with_rank_at_least(3 if first else 2)
    at = 1 if first else len(shape) - 1
    return [shape[:at].concatenate(shape[at : at + 1].merge_with(bias)).concatenate(shape[at + 1 :])]


def bias_add_grad(c: ShapeContext) -> Shapes:
    return [TensorShape([_channels(c, c.input(0))])]


def softmax_cross_entropy(c: ShapeContext) -> Shapes:
    both = broadcast_shapes(c.input(0), c.input(1))
    if both.ndims is None:
        return [unknown_shape(1), unknown_shape(2)]
    both = both.with_rank(2)
    return [both[:1], both]


def sparse_softmax_cross_entropy(c: ShapeContext) -> Shapes:
    features = c.input(0).with_rank(2).as_list()
    labels = c.input(1).with_rank(1).as_list()
    rows = _merge(features[0], labels[0], f" for logits {c.input(0)} and labels {c.input(1)}")
    return [TensorShape([rows]), TensorShape([rows, features[1]])]


def in_top_k(c: ShapeContext) -> Shapes:
    predictions, targets = c.input(0).with_rank(2), c.input(1).with_rank(1)
    return [predictions[:1].merge_with(targets)]


def top_k(c: ShapeContext) -> Shapes:
    shape = c.input(0).with_rank_at_least(1)
    k = c.attrs.get("k") if "k" in c.attrs else _scalar_constant(c, 1)
    out = _UNKNOWN if shape.ndims is None else shape[:-1].concatenate([k])
    return [out, out]


# ---- arrays ----------------------------------------------------------------------------------------------------------


def reshape(c: ShapeContext) -> Shapes:
    wanted, total = c.constant(1), c.input(0).num_elements()
    if wanted is None:
        dims_known = _dims(c.partial(1))
        if dims_known is None or dims_known.count(None) != 1 or total is None:
            return [c.partial(1)]
        # Whether it is -1 or only not known yet: the one open size can only be what is left.
        wanted_dims = [-1 if d is None else d for d in dims_known]
        return [from_dims(_without_minus_one(wanted_dims, total))]
    dims = [int(d) for d in wanted.reshape(-1)]
    if dims.count(-1) > 1:
        raise ValueError(f"Reshape: only one size may be -1, got {dims}")
    if -1 in dims:
        return [from_dims(_without_minus_one(dims, total))]
    known = 1
    for d in dims:
        known *= d
    if total is not None and total != known:
        raise ValueError(f"Cannot reshape a tensor with {total} elements to shape {dims} ({known} elements)")
    return [from_dims(dims)]


def _without_minus_one(dims: list[int], total: int | None) -> list[int | None]:
    """`dims` with the size that makes up `total` elements for the -1; None where that cannot be told."""
    known = 1
    for d in dims:
        known *= 1 if d == -1 else d
    missing = None
    if total is not None and known:
        if total % known:
            raise ValueError(f"Dimension size must be evenly divisible by {known} but is {total} for Reshape to {dims}")
        missing = total // known
    return [missing if d == -1 else d for d in dims]


def fill(c: ShapeContext) -> Shapes:
    return [c.partial(0)]


random_shape = fill


def tile(c: ShapeContext) -> Shapes:
    dims, times = _dims(c.input(0)), c.constant(1)
    if dims is None:
        return [_UNKNOWN]
    if times is None:
        return [unknown_shape(len(dims))]
    if len(times) != len(dims):
        raise ValueError(f"Tile: {len(times)} multiples for a shape of rank {len(dims)}")
    return [from_dims(_times(d, int(n)) for d, n in zip(dims, times, strict=True))]


def expand_dims(c: ShapeContext) -> Shapes:
    dims, axis = _dims(c.input(0)), _scalar_constant(c, 1)
    if dims is None:
        return [_UNKNOWN]
    if axis is None:
        return [_UNKNOWN]
    at = _axis(axis, len(dims) + 1)
    return [from_dims([*dims[:at], 1, *dims[at:]])]


def squeeze(c: ShapeContext) -> Shapes:
    dims, axes = _dims(c.input(0)), c.attrs.get("squeeze_dims") or []
    if dims is None:
        return [_UNKNOWN]
    if axes:
        gone = {_axis(int(a), len(dims)) for a in axes}
        for axis in gone:
            if dims[axis] not in (None, 1):
                raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
        return [from_dims(d for i, d in enumerate(dims) if i not in gone)]
    return [_UNKNOWN if None in dims else from_dims(d for d in dims if d != 1)]


def shape_of(c: ShapeContext) -> Shapes:
    return [TensorShape([c.input(0).ndims])]


def shape_n(c: ShapeContext) -> Shapes:
    return [TensorShape([shape.ndims]) for shape in c.inputs]


def gather(c: ShapeContext) -> Shapes:
    params = c.input(0).with_rank_at_least(1)
    return [_UNKNOWN if params.ndims is None else c.input(1).concatenate(params[1:])]


def resource_gather(c: ShapeContext) -> Shapes:
    return [_UNKNOWN]


def gather_v2(c: ShapeContext) -> Shapes:
    params, indices, axis = c.input(0), c.input(1), _scalar_constant(c, 2)
    if params.ndims is None or indices.ndims is None:
        return [_UNKNOWN]
    batch = int(c.attrs.get("batch_dims", 0))
    if axis is None:
        return [unknown_shape(params.ndims + indices.ndims - 1 - batch)]
    at = _axis(axis, params.ndims)
    return [params[:at].concatenate(indices[batch:]).concatenate(params[at + 1 :])]


def gather_nd(c: ShapeContext) -> Shapes:
    params, indices = c.input(0), c.input(1)
    if params.ndims is None or indices.ndims is None or indices.as_list()[-1] is None:
        return [_UNKNOWN]
    depth = int(indices[-1])
    return [indices[:-1].concatenate(params[depth:])]


def pack(c: ShapeContext) -> Shapes:
    shape = c.input(0)
    for other in c.inputs[1:]:
        shape = shape.merge_with(other)
    dims = _dims(shape)
    if dims is None:
        return [_UNKNOWN]
    at = _axis(int(c.attrs["axis"]), len(dims) + 1)
    return [from_dims([*dims[:at], len(c.inputs), *dims[at:]])]


def unpack(c: ShapeContext) -> Shapes:
    dims = _dims(c.input(0))
    if dims is None:
        return [_UNKNOWN] * c.output_count
    at = _axis(int(c.attrs["axis"]), len(dims))
    _merge(dims[at], c.output_count, f" for Unpack of {c.input(0)} along axis {at} into {c.output_count} outputs")
    return [from_dims(d for i, d in enumerate(dims) if i != at)] * c.output_count


def _joined(shapes: Sequence[TensorShape], axis: int | None) -> TensorShape:
    ranks = {shape.ndims for shape in shapes if shape.ndims is not None}
    if len(ranks) > 1:
        raise ValueError(f"Shapes of different ranks cannot be joined: {', '.join(map(str, shapes))}")
    if not ranks:
        return _UNKNOWN
    rank = ranks.pop()
    if rank == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    if axis is None:
        return unknown_shape(rank)
    at = _axis(axis, rank)
    result: list[int | None] = [None] * rank
    total: int | None = 0
    for shape in shapes:
        dims = [None] * rank if shape.ndims is None else shape.as_list()
        size = dims[at]
        total = None if total is None or size is None else total + size
        for i in range(rank):
            if i != at:
                result[i] = _merge(result[i], dims[i], f" for joining {', '.join(map(str, shapes))} along axis {at}")
    result[at] = total
    return from_dims(result)


def concat_v2(c: ShapeContext) -> Shapes:
    return [_joined(c.inputs[:-1], _scalar_constant(c, len(c.inputs) - 1))]


def concat(c: ShapeContext) -> Shapes:
    return [_joined(c.inputs[1:], _scalar_constant(c, 0))]


def concat_offset(c: ShapeContext) -> Shapes:
    return list(c.inputs[1:])


def slice_(c: ShapeContext) -> Shapes:
    dims, begin, size = _dims(c.input(0)), c.constant(1), c.constant(2)
    if dims is None:
        return [unknown_shape(None if size is None else len(size))]
    if begin is None or size is None:
        # The size of a slice may be known even where its beginning is not.
        if size is not None and len(size) == len(dims):
            return [from_dims(None if n < 0 else int(n) for n in size)]
        return [unknown_shape(len(dims))]
    if len(begin) != len(dims) or len(size) != len(dims):
        raise ValueError(
            f"Slice: begin {list(begin)} and size {list(size)} must have one entry a dimension of {c.input(0)}"
        )
    result: list[int | None] = []
    for i, d in enumerate(dims):
        b, n = int(begin[i]), int(size[i])
        if n < -1 or b < 0 or (d is not None and n == -1 and b > d):
            raise ValueError(f"Slice: begin {b} and size {n} are out of dimension {i} of {c.input(0)}")
        result.append(n if n != -1 else (None if d is None else d - b))
    return [from_dims(result)]


def strided_slice(c: ShapeContext) -> Shapes:
    dims = _dims(c.input(0))
    begin, end, strides = (c.constant(i) for i in (1, 2, 3))
    if dims is None:
        return [_UNKNOWN]
    if strides is None:
        return [_UNKNOWN]
    masks = {name: int(c.attrs[f"{name}_mask"]) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    result: list[int | None] = []
    axis, count = 0, len(strides)
    explicit = [i for i in range(count) if not (masks["new_axis"] >> i & 1) and not (masks["ellipsis"] >> i & 1)]
    if len(explicit) > len(dims):
        raise ValueError(f"StridedSlice: {len(explicit)} indices are too many for a shape of rank {len(dims)}")
    for i in range(count):
        if masks["ellipsis"] >> i & 1:
            after = len([j for j in explicit if j > i])
            while axis < len(dims) - after:
                result.append(dims[axis])
                axis += 1
            continue
        if masks["new_axis"] >> i & 1:
            result.append(1)
            continue
        d = dims[axis]
        axis += 1
        if masks["shrink_axis"] >> i & 1:
            if begin is not None and d is not None and not -d <= int(begin[i]) < d:
                raise ValueError(f"slice index {int(begin[i])} of dimension {axis - 1} out of bounds for size {d}")
            continue
        step = int(strides[i])
        if step == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        open_begin, open_end = masks["begin"] >> i & 1, masks["end"] >> i & 1
        if d is None or (begin is None and not open_begin) or (end is None and not open_end):
            result.append(None)
            continue
        b = None if open_begin or begin is None else int(begin[i])
        e = None if open_end or end is None else int(end[i])
        result.append(len(range(*slice(b, e, step).indices(d))))
    return [from_dims([*result, *dims[axis:]])]


def strided_slice_grad(c: ShapeContext) -> Shapes:
    return [c.partial(0)]


def where(c: ShapeContext) -> Shapes:
    return [TensorShape([None, c.input(0).ndims])]


def split(c: ShapeContext) -> Shapes:
    dims, axis = _dims(c.input(1)), _scalar_constant(c, 0)
    if dims is None:
        return [_UNKNOWN] * c.output_count
    if axis is None:
        return [unknown_shape(len(dims))] * c.output_count
    at = _axis(axis, len(dims))
    size = dims[at]
    if size is not None and size % c.output_count:
        raise ValueError(f"Dimension size must be evenly divisible by {c.output_count} but is {size}")
    dims[at] = None if size is None else size // c.output_count
    return [from_dims(dims)] * c.output_count


def split_v(c: ShapeContext) -> Shapes:
    dims, sizes, axis = _dims(c.input(0)), c.constant(1), _scalar_constant(c, 2)
    if dims is None:
        return [_UNKNOWN] * c.output_count
    if axis is None:
        return [unknown_shape(len(dims))] * c.output_count
    at = _axis(axis, len(dims))
    if sizes is None:
        if c.output_count > 1:
            dims[at] = None
        return [from_dims(dims)] * c.output_count
    total, pieces = dims[at], [int(n) for n in sizes.reshape(-1)]
    rest = None if total is None else total - sum(n for n in pieces if n >= 0)
    return [from_dims([*dims[:at], n if n >= 0 else rest, *dims[at + 1 :]]) for n in pieces]


def transpose(c: ShapeContext) -> Shapes:
    dims, order = _dims(c.input(0)), c.constant(1)
    if dims is None:
        return [unknown_shape(None if order is None or not order.ndim else len(order))]
    if order is None:
        return [unknown_shape(len(dims))]
    if sorted(int(i) % max(len(dims), 1) for i in order) != list(range(len(dims))):
        raise ValueError(f"Transpose: {list(map(int, order))} is no permutation of the axes of {c.input(0)}")
    return [from_dims(dims[int(i)] for i in order)]


def one_hot(c: ShapeContext) -> Shapes:
    dims, depth = _dims(c.input(0)), _scalar_constant(c, 1)
    if dims is None:
        return [_UNKNOWN]
    at = int(c.attrs["axis"])
    at = len(dims) if at == -1 else at
    return [from_dims([*dims[:at], depth, *dims[at:]])]


def pad(c: ShapeContext) -> Shapes:
    dims, paddings = _dims(c.input(0)), c.constant(1)
    if dims is None:
        return [_UNKNOWN]
    if paddings is None:
        return [unknown_shape(len(dims))]
    return [from_dims(None if d is None else d + int(p[0]) + int(p[1]) for d, p in zip(dims, paddings, strict=True))]


def unique(c: ShapeContext) -> Shapes:
    return [unknown_shape(1), c.input(0)]


def list_diff(c: ShapeContext) -> Shapes:
    return [unknown_shape(1), unknown_shape(1)]


def diag(c: ShapeContext) -> Shapes:
    return [c.input(0).concatenate(c.input(0))]


def matrix_diag(c: ShapeContext) -> Shapes:
    shape = c.input(0).with_rank_at_least(1)
    return [_UNKNOWN if shape.ndims is None else shape.concatenate(shape[-1:])]


def ensure_shape(c: ShapeContext) -> Shapes:
    return [c.input(0).merge_with(c.attrs["shape"])]


def scatter_nd(c: ShapeContext) -> Shapes:
    return [c.partial(2)]


def dynamic_stitch(c: ShapeContext) -> Shapes:
    """As many rows as the largest index says; the rest of the shape is any pair's."""
    half = len(c.inputs) // 2
    indices_known = [c.constant(i) for i in range(half)]
    rows: int | None = 0
    for value in indices_known:
        if value is None:
            rows = None
            break
        rows = max(rows or 0, int(value.max(initial=-1)) + 1)
    for indices, data in zip(c.inputs[:half], c.inputs[half:], strict=True):
        if indices.ndims is not None and data.ndims is not None:
            return [TensorShape([rows]).concatenate(data[indices.ndims :])]
    return [_UNKNOWN]


def dynamic_partition(c: ShapeContext) -> Shapes:
    data, partitions = c.input(0), c.input(1)
    if data.ndims is None or partitions.ndims is None:
        return [_UNKNOWN] * c.output_count
    return [TensorShape([None]).concatenate(data[partitions.ndims :])] * c.output_count


def sparse_to_dense(c: ShapeContext) -> Shapes:
    return [c.partial(1)]


def bitcast(c: ShapeContext) -> Shapes:
    shape, before, after = c.input(0), c.attrs["T"].size, c.attrs["type"].size
    if shape.ndims is None or before == after:
        return [shape]
    return [shape.concatenate([before // after]) if before > after else shape[:-1]]


# ---- state, control flow, strings, files -----------------------------------------------------------------------------


def assign(c: ShapeContext) -> Shapes:
    if c.attrs.get("validate_shape", True):
        return [c.input(0).merge_with(c.input(1))]
    return [c.input(1)]


def read_variable(c: ShapeContext) -> Shapes:
    # The handle's own shape is known to the graph (`_handle_shape`), not to the op; the client sets it afterwards.
    return [_UNKNOWN]


def variable_shape(c: ShapeContext) -> Shapes:
    return [unknown_shape(1)]


def switch(c: ShapeContext) -> Shapes:
    return [c.input(0), c.input(0)]


def merge(c: ShapeContext) -> Shapes:
    first = c.input(0)
    same = all(shape == first for shape in c.inputs[1:])
    ranks = {shape.ndims for shape in c.inputs}
    joined = first if same else (unknown_shape(ranks.pop()) if len(ranks) == 1 else _UNKNOWN)
    return [joined, _SCALAR]


def enter(c: ShapeContext) -> Shapes:
    # Of a loop variable only the client knows whether later iterations may have another shape.
    return [c.input(0) if c.attrs["is_constant"] else _UNKNOWN]


def variable(c: ShapeContext) -> Shapes:
    """Of a node of the oldest kind, where a scalar's shape means that none was given."""
    shape = as_shape(c.attrs["shape"])
    return [_UNKNOWN if shape.ndims == 0 else shape]


def array_handle(c: ShapeContext) -> Shapes:
    # Resources of this family were once pairs of strings (container, name), and kept that shape.
    return [TensorShape([2])]


def tensor_array(c: ShapeContext) -> Shapes:
    return [TensorShape([2]), _SCALAR]


def multinomial(c: ShapeContext) -> Shapes:
    rows = _dims(c.input(0).with_rank(2))
    return [TensorShape([rows[0] if rows else None, _scalar_constant(c, 1)])]


def string_join(c: ShapeContext) -> Shapes:
    result = _SCALAR
    for shape in c.inputs:
        if shape.ndims != 0:
            result = shape if result.ndims == 0 else result.merge_with(shape)
    return [result]


def restore_v2(c: ShapeContext) -> Shapes:
    return [_UNKNOWN] * c.output_count
