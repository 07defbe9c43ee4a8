"""What fits the ops that make, join, pad and turn arrays, and those of shapes. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]


def _fill(d: Draw, a: Attrs) -> list[Any]:
    return [list(d.shape(0, 3)), ()]


def _pack(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    a["N"], a["axis"] = d.choice((1, 2, 3)), d.axis(len(shape) + 1)
    return [shape] * a["N"]


def _unpack(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    a["axis"] = d.axis(len(shape))
    a["num"] = shape[a["axis"]] if -len(shape) <= a["axis"] < len(shape) else 1
    a["num"] += d.maybe(0.1)
    return [shape]


def _parts(d: Draw, count: int) -> tuple[list[tuple[int, ...]], int]:
    """Shapes that differ along one axis, and that axis."""
    shape, axis = list(d.shape(1, 3)), 0
    axis = d.randrange(len(shape))
    found = []
    for _ in range(count):
        shape[axis] = d.size()
        found.append(tuple(shape))
    return found, d.choice((axis, axis - len(shape)))


def _concat(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((2, 2, 3))
    shapes, axis = _parts(d, a["N"])
    return [*shapes, axis]


def _old_concat(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((2, 2, 3))
    shapes, axis = _parts(d, a["N"])
    return [axis, *shapes]


def _concat_offset(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((2, 2, 3))
    shapes, axis = _parts(d, a["N"])
    return [axis, *map(list, shapes)]


def _split(d: Draw, a: Attrs) -> list[Any]:
    shape = list(d.shape(1, 3))
    axis = d.randrange(len(shape))
    a["num_split"] = d.choice((1, 2, 3))
    shape[axis] = a["num_split"] * d.choice((0, 1, 2)) + d.maybe(0.1)
    return [d.choice((axis, axis - len(shape))), tuple(shape)]


def _split_v(d: Draw, a: Attrs) -> list[Any]:
    shape = list(d.shape(1, 3))
    axis = d.randrange(len(shape))
    sizes = d.ints(d.choice((1, 2, 3)), 0, 2)
    a["num_split"], shape[axis] = len(sizes), sum(sizes) + d.maybe(0.1)
    if d.maybe(0.4):
        sizes[d.randrange(len(sizes))] = -1
    return [tuple(shape), sizes, d.choice((axis, axis - len(shape)))]


def _tile(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    return [shape, d.ints(len(shape), 0 if d.maybe(0.2) else 1, 3)]


def _tile_grad(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    times = d.ints(len(shape), 1, 3)
    return [tuple(s * t for s, t in zip(shape, times, strict=True)), times]


def _pad(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    return [shape, np.array([d.ints(2, 0, 2) for _ in shape]).reshape(-1, 2)]


def _pad_v2(d: Draw, a: Attrs) -> list[Any]:
    return [*_pad(d, a), ()]


def _mirror(d: Draw, a: Attrs) -> list[Any]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    less = a["mode"] == b"REFLECT"
    return [shape, np.array([d.ints(2, 0, size - less + d.maybe(0.1)) for size in shape]).reshape(-1, 2)]


def _mirror_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, pads = _mirror(d, a)
    return [tuple(size + int(sum(pad)) for size, pad in zip(shape, pads, strict=True)), pads]


def _transpose(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 4)
    order = list(range(len(shape)))
    d.shuffle(order)
    if order and d.maybe(0.1):
        order[0] = order[-1]
    return [shape, [axis - len(shape) if d.maybe(0.1) else axis for axis in order]]


def _reverse_v2(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 4)
    axes = d.sample(range(len(shape)), d.randint(0, len(shape)))
    return [shape, [axis - len(shape) if d.maybe(0.3) else axis for axis in axes]]


def _reverse(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 4)
    return [shape, (len(shape),)]


def _reverse_sequence(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(2, 4)
    a["batch_dim"], a["seq_dim"] = d.sample(range(len(shape)), 2)
    lengths = d.ints(shape[a["batch_dim"]], 0, shape[a["seq_dim"]] + d.maybe(0.1))
    return [shape, lengths]


def _roll(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    if d.maybe(0.3):
        return [shape, d.randint(-5, 5), d.axis(len(shape))]
    count = d.randint(0, 3)
    return [shape, d.ints(count, -5, 5), [d.axis(len(shape)) for _ in range(count)]]


def _shaped(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(0, 4)]


def _shapes(d: Draw, a: Attrs) -> list[Any]:
    a["N"] = d.choice((1, 2, 3))
    return [d.shape(0, 3) for _ in range(a["N"])]


def _reshape(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    count = math.prod(shape)
    new = d.choice(([count], [1, count], [count, 1], list(shape), list(reversed(shape)), [2, count // 2]))
    if new and d.maybe(0.4):
        new[d.randrange(len(new))] = -1
    return [shape, new]


def _expand_dims(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    axis = d.axis(len(shape) + 1)
    return [shape, axis if d.maybe(0.8) else [axis]]


def _squeeze(d: Draw, a: Attrs) -> list[Any]:
    shape = tuple(d.choice((1, 1, 2, 3)) for _ in range(d.randint(0, 4)))
    ones = [axis for axis, size in enumerate(shape) if size == 1 or d.maybe(0.05)]
    some = d.sample(ones, d.randint(0, len(ones)))
    a["squeeze_dims"] = [axis - len(shape) if d.maybe(0.3) else axis for axis in some]
    return [shape]


def _ensure_shape(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 3)
    wanted: list[Any] = [None if d.maybe(0.4) else size + d.maybe(0.1) for size in shape]
    a["shape"] = TensorShape(None if d.maybe(0.1) else wanted)
    return [shape]


def _permutation(d: Draw, a: Attrs) -> list[Any]:
    order = list(range(d.randint(0, 5)))
    d.shuffle(order)
    if order and d.maybe(0.2):
        order[0] = d.choice((order[-1], len(order), -1))
    return [order]


def _unravel(d: Draw, a: Attrs) -> list[Any]:
    shape = [max(1, size) for size in d.shape(1, 3)]
    last = math.prod(shape) - 1
    return [d.randint(0, last) if d.maybe(0.3) else d.ints(d.size(), 0, last + d.maybe(0.1)), shape]


RECIPES = {
    "Fill": _fill,
    "Pack": _pack,
    "Unpack": _unpack,
    "ConcatV2": _concat,
    "Concat": _old_concat,
    "ConcatOffset": _concat_offset,
    "Split": _split,
    "SplitV": _split_v,
    "Tile": _tile,
    "TileGrad": _tile_grad,
    "Pad": _pad,
    "PadV2": _pad_v2,
    "MirrorPad": _mirror,
    "MirrorPadGrad": _mirror_grad,
    "Transpose": _transpose,
    "ConjugateTranspose": _transpose,
    "ReverseV2": _reverse_v2,
    "Reverse": _reverse,
    "ReverseSequence": _reverse_sequence,
    "Roll": _roll,
    "Shape": _shaped,
    "Size": _shaped,
    "Rank": _shaped,
    "Where": _shaped,
    "ShapeN": _shapes,
    "Reshape": _reshape,
    "ExpandDims": _expand_dims,
    "Squeeze": _squeeze,
    "EnsureShape": _ensure_shape,
    "InvertPermutation": _permutation,
    "UnravelIndex": _unravel,
}
