"""Shape functions: from the static shapes of an op's inputs to those of its outputs.

Each takes a `ShapeContext` (tenfold_core/shape_inference.py) and gives one TensorShape an output; a row of a table names its
function. What is not known stays unknown; ValueError means that no run could ever succeed. Follows common_shape_fns.cc
and the ops' own shape functions. Here are those that many families share; the others are in shape_fns_*.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.graph_versions import LAST_WITH_PLACEHOLDERS_WITHOUT_SHAPE
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


def _exactly(found: int | None, size: int, why: str) -> None:
    """Raises ValueError for a dimension that is known to be another than `size`."""
    if found not in (None, size):
        raise ValueError(f"Dimension must be {size} but is {found}{why}")


def _scalar_constant(c: ShapeContext, index: int) -> int | None:
    """What input `index`, a scalar, holds, if it is known. Raises ValueError for another rank."""
    value = c.constant(index)
    if value is not None and value.ndim:
        raise ValueError(f"Shape must be rank 0 but is rank {value.ndim}: input {index} of {c.op_def.name} is a scalar")
    return None if value is None else int(value.reshape(()))


def _vector_constant(c: ShapeContext, index: int, count: int) -> list[int] | None:
    """What input `index` [count] holds, if it is known. Raises ValueError for another shape."""
    length = c.input(index).with_rank(1).as_list()[0]
    if length not in (None, count):
        raise ValueError(f"Dimension must be {count} but is {length}: input {index} of {c.op_def.name}")
    value = c.constant(index)
    return None if value is None else [int(element) for element in value]


def _pair(c: ShapeContext, index: int) -> tuple[int | None, int | None]:
    """The height and width that input `index` [2] holds. Raises ValueError for another shape, and for negative sizes."""
    value = _vector_constant(c, index, 2)
    if value is None:
        return None, None
    height, width = value
    if height < 0 or width < 0:
        raise ValueError(f"{c.op_def.name}: a size must not be negative, got [{height}, {width}]")
    return height, width


def _each_axis(c: ShapeContext, attribute: str, rank: int) -> list[int]:
    """An attribute with a value for each axis; 1 for one that is left out. Raises ValueError for another number."""
    values = c.attrs.get(attribute) or [1] * rank
    if len(values) != rank:
        name = attribute.removesuffix("s") if attribute not in ("ksize", "ksizes") else attribute
        raise ValueError(
            f"{c.op_def.name} requires the {name} attribute to contain {rank} values, but got: {len(values)}"
        )
    return list(values)


def _size_constant(c: ShapeContext, index: int) -> int | None:
    """A size that a scalar input gives. Raises ValueError for a negative one."""
    size = _scalar_constant(c, index)
    if size is not None and size < 0:
        raise ValueError(f"Dimension size, given by scalar input {index}, must be non-negative but is {size}")
    return size


def _same_prefix(shape: TensorShape, prefix: TensorShape) -> TensorShape:
    """What stands behind `prefix`, with which `shape` must begin; both are of known rank. Raises ValueError."""
    count = len(prefix)
    shape.with_rank_at_least(count)[:count].assert_is_compatible_with(prefix)
    rest: TensorShape = shape[count:]
    return rest


def _times(size: int | None, count: int | None) -> int | None:
    """No copies are nothing, of however much, and so are copies of nothing."""
    if 0 in (size, count):
        return 0
    return None if size is None or count is None else size * count


def _less(size: int | None, other: int | None) -> int | None:
    """The smaller one; 0 is, whatever the other is."""
    if 0 in (size, other):
        return 0
    return None if size is None or other is None else min(size, other)


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
    """In a graph of old a scalar's shape means that none was given."""
    shape = as_shape(c.attrs["shape"])
    return [_UNKNOWN if shape.ndims == 0 and c.producer <= LAST_WITH_PLACEHOLDERS_WITHOUT_SHAPE else shape]


def placeholder_with_default(c: ShapeContext) -> Shapes:
    shape = as_shape(c.attrs["shape"])
    shape.assert_is_compatible_with(c.input(0))
    return [shape]


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
    for g, w in zip(given, wanted, strict=True):
        if g not in (None, 1, w) and w is not None:
            raise ValueError(f"Dimensions must be equal, but are {g} and {w}")
    # Only a 1 can grow: every other size is also the result's.
    return [from_dims(g if w is None and g != 1 else w for w, g in zip(wanted, given, strict=True))]


def equal(c: ShapeContext) -> Shapes:
    """As `broadcast`; without errors for shapes that do not fit, the answer is then a scalar."""
    if c.attrs["incompatible_shape_error"]:
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
    elif condition.ndims == 1 and data.ndims is not None:
        data.with_rank_at_least(1)[:1].assert_is_compatible_with(condition)  # a row for each of the vector's elements
    return [data]


def select_v2(c: ShapeContext) -> Shapes:
    return [broadcast_shapes(c.input(0), broadcast_shapes(c.input(1), c.input(2)))]
