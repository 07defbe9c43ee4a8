"""Shape functions of recurrent cells that are one op, and of CTC. The others are in shape_fns.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]


def _dim(shape: TensorShape, axis: int, rank: int) -> int | None:
    return shape.with_rank(rank).as_list()[axis] if shape.ndims is not None else None


def cell(c: ShapeContext) -> Shapes:
    """As many rows as x has, as many columns as the state before."""
    return [TensorShape([_dim(c.input(0), 0, 2), _dim(c.input(1), 1, 2)])] * c.output_count


def lstm_cell_grad(c: ShapeContext) -> Shapes:
    rows, cells = _dim(c.input(0), 0, 2), _dim(c.input(1), 1, 2)
    gates = None if cells is None else 4 * cells
    return [TensorShape([rows, cells]), TensorShape([rows, gates]), *([TensorShape([cells])] * 3)]


def gru_cell_grad(c: ShapeContext) -> Shapes:
    state = TensorShape([_dim(c.input(0), 0, 2), _dim(c.input(1), 1, 2)])
    both = TensorShape([_dim(c.input(0), 0, 2), _dim(c.input(2), 1, 2)])
    return [c.input(0), state, state, both]


def block_lstm(c: ShapeContext) -> Shapes:
    """[steps, batch, cells] seven times: four of the bias belong to a cell."""
    bias = _dim(c.input(8), 0, 1)
    if bias is not None and bias % 4:
        raise ValueError(f"Dimension size must be evenly divisible by 4 but is {bias}")
    x = c.input(1)
    steps, batch = _dim(x, 0, 3), _dim(x, 1, 3)
    return [TensorShape([steps, batch, None if bias is None else bias // 4])] * 7


def block_lstm_grad(c: ShapeContext) -> Shapes:
    """Those of the inputs but the first."""
    return [c.input(number) for number in range(1, 9)]


def ctc_loss(c: ShapeContext) -> Shapes:
    """Inputs [steps, batch, classes], a label for each index, a length for each of the batch."""
    inputs = c.input(0).with_rank(3)
    indices, values, lengths = c.input(1).with_rank(2), c.input(2).with_rank(1), c.input(3).with_rank(1)
    _same(_dim(indices, 0, 2), _dim(values, 0, 1))
    batch = _same(_dim(inputs, 1, 3), _dim(lengths, 0, 1))
    return [TensorShape([batch]), inputs]


def ctc_greedy(c: ShapeContext) -> Shapes:
    batch = _batch(c)
    return [TensorShape([None, 2]), unknown_shape(1), TensorShape([2]), TensorShape([batch, 1])]


def ctc_beam(c: ShapeContext) -> Shapes:
    batch, paths = _batch(c), int(c.attrs["top_paths"])
    return [
        *([TensorShape([None, 2])] * paths),
        *([unknown_shape(1)] * paths),
        *([TensorShape([2])] * paths),
        TensorShape([batch, paths]),
    ]


def _batch(c: ShapeContext) -> int | None:
    inputs, lengths = c.input(0).with_rank(3), c.input(1).with_rank(1)
    return _same(_dim(inputs, 1, 3), _dim(lengths, 0, 1))


def _same(a: int | None, b: int | None) -> int | None:
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return b if a is None else a
