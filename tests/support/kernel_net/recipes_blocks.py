"""What fits the ops of diagonals and blocks of arrays, and of quantized numbers. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]


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
    **dict.fromkeys(("MatrixDiagPart", "BatchMatrixDiagPart"), _matrix),
    **dict.fromkeys(("MatrixSetDiag", "BatchMatrixSetDiag"), _set_diag),
    **dict.fromkeys(("MatrixBandPart", "BatchMatrixBandPart"), _band_part),
    "DiagPart": _diag_part,
    **dict.fromkeys(("MatrixDiagV2", "MatrixDiagV3"), _diag_v2),
    **dict.fromkeys(("MatrixDiagPartV2", "MatrixDiagPartV3"), _diag_part_v2),
    **dict.fromkeys(("MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag_v2),
    "SpaceToBatchND": _space_to_batch_nd,
    "BatchToSpaceND": _batch_to_space_nd,
    "SpaceToBatch": _space_to_batch,
    "BatchToSpace": _batch_to_space,
    "DepthToSpace": _depth,
    "SpaceToDepth": _space,
    "ExtractImagePatches": _patches,
    "ExtractVolumePatches": _volumes,
    "FakeQuantWithMinMaxArgs": _fake_args,
    "FakeQuantWithMinMaxArgsGradient": _fake_args_grad,
    "FakeQuantWithMinMaxVars": _fake_vars,
    "FakeQuantWithMinMaxVarsGradient": _fake_vars_grad,
    "FakeQuantWithMinMaxVarsPerChannel": _fake_channels,
    "FakeQuantWithMinMaxVarsPerChannelGradient": _fake_channels_grad,
    "QuantizeAndDequantize": _quantize_old,
    "QuantizeAndDequantizeV2": _quantize,
    "QuantizeAndDequantizeV4": _quantize,
    "QuantizeAndDequantizeV3": _quantize_v3,
    "QuantizeAndDequantizeV4Grad": _quantize_grad,
    "EditDistance": _edits,
    "Fingerprint": _fingerprint,
    "Placeholder": _placeholder,
    "PlaceholderV2": _placeholder,
    "ParallelConcat": _parallel_concat,
}
