"""What chance draws for a case of a kernel: sizes, shapes, values of a type, attributes, and what makes a case wrong.

Everything comes of one seed, the op's name and the case's number, so a case can be made again. Used by cases.py and by
the recipes, which say what fits an op.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, opdefs
from tenfold_core.tensor_shape import TensorShape
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_kernels import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import AttrDef, OpDef

#: Types that are drawn where a kernel has many: one of each class.
TYPES = (
    *(dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int32, dtypes.int64, dtypes.int8),
    *(dtypes.uint8, dtypes.int16, dtypes.complex64, dtypes.bool_, dtypes.string),
)
TEXTS = (b"", b"a", b"abc", b" Ab c ", b"1", b"x,y", b"\xc3\xa9t\xc3\xa9", b"aaa")


class Draw(random.Random):
    """Chance, with words for what cases need."""

    #: Nothing but finite numbers: what becomes of others hangs on the order of sums, or on the library.
    is_plain = False

    def size(self) -> int:
        """A small dimension: 0 and 1 now and then."""
        return self.choice((1, 2, 2, 3, 3, 4, 2, 3, 0 if self.random() < 0.3 else 2))

    def sizes(self, count: int) -> list[int]:
        return [self.size() for _ in range(count)]

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        return tuple(self.sizes(self.randint(least, most)))

    def maybe(self, chance: float = 0.5) -> bool:
        return self.random() < chance

    def ints(self, count: int, low: int, high: int) -> list[int]:
        """`count` numbers from low to high, both included; as many zeros where there is no number between them."""
        return [self.randint(low, high) if low <= high else 0 for _ in range(count)]

    def axis(self, rank: int) -> int:
        """A good axis, or one of the two just beyond."""
        if self.maybe(0.08):
            return self.choice((rank, -rank - 1))
        return self.randint(-rank, rank - 1) if rank else 0

    def floats(self, shape: Sequence[int], low: float = -3.0, high: float = 3.0) -> np.ndarray:
        count = math.prod(shape)
        return np.array([round(self.uniform(low, high), 2) for _ in range(count)], np.float64).reshape(shape)

    def array(self, dtype: DType, shape: Sequence[int]) -> np.ndarray:
        """Small values of a type, now and then one that is not a number."""
        count, base = math.prod(shape), dtype.base_dtype
        if base is dtypes.string:
            return objects([self.choice(TEXTS) for _ in range(count)]).reshape(shape)
        if base is dtypes.bool_:
            return np.array([self.maybe() for _ in range(count)], np.bool_).reshape(shape)
        kind = np.dtype(base.as_numpy_dtype)
        if base.is_complex:
            return (self.floats(shape) + 1j * self.floats(shape)).astype(kind)
        if base.is_floating:
            made = self.floats(shape).astype(kind)
            if count and self.maybe(0.06) and not self.is_plain:
                made.ravel()[self.randrange(count)] = self.choice((math.nan, math.inf, -math.inf, -0.0))
            return made
        low = 0 if kind.kind == "u" else -9
        return np.array([self.randint(low, 9) for _ in range(count)], np.int64).astype(kind).reshape(shape)


def objects(values: Sequence[bytes]) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = list(values)
    return made


def attributes(d: Draw, definition: OpDef) -> dict[str, Any]:
    """Attributes of an op: types that a kernel of it accepts, defaults more often than other values."""
    rows = registry._rows_of(definition.name, "CPU")
    rows = [row for row in rows if dtypes.variant not in row.types.get("T", ())]
    types: dict[str, Any] = dict(d.choice(rows).types) if rows else {}
    return {attr.name: _attribute(d, attr, types.get(attr.name)) for attr in definition.attrs}


def _attribute(d: Draw, attr: AttrDef, accepted: Any) -> Any:
    if attr.type == "type":
        return _type(d, attr, accepted)
    if attr.type == "list(type)":
        return [_type(d, attr, accepted) for _ in range(max(attr.minimum or 0, d.choice((1, 1, 2, 3))))]
    if attr.has_default and d.maybe(0.5):
        return attr.default
    if attr.type.startswith("list("):
        return attr.default if attr.has_default else []
    if attr.allowed:
        return d.choice(attr.allowed)
    made = {
        "int": lambda: max(attr.minimum if attr.minimum is not None else -1, d.choice((1, 2, 3))),
        "bool": lambda: d.maybe(),
        "float": lambda: d.choice((0.0, 0.5, 1.0, 2.0, 0.1)),
        "string": lambda: attr.default if attr.has_default else b"",
        "shape": lambda: TensorShape(None),
        "tensor": lambda: attr.default if attr.has_default else tensor_to_proto(np.zeros(2, np.float32)),
    }
    return made[attr.type]()


def _type(d: Draw, attr: AttrDef, accepted: Any) -> DType:
    allowed = [
        each for each in TYPES if (not attr.allowed or each in attr.allowed) and (not accepted or each in accepted)
    ]
    if not allowed:
        allowed = sorted(accepted or attr.allowed, key=lambda each: each.name)
    if attr.has_default and attr.default in allowed and d.maybe(0.6):
        default: DType = attr.default
        return default
    return dtypes.float32 if dtypes.float32 in allowed and d.maybe(0.4) else d.choice(allowed)


def spoil(d: Draw, op: str, attrs: dict[str, Any], inputs: list[np.ndarray]) -> None:
    """Changes one thing: a size, a rank, a value, an attribute. What comes of it is often refused."""
    kinds = {attr.name: attr for attr in opdefs.get(op).attrs}
    counts = {arg.number_attr for arg in (*opdefs.get(op).inputs, *opdefs.get(op).outputs)}
    names = [n for n, attr in kinds.items() if attr.type in ("int", "bool", "float", "list(int)") and n not in counts]
    if names and (not inputs or d.maybe(0.3)):
        name = d.choice(names)
        made, least = _other(d, attrs[name]), kinds[name].minimum
        if least is None or (made if isinstance(made, int) else len(made)) >= least:
            attrs[name] = made
        return
    if not inputs:
        return
    place = d.randrange(len(inputs))
    value = inputs[place]
    way = d.choice(("less", "more", "deeper", "flatter", "value", "value", "value", "empty"))
    if way == "deeper":
        inputs[place] = value[None] if d.maybe() else value[..., None]
    elif way == "flatter" and value.ndim:
        inputs[place] = value[:1].reshape(value.shape[1:]) if value.shape[0] else value.ravel()
    elif way in ("less", "empty") and value.ndim:
        axis = d.randrange(value.ndim)
        inputs[place] = np.take(value, range(max(0, value.shape[axis] - 1) if way == "less" else 0), axis=axis)
    elif way == "more" and value.ndim and value.size:
        axis = d.randrange(value.ndim)
        inputs[place] = np.concatenate([value, np.take(value, [0], axis=axis)], axis=axis)
    elif way == "value" and value.size:
        inputs[place] = made = value.copy()
        at, kind = d.randrange(value.size), value.dtype.kind
        if kind == "f":
            made.ravel()[at] = d.choice((0.0, 1.0) if d.is_plain else (math.nan, math.inf, -math.inf, 0.0, -0.0))
        elif kind in "iu":
            made.ravel()[at] = d.choice((0, 1, 100) if kind == "u" else (-1, 0, 1, 100, made.ravel()[at] + 1, -2))
        elif kind == "O":
            made.ravel()[at] = d.choice(TEXTS)
    inputs[place] = np.ascontiguousarray(inputs[place]).reshape(inputs[place].shape)


def _other(d: Draw, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return d.choice((value + 1, value - 1, 0, -1, -2))
    if isinstance(value, float):
        return d.choice((value + 0.5, -value, 0.0, -1.0))
    made = list(value)
    if made and d.maybe(0.8):
        at = d.randrange(len(made))
        made[at] = d.choice((made[at] + 1, made[at] - 1, 0, -1))
        return made
    return made[:-1] if d.maybe() else [*made, 1]
