"""Shape functions of what outlives a step: queues, tables, readers, lists, datasets, and of functional control flow.

A handle is a scalar when it is a resource and a vector of two strings (container, name) when it is a reference, which
some resources kept. What a handle holds is not known to the op; where an attribute says it, it is used. The others are
in shape_fns.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import _SCALAR, _UNKNOWN, always, no_outputs, scalar
from tenfold_core.tensor_shape import TensorShape, as_shape, from_dims, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

__all__ = ["always", "no_outputs", "scalar"]

_VECTOR = unknown_shape(1)

#: A reference to a resource: [container, name].
names = always([2])
#: A dataset's or an iterator's handle and what deletes it.
scalars = always([], [])
record = scalars
records = always([None], [None])
concatenated = always(None, [None])
exported = always([None], None)


def output_shapes(c: ShapeContext) -> Shapes:
    """What the attribute says; nothing where it is empty or of another length."""
    shapes = c.attrs.get("output_shapes") or []
    if len(shapes) != c.output_count:
        return [_UNKNOWN] * c.output_count
    return [as_shape(shape) for shape in shapes]


def of_all_elements(c: ShapeContext) -> Shapes:
    """What the attribute says of one element, behind the number of elements that the arguments have. Raises ValueError."""
    count: int | None = None
    for number in range(len(c.attrs["Targuments"])):
        argument = c.input(number)
        if argument.ndims == 0:
            raise ValueError(f"Arguments must have rank at least 1. Input {number} has rank of 0.")
        size = argument.as_list()[0] if argument.ndims is not None else None
        if None not in (count, size) and count != size:
            raise ValueError("Arguments must have the same dimension 0.")
        count = size if count is None else count
    return [from_dims([count]).concatenate(shape) for shape in output_shapes(c)]


def pairs(c: ShapeContext) -> Shapes:
    """No output; raises ValueError unless keys and values are vectors of one length."""
    c.input(1).with_rank(1).merge_with(c.input(2))
    return []


def loop(c: ShapeContext) -> Shapes:
    """The attribute, or else the loop variables keep their shapes."""
    return output_shapes(c) if c.attrs.get("output_shapes") else list(c.inputs)


def inputs_of_gradient(c: ShapeContext) -> Shapes:
    """A function's gradient: the shapes of its inputs, which come first."""
    if len(c.inputs) < c.output_count:
        raise ValueError(f"len(inputs) < len(outputs): {len(c.inputs)} vs {c.output_count}")
    return list(c.inputs[: c.output_count])


def branches(c: ShapeContext) -> Shapes:
    """Every output is the first input."""
    return [c.input(0)] * c.output_count


def ref_select(c: ShapeContext) -> Shapes:
    """One of the inputs after the index: their common shape, if they have one."""
    first, *others = c.inputs[1:]
    if all(shape.is_fully_defined() and shape == first for shape in (first, *others)):
        return [first]
    return [_UNKNOWN]


def scattered(c: ShapeContext) -> Shapes:
    """The variable's; the updates are one for each index, or a single number."""
    variable, indices, updates = (c.input(number) for number in range(3))
    if updates.ndims != 0 and variable.ndims != 0:
        rows = _UNKNOWN if variable.ndims is None else variable[1:]
        updates.merge_with(indices.concatenate(rows))
    return [variable]


# ---- tensor lists ----------------------------------------------------------------------------------------------------


def list_element(c: ShapeContext) -> Shapes:
    """TensorListGetItem: the last input is the element's shape."""
    return [c.partial(2)]


#: The list without its last element, and that element: its shape is the list's secret.
list_pop = always([], None)


def list_stack(c: ShapeContext) -> Shapes:
    count = int(c.attrs["num_elements"])
    return [TensorShape([None if count < 0 else count]).concatenate(c.partial(1))]


def list_gather(c: ShapeContext) -> Shapes:
    return [c.input(1).concatenate(c.partial(2))]


def _joined(element: TensorShape) -> Shapes:
    """Elements of this shape, one behind the other, and their lengths."""
    return [_VECTOR.concatenate(element[1:]) if element.ndims else _UNKNOWN, _VECTOR]


def list_concat(c: ShapeContext) -> Shapes:
    return _joined(as_shape(c.attrs["element_shape"]))


def list_concat_v2(c: ShapeContext) -> Shapes:
    return _joined(c.partial(1))


def list_batch(c: ShapeContext) -> Shapes:
    """As many lists as the tensor has rows."""
    shape = c.input(1).with_rank_at_least(1)
    return [c.input(0).merge_with(_VECTOR if shape.ndims is None else shape[:1])]


def assign(c: ShapeContext) -> Shapes:
    if c.attrs["validate_shape"]:
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
    """What all inputs agree on, dimension by dimension."""
    ranks = {shape.ndims for shape in c.inputs}
    if len(ranks) > 1 or None in ranks:
        return [_UNKNOWN, _SCALAR]
    sizes = zip(*(shape.as_list() for shape in c.inputs), strict=True)
    return [TensorShape([each[0] if len(set(each)) == 1 else None for each in sizes]), _SCALAR]


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


#: [rows, width] of an embedding variable.
table_shape = always([2])


def of_ids(c: ShapeContext) -> Shapes:
    """A number for each id."""
    return [c.input(1)]


def exported_rows(c: ShapeContext) -> Shapes:
    """Keys, values, versions, frequencies."""
    return [_VECTOR, unknown_shape(2), _VECTOR, _VECTOR]


def split_ids(c: ShapeContext) -> Shapes:
    """Keys of each part, how many each lookup has, and a place for each id."""
    parts = int(c.attrs["parts"])
    return [_VECTOR] * parts + [as_shape([int(c.attrs["N"])])] * parts + [_VECTOR]


def merged_embeddings(c: ShapeContext) -> Shapes:
    """A row for each id."""
    count, parts = int(c.attrs["N"]), int(c.attrs["parts"])
    row = unknown_shape(1)
    for number in range(parts):
        row = row.merge_with(c.input(count + 1 + number).with_rank(2)[1:])
    return [c.input(number).concatenate(row) for number in range(count)]


def summed_embeddings(c: ShapeContext) -> Shapes:
    """A row for each key of a part, as wide as the gradients' are."""
    gradient = c.input(0)
    width = gradient.as_list()[-1] if gradient.ndims else None
    return [as_shape([None, width])] * int(c.attrs["parts"])


def gathered_embeddings(c: ShapeContext) -> Shapes:
    return [unknown_shape(2)]


def rows_of_each(c: ShapeContext) -> Shapes:
    rows = c.input(0)
    row = unknown_shape(None) if rows.ndims is None else rows[1:]
    return [as_shape([None]).concatenate(row)] * int(c.attrs["N"])
