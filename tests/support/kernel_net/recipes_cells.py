"""What fits the ops of norms, cells, alignments and the largest of a row. See cases.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]


def _lrn(d: Draw, a: Attrs) -> list[Any]:
    a["depth_radius"], a["bias"] = d.choice((5, 1, 2, 0)), d.choice((1.0, 2.0))
    a["alpha"], a["beta"] = d.choice((1.0, 0.1)), d.choice((0.5, 0.75, 1.0, 0.3))
    return [d.shape(4, 4)]


def _lrn_grad(d: Draw, a: Attrs) -> list[Any]:
    return _lrn(d, a) * 3


def _norm_shape(d: Draw, a: Attrs) -> tuple[tuple[int, ...], int, Any]:
    a["data_format"] = b"NHWC"
    a["epsilon"] = d.choice((0.0001, 0.1))
    shape = (d.randint(1, 2), *d.ints(2, 1, 3), d.randint(1, 3))
    return shape, shape[3], d.floats((shape[3],), 0.3, 2)


def _batch_norm(d: Draw, a: Attrs) -> list[Any]:
    shape, depth, positive = _norm_shape(d, a)
    if "U" in a:
        a["U"] = dtypes.float32
    if a["is_training"] and d.maybe(0.8):
        a["exponential_avg_factor"] = 1.0
        return [shape, (depth,), (depth,), (0,), (0,)]
    if a["is_training"]:
        a["exponential_avg_factor"] = d.choice((0.3, 0.5))
    return [shape, (depth,), (depth,), (depth,), positive]


def _batch_norm_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, depth, positive = _norm_shape(d, a)
    if "U" in a:
        a["U"] = dtypes.float32
    scale = d.floats((depth,), 0.3, 2)
    return [shape, shape, scale, (depth,), positive]


def _batch_norm_grad_v3(d: Draw, a: Attrs) -> list[Any]:
    return [*_batch_norm_grad(d, a), (0,)]


def _global_norm(d: Draw, a: Attrs) -> list[Any]:
    shape = (d.randint(1, 2), *d.sizes(2), d.randint(1, 3))
    a["variance_epsilon"] = d.choice((0.001, 0.1))
    return [shape, (shape[3],), d.floats((shape[3],), 0.3, 2), (shape[3],), (shape[3],)]


def _global_norm_grad(d: Draw, a: Attrs) -> list[Any]:
    shape, mean, variance, gamma, _ = _global_norm(d, a)
    return [shape, mean, variance, gamma, shape]


def _cell_sizes(d: Draw) -> tuple[int, int, int]:
    return d.randint(1, 2), d.randint(1, 2), d.randint(1, 3)


def _lstm(d: Draw, a: Attrs) -> tuple[list[Any], int, int, int]:
    batch, inputs, cells = _cell_sizes(d)
    if "forget_bias" in a:
        a["forget_bias"] = d.choice((1.0, 0.0, 0.5))
    if "cell_clip" in a:
        a["cell_clip"] = d.choice((3.0, -1.0, 0.0, 0.4))
    weights = [(inputs + cells, 4 * cells), *[(cells,)] * 3, (4 * cells,)]
    return [(batch, inputs), (batch, cells), (batch, cells), *weights], batch, inputs, cells


def _lstm_cell(d: Draw, a: Attrs) -> list[Any]:
    return _lstm(d, a)[0]


def _lstm_cell_grad(d: Draw, a: Attrs) -> list[Any]:
    items, batch, _, cells = _lstm(d, a)
    return [*items, *[d.floats((batch, cells), 0.1, 0.9) for _ in range(8)]]


def _lstm_block(d: Draw, a: Attrs) -> list[Any]:
    items, batch, inputs, _ = _lstm(d, a)
    steps = d.randint(1, 3)
    return [steps, (steps, batch, inputs), *items[1:]]


def _lstm_block_grad(d: Draw, a: Attrs) -> list[Any]:
    items, batch, inputs, cells = _lstm(d, a)
    steps = d.randint(1, 3)
    made = [d.floats((steps, batch, cells), 0.1, 0.9) for _ in range(9)]
    return [d.choice((steps, steps - 1)), (steps, batch, inputs), *items[1:], *made]


def _gru(d: Draw, a: Attrs) -> list[Any]:
    batch, inputs, cells = _cell_sizes(d)
    weights = [(inputs + cells, 2 * cells), (inputs + cells, cells), (2 * cells,), (cells,)]
    return [(batch, inputs), (batch, cells), *weights]


def _gru_grad(d: Draw, a: Attrs) -> list[Any]:
    items = _gru(d, a)
    return [*items, *[d.floats(items[1], 0.1, 0.9) for _ in range(4)]]


def _ctc_loss(d: Draw, a: Attrs) -> list[Any]:
    steps, batch, classes = d.randint(2, 5), d.randint(1, 3), d.randint(2, 4)
    rows = [(row, at) for row in range(batch) for at in range(d.randint(0, 3))]
    labels = d.ints(len(rows), 0, classes - 2 + d.maybe(0.05))
    lengths = d.ints(batch, 1 if d.maybe(0.8) else 0, steps + d.maybe(0.05))
    return [(steps, batch, classes), np.array(rows).reshape(-1, 2), labels, lengths]


def _ctc_decode(d: Draw, a: Attrs) -> list[Any]:
    steps, batch, classes = d.randint(2, 5), d.randint(1, 3), d.randint(2, 4)
    if "blank_index" in a:
        a["blank_index"] = d.choice((-1, -1, 0, classes - 1, -classes))
    if "top_paths" in a:
        a["beam_width"], a["top_paths"] = d.choice(((1, 1), (3, 2), (9, 3), (2, 1)))
    return [(steps, batch, classes), d.ints(batch, 0, steps + d.maybe(0.1))]


def _tree(d: Draw, a: Attrs) -> list[Any]:
    steps, batch, beams = d.randint(1, 4), d.randint(1, 2), d.randint(1, 3)
    shape = (steps, batch, beams)
    ids = np.array(d.ints(math.prod(shape), 0, 9)).reshape(shape)
    parents = np.array(d.ints(math.prod(shape), 0, beams - 1 + d.maybe(0.1))).reshape(shape)
    if d.maybe(0.1):
        parents.ravel()[-1] = -1
    return [ids, parents, d.ints(batch, 0, steps + 1), d.choice((0, 3, 10))]


def _formats(d: Draw, a: Attrs) -> None:
    a["src_format"], a["dst_format"] = d.choice(
        (
            (b"NHWC", b"NCHW"),
            (b"NCHW", b"NHWC"),
            (b"NDHWC", b"NCDHW"),
            (b"NHWC", b"HWNC"),
            (b"NHWC", b"NCWW"),
            (b"NHW", b"NHWC"),
        )
    )


def _dim_map(d: Draw, a: Attrs) -> list[Any]:
    _formats(d, a)
    return [d.ints(d.randint(0, 5), -4, 3)]


def _permute(d: Draw, a: Attrs) -> list[Any]:
    _formats(d, a)
    count = len(a["src_format"])
    return [d.choice(((count,), (count, 2), (count - 2,), (count - 2, 2)))]


def _nth(d: Draw, a: Attrs) -> list[Any]:
    shape = (*d.shape(0, 2), d.randint(1, 5))
    return [shape, d.randint(0, shape[-1] - 1 + d.maybe(0.1))]


def _top_k(d: Draw, a: Attrs) -> list[Any]:
    shape = (*d.shape(0, 2), d.randint(0, 5))
    x = np.round(d.floats(shape)) if d.maybe() else d.floats(shape)
    k = d.randint(0, shape[-1]) + d.maybe(0.1)
    a["sorted"] = True  # in which order others come is the library's
    if "k" in a:
        a["k"] = k
        return [x]
    return [x, k]


def _in_top_k(d: Draw, a: Attrs) -> list[Any]:
    rows, classes = d.size(), d.randint(1, 4)
    k = d.randint(0, classes + 1)
    x = np.round(d.floats((rows, classes)))
    if rows and d.maybe(0.2):
        x[0, 0] = d.choice((math.nan, math.inf))
    items = [x, d.ints(rows, 0, classes - 1 + d.maybe(0.2))]
    if "k" in a:
        a["k"] = k
        return items
    return [*items, k]


RECIPES = {
    "LRN": _lrn,
    "LRNGrad": _lrn_grad,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_norm),
    **dict.fromkeys(("FusedBatchNormGrad", "FusedBatchNormGradV2"), _batch_norm_grad),
    "FusedBatchNormGradV3": _batch_norm_grad_v3,
    "BatchNormWithGlobalNormalization": _global_norm,
    "BatchNormWithGlobalNormalizationGrad": _global_norm_grad,
    "LSTMBlockCell": _lstm_cell,
    "LSTMBlockCellGrad": _lstm_cell_grad,
    "BlockLSTM": _lstm_block,
    "BlockLSTMV2": _lstm_block,
    "BlockLSTMGrad": _lstm_block_grad,
    "BlockLSTMGradV2": _lstm_block_grad,
    "GRUBlockCell": _gru,
    "GRUBlockCellGrad": _gru_grad,
    "CTCLoss": _ctc_loss,
    "CTCGreedyDecoder": _ctc_decode,
    "CTCBeamSearchDecoder": _ctc_decode,
    "GatherTree": _tree,
    "DataFormatDimMap": _dim_map,
    "DataFormatVecPermute": _permute,
    "NthElement": _nth,
    "TopK": _top_k,
    "TopKV2": _top_k,
    "InTopK": _in_top_k,
    "InTopKV2": _in_top_k,
}
