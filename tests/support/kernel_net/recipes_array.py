"""What fits the ops of the array families: moves, slices, blocks, diagonals, scatters, shapes. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
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


def _slice(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 4)
    begin = [d.randint(0, size) for size in shape]
    sizes = [d.choice((-1, d.randint(0, size - at))) for size, at in zip(shape, begin, strict=True)]
    return [shape, begin, sizes]


def _strides(d: Draw, a: Attrs) -> tuple[tuple[int, ...], list[list[int]], list[int]]:
    """A shape, begins, ends and strides with masks, and the shape of what they take."""
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    count = d.randint(0, len(shape))
    ends = []
    for at in range(count):
        step = d.choice((1, 1, 2, -1, -2, 3))
        size = shape[at]
        ends.append((d.randint(-size - 1, size + 1), d.randint(-size - 1, size + 1), step))
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for bit in range(count):
        kind = d.choice(("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "", "", ""))
        if kind:
            masks[kind] |= 1 << bit
        if kind == "shrink_axis_mask":
            ends[bit] = (d.randint(-shape[bit], shape[bit] - 1 + d.maybe(0.1)), ends[bit][1], 1)
    if d.maybe(0.3):
        masks["ellipsis_mask"] = 1 << d.randint(0, count)
        ends.insert(masks["ellipsis_mask"].bit_length() - 1, (0, 0, 1))
    a.update(masks)
    return shape, [list(each) for each in zip(*ends, strict=True)] if ends else [[], [], []], _taken(shape, ends, masks)


def _taken(shape: tuple[int, ...], ends: list[tuple[int, int, int]], masks: dict[str, int]) -> list[int]:
    """As NumPy takes them; the shape itself where it refuses."""
    index: list[Any] = []
    for bit, (begin, end, step) in enumerate(ends):
        is_set = {name for name, mask in masks.items() if mask >> bit & 1}
        if "ellipsis_mask" in is_set:
            index.append(...)
        elif "new_axis_mask" in is_set:
            index.append(None)
        elif "shrink_axis_mask" in is_set:
            index.append(begin)
        else:
            index.append(slice(None if "begin_mask" in is_set else begin, None if "end_mask" in is_set else end, step))
    try:
        return list(np.empty(shape)[tuple(index)].shape)
    except IndexError:
        return list(shape)


def _strided_slice(d: Draw, a: Attrs) -> list[Any]:
    shape, ends, _ = _strides(d, a)
    return [shape, *ends]


def _strided_slice_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, ends, taken = _strides(d, a)
    return [list(shape), *ends, tuple(taken)]


def _strided_slice_update(d: Draw, a: Attrs) -> list[Any]:
    shape, ends, taken = _strides(d, a)
    return [shape, *ends, tuple(taken) if d.maybe(0.7) else ()]


def _gather(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    places = d.shape(0, 2)
    return [shape, np.array(d.ints(math.prod(places), 0, shape[0] - 1 + d.maybe(0.1))).reshape(places)]


def _gather_v2(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 4)
    axis = d.randrange(len(shape))
    batch = d.randint(0, axis) if d.maybe(0.5) else 0
    places = (*shape[:batch], *d.shape(0, 2))
    a["batch_dims"] = batch if d.maybe(0.8) or not batch else batch - len(places)
    at = np.array(d.ints(math.prod(places), 0, shape[axis] - 1 + d.maybe(0.1))).reshape(places)
    return [shape, at, d.choice((axis, axis, axis - len(shape)))]


def _gather_nd(d: Draw, a: Attrs) -> list[Any]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    depth, rows = d.randint(0, len(shape)), d.shape(0, 2)
    at = [[d.randint(0, size - 1) for size in shape[:depth]] for _ in range(math.prod(rows))]
    if a.get("bad_indices_policy"):
        a["bad_indices_policy"] = b""
    return [shape, np.array(at).reshape(*rows, depth)]


def _scatter(d: Draw, a: Attrs) -> tuple[tuple[int, ...], np.ndarray, tuple[int, ...]]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    depth, rows = d.randint(1, len(shape)), d.choice(((2,), (3,), (1, 2), (0,), ()))
    at = [[d.randint(0, size - 1) for size in shape[:depth]] for _ in range(math.prod(rows))]
    if at and d.maybe(0.1):
        at[0][-1] = d.choice((-1, shape[depth - 1]))
    if "bad_indices_policy" in a:
        a["bad_indices_policy"] = d.choice((b"", b"", b"DEFAULT", b"ERROR", b"IGNORE", b"odd"))
    return shape, np.array(at).reshape(*rows, depth), (*rows, *shape[depth:])


def _scatter_nd(d: Draw, a: Attrs) -> list[Any]:
    shape, at, updates = _scatter(d, a)
    return [at, updates, list(shape)]


def _scatter_into(d: Draw, a: Attrs) -> list[Any]:
    shape, at, updates = _scatter(d, a)
    return [shape, at, updates]


def _inplace(d: Draw, a: Attrs) -> list[Any]:
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    if d.maybe(0.3):
        return [shape, d.randint(-1, shape[0]), shape[1:]]
    count = d.randint(0, 3)
    return [shape, d.ints(count, 0, shape[0] - 1), (count, *shape[1:])]


def _sparse_to_dense(d: Draw, a: Attrs) -> list[Any]:
    shape = [max(1, size) for size in d.shape(1, 3)]
    every = [list(np.unravel_index(k, shape)) for k in range(math.prod(shape))]
    some = [each for each in every if d.maybe(0.4)]
    if d.maybe(0.2):
        some.reverse()
    if len(shape) == 1 and d.maybe():
        flat = [int(each[0]) for each in some]
        return [flat, shape, (len(flat),) if d.maybe(0.7) else (), ()]
    return [np.array(some).reshape(-1, len(shape)), shape, (len(some),) if d.maybe(0.7) else (), ()]


def _partition(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 2)
    a["num_partitions"] = d.choice((1, 2, 3))
    places = np.array(d.ints(math.prod(shape), 0, a["num_partitions"] - 1 + d.maybe(0.1))).reshape(shape)
    return [(*shape, *d.shape(0, 1)), places]


def _stitch(d: Draw, a: Attrs) -> list[Any]:
    a["N"], rest = d.choice((1, 2, 3)), d.shape(0, 1)
    shapes = [d.shape(0, 2) for _ in range(a["N"])]
    order = list(range(sum(math.prod(shape) for shape in shapes)))
    d.shuffle(order)
    if order and d.maybe(0.3):
        order[0] = d.choice((order[-1], len(order), 0))
    places = []
    for shape in shapes:
        size = math.prod(shape)
        places.append(np.array(order[:size]).reshape(shape))
        order = order[size:]
    return [*places, *[(*shape, *rest) for shape in shapes]]


def _one_hot(d: Draw, a: Attrs) -> list[Any]:
    shape, depth = d.shape(0, 2), d.randint(0, 4)
    a["axis"] = d.choice((-1, -1, *range(len(shape) + 1)))
    return [np.array(d.ints(math.prod(shape), -1, depth)).reshape(shape), depth, (), ()]


def _bounds(d: Draw, a: Attrs) -> list[Any]:
    rows = d.size()
    a["T"] = d.choice((dtypes.float32, dtypes.int32, dtypes.float64, dtypes.int64))
    return [np.sort(d.floats((rows, d.size())).round(), 1), d.floats((rows, d.size())).round()]


def _unique(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(0, 7)
    if a["T"] is dtypes.string:
        return [(count,)]
    if a["T"].is_floating and d.maybe(0.3):
        return [[d.choice((1.0, 2.0, math.nan, -0.0, 0.0)) for _ in range(count)]]
    return [d.ints(count, 0, 3)]


def _unique_v2(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 3)
    if len(shape) == 1 and d.maybe():
        return [np.array(d.ints(shape[0], 0, 2)), []]
    if a["T"] is dtypes.string:
        return [shape, [d.axis(len(shape))]]
    return [np.array(d.ints(math.prod(shape), 0, 1)).reshape(shape), [d.axis(len(shape))]]


def _list_diff(d: Draw, a: Attrs) -> list[Any]:
    if a["T"] is dtypes.string:
        return [(4,), (2,)]
    return [d.ints(d.randint(0, 6), 0, 4), d.ints(d.randint(0, 3), 0, 4)]


def _matrix(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(2, 4)]


def _set_diag(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(2, 4)
    return [shape, (*shape[:-2], min(shape[-2:]))]


def _band_part(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(2, 4)
    return [shape, *(d.choice((-1, 0, 1, size, size + d.maybe(0.2))) for size in shape[-2:])]


def _diag_part(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(1, 2)
    return [(*shape, *shape)]


def _band(d: Draw, rows: int, columns: int) -> tuple[int, int]:
    low = d.randint(1 - rows, columns - 1) if rows + columns > 1 and rows and columns else 0
    return low, d.randint(low, max(low, columns - 1))


def _longest(rows: int, columns: int, low: int, high: int) -> int:
    return min(rows + min(high, 0), columns - max(low, 0))


def _k(d: Draw, low: int, high: int) -> Any:
    if low != high:
        return [low, high + 9 * d.maybe(0.05)]
    return d.choice((low, [low], [low, low]))


def _diag_v2(d: Draw, a: Attrs) -> list[Any]:
    rows, columns = max(1, d.size()), max(1, d.size())
    low, high = _band(d, rows, columns) if d.maybe(0.6) else (d.randint(-2, 2),) * 2
    longest = max(1, _longest(rows, columns, low, high))
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    inner = (longest,) if low == high else (high - low + 1, longest)
    sizes = d.choice(((-1, -1), (least_rows, -1), (-1, least_columns), (rows, columns), (least_rows + 1, -1),
                      (least_rows, least_columns), (-1, least_columns + 2)))  # fmt: skip
    return [(*d.shape(0, 1), *inner), _k(d, low, high), *sizes, ()]


def _diag_part_v2(d: Draw, a: Attrs) -> list[Any]:
    rows, columns = max(1, d.size()), max(1, d.size())
    return [(*d.shape(0, 1), rows, columns), _k(d, *_band(d, rows, columns)), ()]


def _set_diag_v2(d: Draw, a: Attrs) -> list[Any]:
    rows, columns, batch = max(1, d.size()), max(1, d.size()), d.shape(0, 1)
    low, high = _band(d, rows, columns)
    inner = (_longest(rows, columns, low, high),)
    return [(*batch, rows, columns), (*batch, *(() if low == high else (high - low + 1,)), *inner), _k(d, low, high)]


def _space_to_batch_nd(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(1, 2)
    blocks = d.ints(count, 1, 3)
    pads = np.array([d.ints(2, 0, 2) for _ in blocks]).reshape(-1, 2)
    sizes = [
        max(0, block * d.randint(1, 2) - int(sum(pad))) + d.maybe(0.05) for block, pad in zip(blocks, pads, strict=True)
    ]
    return [(d.size(), *sizes, *d.shape(0, 2)), blocks, pads]


def _batch_to_space_nd(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(1, 2)
    blocks = d.ints(count, 1, 3)
    sizes = [max(1, size) for size in d.sizes(count)]
    crops = np.array([d.ints(2, 0, block * size // 2) for block, size in zip(blocks, sizes, strict=True)]).reshape(
        -1, 2
    )
    return [(d.randint(1, 2) * math.prod(blocks) + d.maybe(0.1), *sizes, *d.shape(0, 2)), blocks, crops]


def _space_to_batch(d: Draw, a: Attrs) -> list[Any]:
    block = a["block_size"] = d.choice((2, 2, 3))
    pads = np.array([d.ints(2, 0, 2) for _ in range(2)])
    sizes = [max(0, block * d.randint(1, 2) - int(sum(pad))) for pad in pads]
    return [(d.size(), *sizes, d.size()), pads]


def _batch_to_space(d: Draw, a: Attrs) -> list[Any]:
    block = a["block_size"] = d.choice((2, 2, 3))
    sizes = [max(1, d.size()), max(1, d.size())]
    crops = np.array([d.ints(2, 0, block * size // 2) for size in sizes])
    return [(d.randint(1, 2) * block**2, *sizes, d.size()), crops]


def _depth(d: Draw, a: Attrs) -> list[Any]:
    block = a["block_size"] = d.choice((2, 2, 3))
    a["data_format"] = b"NHWC" if d.maybe(0.8) else b"NCHW"
    return [(d.size(), d.size(), d.size(), block**2 * d.randint(1, 2) + d.maybe(0.1))]


def _space(d: Draw, a: Attrs) -> list[Any]:
    block = a["block_size"] = d.choice((2, 2, 3))
    a["data_format"] = b"NHWC" if d.maybe(0.8) else b"NCHW"
    return [(d.size(), block * d.randint(0, 2), block * d.randint(1, 2) + d.maybe(0.1), d.size())]


def _patches(d: Draw, a: Attrs) -> list[Any]:
    a["ksizes"] = [1, *d.ints(2, 1, 3), 1]
    a["strides"] = [1, *d.ints(2, 1, 2), 1]
    a["rates"] = [1, *d.ints(2, 1, 2), 1]
    return [(d.randint(1, 2), *d.ints(2, 3, 6), d.randint(1, 2))]


def _volumes(d: Draw, a: Attrs) -> list[Any]:
    a["ksizes"] = [1, *d.ints(3, 1, 2), 1]
    a["strides"] = [1, *d.ints(3, 1, 2), 1]
    return [(d.randint(1, 2), *d.ints(3, 2, 4), d.randint(1, 2))]


def _ends(d: Draw) -> tuple[float, float]:
    return d.choice(
        ((-1.0, 2.0), (0.0, 1.5), (-2.0, 0.0), (0.5, 2.0), (-2.0, -0.5), (-0.7, 0.3), (1.0, 1.0), (0.0, 0.0))
    )


def _bits(d: Draw, a: Attrs) -> None:
    a["num_bits"] = d.choice((8, 8, 2, 4, 5, 16, 1, 17))


def _fake_args(d: Draw, a: Attrs) -> list[Any]:
    _bits(d, a)
    a["min"], a["max"] = _ends(d)
    return [d.shape(0, 3)]


def _fake_args_grad(d: Draw, a: Attrs) -> list[Any]:
    return [*_fake_args(d, a)] * 2


def _fake_vars(d: Draw, a: Attrs) -> list[Any]:
    _bits(d, a)
    return [d.shape(0, 3), *_ends(d)]


def _fake_vars_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, *ends = _fake_vars(d, a)
    return [shape, shape, *ends]


def _fake_channels(d: Draw, a: Attrs) -> list[Any]:
    _bits(d, a)
    shape = tuple(max(1, size) for size in d.shape(1, 4))
    ends = [_ends(d) for _ in range(shape[-1])]
    return [shape, *([end[k] for end in ends] for k in (0, 1))]


def _fake_channels_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, *ends = _fake_channels(d, a)
    return [shape, shape, *ends]


def _quantize_old(d: Draw, a: Attrs) -> list[Any]:
    _bits(d, a)
    a["range_given"] = d.maybe()
    a["input_min"], a["input_max"] = _ends(d)
    return [d.shape(0, 2)]


def _quantize(d: Draw, a: Attrs) -> list[Any]:
    if "num_bits" in a:
        _bits(d, a)
    shape = tuple(max(1, size) for size in d.shape(1, 3))
    a["axis"] = d.choice((-1, -1, *range(len(shape))))
    if a["axis"] == -1:
        return [shape, *_ends(d)]
    ends = [_ends(d) for _ in range(shape[a["axis"]])]
    return [shape, *([end[k] for end in ends] for k in (0, 1))]


def _quantize_v3(d: Draw, a: Attrs) -> list[Any]:
    return [*_quantize(d, a), d.choice((8, 2, 5, 16))]


def _quantize_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, *ends = _quantize(d, a)
    return [shape, shape, *ends]


def _edits(d: Draw, a: Attrs) -> list[Any]:
    found: list[Any] = []
    for _ in range(2):
        rows = [(row, at) for row in range(2) for at in range(d.randint(0, 3))]
        found += [np.array(rows).reshape(-1, 2), d.ints(len(rows), 0, 2), [2, 3]]
    if a["T"] is dtypes.string:
        found[1], found[4] = (len(found[1]),), (len(found[4]),)
    return found


def _fingerprint(d: Draw, a: Attrs) -> list[Any]:
    return [d.shape(1, 3), b"farmhash64" if d.maybe(0.9) else b"odd"]


def _placeholder(d: Draw, a: Attrs) -> list[Any]:
    return []


def _parallel_concat(d: Draw, a: Attrs) -> list[Any]:
    a["N"], rest = d.choice((1, 2, 3)), d.shape(0, 2)
    a["shape"] = TensorShape([a["N"], *rest])
    return [(1, *rest)] * a["N"]


RECIPES = {
    "Fill": _fill, "Pack": _pack, "Unpack": _unpack, "ConcatV2": _concat, "Concat": _old_concat,
    "ConcatOffset": _concat_offset, "Split": _split, "SplitV": _split_v, "Tile": _tile, "TileGrad": _tile_grad,
    "Pad": _pad, "PadV2": _pad_v2, "MirrorPad": _mirror, "MirrorPadGrad": _mirror_grad, "Transpose": _transpose,
    "ConjugateTranspose": _transpose, "ReverseV2": _reverse_v2, "Reverse": _reverse,
    "ReverseSequence": _reverse_sequence, "Roll": _roll, "Shape": _shaped, "Size": _shaped, "Rank": _shaped,
    "Where": _shaped, "ShapeN": _shapes, "Reshape": _reshape, "ExpandDims": _expand_dims, "Squeeze": _squeeze,
    "EnsureShape": _ensure_shape, "InvertPermutation": _permutation, "UnravelIndex": _unravel, "Slice": _slice,
    "StridedSlice": _strided_slice, "StridedSliceGrad": _strided_slice_grad,
    "TensorStridedSliceUpdate": _strided_slice_update, "Gather": _gather, "GatherV2": _gather_v2,
    "GatherNd": _gather_nd, "ScatterNd": _scatter_nd, "SparseToDense": _sparse_to_dense,
    **dict.fromkeys(("InplaceAdd", "InplaceSub", "InplaceUpdate"), _inplace),
    **dict.fromkeys(("TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterAdd",
                     "TensorScatterUpdate", "ScatterNdNonAliasingAdd"), _scatter_into),
    "DynamicPartition": _partition, "DynamicStitch": _stitch, "ParallelDynamicStitch": _stitch, "OneHot": _one_hot,
    "LowerBound": _bounds, "UpperBound": _bounds, "Unique": _unique, "UniqueWithCounts": _unique,
    "UniqueV2": _unique_v2, "UniqueWithCountsV2": _unique_v2, "ListDiff": _list_diff,
    **dict.fromkeys(("MatrixDiagPart", "BatchMatrixDiagPart"), _matrix),
    **dict.fromkeys(("MatrixSetDiag", "BatchMatrixSetDiag"), _set_diag),
    **dict.fromkeys(("MatrixBandPart", "BatchMatrixBandPart"), _band_part), "DiagPart": _diag_part,
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), _diag_v2),
    **dict.fromkeys(("MatrixDiagPartV2", "MatrixDiagPartV3"), _diag_part_v2),
    **dict.fromkeys(("MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag_v2),
    "SpaceToBatchND": _space_to_batch_nd, "BatchToSpaceND": _batch_to_space_nd, "SpaceToBatch": _space_to_batch,
    "BatchToSpace": _batch_to_space, "DepthToSpace": _depth, "SpaceToDepth": _space, "ExtractImagePatches": _patches,
    "ExtractVolumePatches": _volumes, "FakeQuantWithMinMaxArgs": _fake_args,
    "FakeQuantWithMinMaxArgsGradient": _fake_args_grad, "FakeQuantWithMinMaxVars": _fake_vars,
    "FakeQuantWithMinMaxVarsGradient": _fake_vars_grad, "FakeQuantWithMinMaxVarsPerChannel": _fake_channels,
    "FakeQuantWithMinMaxVarsPerChannelGradient": _fake_channels_grad, "QuantizeAndDequantize": _quantize_old,
    "QuantizeAndDequantizeV2": _quantize, "QuantizeAndDequantizeV4": _quantize, "QuantizeAndDequantizeV3": _quantize_v3,
    "QuantizeAndDequantizeV4Grad": _quantize_grad, "EditDistance": _edits, "Fingerprint": _fingerprint,
    "Placeholder": _placeholder, "PlaceholderV2": _placeholder, "ParallelConcat": _parallel_concat,
}  # fmt: skip
