"""Cases beside a case of shape_cases.py: one size, rank, constant or attribute of it is another.

A case that TensorFlow accepts has sense in it that chance seldom hits; what lies beside it meets limits from both
sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.shape_table import Input, shape_of

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.node_signature import signature
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.shape_table import Shape, ShapeCase

    from tenfold_core.op_def import AttrDef

_ONE_TYPE_OF_EACH_SIZE = ("float32", "int8", "complex128", "int32", "int64", "string")


def neighbours(case: ShapeCase) -> Iterator[ShapeCase]:
    """What differs from `case` in one thing, or in one thing of all inputs alike."""
    for place, given in enumerate(case.inputs):
        for other in _inputs_beside(given):
            yield _with_inputs(case, {place: other})
    for place, given in enumerate(case.inputs):
        same = [k for k, each in enumerate(case.inputs) if each.value is None and each.shape == given.shape]
        if len(same) > 1 and same[0] == place:
            for shape in _shapes_beside(given.shape):
                yield _with_inputs(case, {k: case.inputs[k]._replace(shape=shape) for k in same})
    for attr in opdefs.get(case.op).attrs:
        for value in _values_beside(attr, case.attrs.get(attr.name)) if attr.name in case.attrs else ():
            made = _with_attr(case, attr.name, value)
            if made is not None:
                yield made


def _with_inputs(case: ShapeCase, others: dict[int, Input]) -> ShapeCase:
    return case._replace(inputs=tuple(others.get(k, each) for k, each in enumerate(case.inputs)))


def _with_attr(case: ShapeCase, name: str, value: Any) -> ShapeCase | None:
    """The case with another attribute; None where it would have other inputs than it has."""
    attrs = case.attrs | {name: value}
    try:
        types = signature(opdefs.get(case.op), attrs).input_types
    except errors.OpError:
        return None
    if len(types) != len(case.inputs):
        return None
    inputs = tuple(each._replace(dtype=dtype) for dtype, each in zip(types, case.inputs, strict=True))
    if any(each.value is not None and not _may_be_constant(each) for each in inputs):
        return None
    return case._replace(attrs=attrs, inputs=inputs)


def _may_be_constant(given: Input) -> bool:
    return given.dtype.base_dtype in (dtypes.int32, dtypes.int64) and not given.dtype.is_ref_dtype


# ---- inputs ----------------------------------------------------------------------------------------------------------


def _inputs_beside(given: Input) -> Iterator[Input]:
    if given.value is None:
        yield from (given._replace(shape=shape) for shape in _shapes_beside(given.shape))
        shape = given.shape
        if shape is not None and len(shape) < 3 and not {None, 0} & set(shape) and _may_be_constant(given):
            for number in (0, 1, 2):
                yield Input(given.dtype, shape, _filled(shape, number))
        return
    yield Input(given.dtype, given.shape)
    yield Input(given.dtype, None if given.shape is None else [None] * len(given.shape))
    yield Input(given.dtype, None)
    for value in _constants_beside(given.value):
        yield Input(given.dtype, shape_of(value), value)


def _shapes_beside(shape: Shape) -> Iterator[Shape]:
    yield None
    if shape is None:
        others: tuple[Shape, ...] = ([], [2], [None, None], [2, 3, 3])
        yield from others
        return
    for at, size in enumerate(shape):
        for other in (None, 0, 1, 2, 3, 4, *(() if size is None else (size + 1, size - 1, size * 2))):
            if other != size and (other is None or other >= 0):
                yield [*shape[:at], other, *shape[at + 1 :]]
    yield [None] * len(shape)
    yield from ([*shape, 1], [*shape, 2], [1, *shape], [None, *shape], [5, *shape])
    if shape:
        yield from (shape[1:], shape[:-1], [])


def _filled(shape: list[Any], number: int) -> Any:
    value: Any = number
    for size in reversed(shape):
        value = [value] * size
    return value


def _constants_beside(value: Any, depth: int = 0) -> Iterator[Any]:
    if value is None:
        yield from (1, 3)
    elif not isinstance(value, list):
        yield from (each for each in (value + 1, value - 1, -value, value * 2, 0, -1, -2, [value]) if each != value)
    for at, inner in enumerate(value if isinstance(value, list) else ()):
        yield from ([*value[:at], other, *value[at + 1 :]] for other in _constants_beside(inner, depth + 1))
        if isinstance(inner, int) and not depth:
            yield [*value[:at], None, *value[at + 1 :]]  # known but for this one
    if isinstance(value, list) and value and None not in value:
        yield from (value[:-1], [*value, value[-1]], value[0], [value])
    if isinstance(value, list) and len(value) > 1 and None not in value:
        yield from ([value[1], value[0], *value[2:]], [value[0], value[0], *value[2:]])


# ---- attributes ------------------------------------------------------------------------------------------------------


def _values_beside(attr: AttrDef, value: Any) -> Iterator[Any]:
    """Other values of an attribute that a node may have, whether they make sense or not."""
    kind = attr.type
    if kind.startswith("list("):
        for at, item in enumerate(value):
            for other in _ones_beside(attr, kind[5:-1], item):
                yield [*value[:at], other, *value[at + 1 :]]
        least = attr.minimum or 0
        if value and kind != "list(type)" and kind != "list(func)":
            if len(value) > least:
                yield value[:-1]
            yield [*value, value[-1]]
    else:
        yield from _ones_beside(attr, kind, value)


def _ones_beside(attr: AttrDef, kind: str, value: Any) -> Iterator[Any]:
    if kind == "bool":
        yield not value
    elif kind == "int":
        least = attr.minimum if attr.minimum is not None and attr.type == "int" else -100
        others = dict.fromkeys((value + 1, value - 1, value * 2, 0, 1, -1))
        yield from (other for other in others if other != value and other >= least)
    elif kind == "string":
        yield from (other for other in attr.allowed or () if other != value)
    elif kind == "type":
        for name in _ONE_TYPE_OF_EACH_SIZE:
            other = dtypes.as_dtype(name)
            if other != value and (not attr.allowed or other in attr.allowed):
                yield other
    elif kind == "shape":
        shape = TensorShape(value)
        yield from map(TensorShape, _shapes_beside(None if shape.ndims is None else shape.as_list()))
