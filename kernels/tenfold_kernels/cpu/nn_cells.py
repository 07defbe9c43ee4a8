"""Cells of recurrent networks as one op: LSTMs, a step or a whole sequence at a time, and GRUs; and their gradients.

The gates stand beside each other in the weights: input, cell, forget, output; in V2 input, forget, cell, output.
Outputs are fresh. Follows lstm_ops.cc and gru_ops.cc: what a clipped state hides from the gradient is not put back.
"""

# T steps, B batch, I inputs, C cells; xh is x and h side by side, [B, I + C]

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu._products import product
from tenfold_kernels.cpu.math import sigmoid
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Lstm(NamedTuple):
    """What the steps of one call share. The peepholes are None where there are none."""

    w: Array
    b: Array
    peepholes: tuple[Array, Array, Array] | None
    forget_bias: float
    clip: float
    #: The columns of the gates: input, cell, forget, output.
    gates: tuple[slice, slice, slice, slice]

    def step(self, x: Array, cs_prev: Array, h_prev: Array) -> tuple[Array, ...]:
        """i, cs, f, o, ci, co, h, each [B, C]."""
        xh = np.concatenate([x, h_prev], axis=1)
        all_gates = product(xh, self.w)
        all_gates += self.b
        of_i, of_ci, of_f, of_o = (all_gates[:, columns] for columns in self.gates)
        if self.peepholes is not None:
            of_i = of_i + cs_prev * self.peepholes[0]
            of_f = of_f + cs_prev * self.peepholes[1]
        i, ci = sigmoid(of_i), np.tanh(of_ci)
        f = sigmoid(of_f + of_f.dtype.type(self.forget_bias) if self.forget_bias else of_f)
        cs = ci * i
        cs += cs_prev * f
        if self.clip > 0:
            np.clip(cs, -self.clip, self.clip, out=cs)
        co = np.tanh(cs)
        o = sigmoid(of_o if self.peepholes is None else of_o + cs * self.peepholes[2])
        return i, cs, f, o, ci, co, o * co

    def step_back(
        self, cs_prev: Array, made: Sequence[Array], cs_grad: Array, h_grad: Array
    ) -> tuple[Array, Array, tuple[Array, Array, Array] | None]:
        """Of the state before, of all gates [B, 4C], and of the peepholes."""
        i, cs, f, o, ci, co = made
        one = o.dtype.type(1)
        do = o * (one - o) * h_grad * co
        dcs = (one - co * co) * h_grad * o + cs_grad
        if self.peepholes is not None:
            dcs += do * self.peepholes[2]
        dci = (one - ci * ci) * dcs * i
        df = f * (one - f) * dcs * cs_prev
        di = i * (one - i) * dcs * ci
        all_gates = np.empty((len(o), 4 * o.shape[1]), o.dtype)
        for columns, value in zip(self.gates, (di, dci, df, do), strict=True):
            all_gates[:, columns] = value
        before = dcs * f
        if self.peepholes is None:
            return before, all_gates, None
        before += di * self.peepholes[0]
        before += df * self.peepholes[1]
        return before, all_gates, ((di * cs_prev).sum(0), (df * cs_prev).sum(0), (do * cs).sum(0))


def _lstm(node: KernelNode, weights: Sequence[Array], inputs: int, cells: int) -> _Lstm:
    """`weights` are w, wci, wcf, wco and b. Raises InvalidArgumentError where they do not fit a step of so many inputs
    and cells.
    """
    w, *peepholes, b = weights
    if w.shape != (inputs + cells, 4 * cells):
        raise invalid(
            f"w matrix has shape {shape_text(w.shape)}; {inputs} inputs and {cells} cells need "
            f"{shape_text((inputs + cells, 4 * cells))}"
        )
    if b.shape != (4 * cells,):
        raise invalid(f"b must have {4 * cells} entries, four for each cell, got shape {shape_text(b.shape)}")
    uses = bool(node.attrs["use_peephole"])
    for name, value in zip(("wci", "wcf", "wco"), peepholes, strict=True):
        if uses and value.shape != (cells,):
            raise invalid(f"{name} must have an entry for each of {cells} cells, got shape {shape_text(value.shape)}")
    first, second, third, fourth = (slice(at * cells, (at + 1) * cells) for at in range(4))
    is_v2 = node.op.endswith("V2")
    return _Lstm(
        w,
        b,
        (peepholes[0], peepholes[1], peepholes[2]) if uses else None,
        float(node.attrs.get("forget_bias", 0.0)),
        float(node.attrs.get("cell_clip", 0.0)),
        (first, third, second, fourth) if is_v2 else (first, second, third, fourth),
    )


def _check_states(x: Array, cs_prev: Array, h_prev: Array, rank: int) -> tuple[int, int]:
    """How many inputs and cells there are."""
    if x.ndim != rank or cs_prev.ndim != 2:
        raise invalid(f"x must be {rank}D and cs_prev 2D, got {shape_text(x.shape)} and {shape_text(cs_prev.shape)}")
    batch, cells = cs_prev.shape
    if x.shape[-2] != batch or h_prev.shape != cs_prev.shape:
        raise invalid(
            f"x, cs_prev and h_prev must have one batch size and the states one shape: {shape_text(x.shape)}, "
            f"{shape_text(cs_prev.shape)}, {shape_text(h_prev.shape)}"
        )
    return x.shape[-1], cells


@kernel("LSTMBlockCell", T=FLOATING)
def build_lstm_cell(node: KernelNode) -> Compute:
    """x [B, I], states [B, C] → gates, states and output [B, C]."""

    def compute(x: Array, cs_prev: Array, h_prev: Array, *weights: Array) -> Any:
        inputs, cells = _check_states(x, cs_prev, h_prev, 2)
        return _lstm(node, weights, inputs, cells).step(x, cs_prev, h_prev)

    return compute


@kernel("LSTMBlockCellGrad", T=FLOATING)
def build_lstm_cell_grad(node: KernelNode) -> Compute:
    def compute(x: Array, cs_prev: Array, h_prev: Array, *rest: Array) -> Any:
        inputs, cells = _check_states(x, cs_prev, h_prev, 2)
        _check_made(cs_prev.shape, dict(zip((*_MADE, "cs_grad", "h_grad"), rest[5:], strict=True)))
        *made, cs_grad, h_grad = rest[5:]
        lstm = _lstm(node, rest[:5], inputs, cells)
        before, gates, peepholes = lstm.step_back(cs_prev, made, cs_grad, h_grad)
        return before, gates, *(peepholes or (np.zeros(cells, x.dtype) for _ in range(3)))

    return compute


def _check_made(shape: tuple[int, ...], named: dict[str, Array]) -> None:
    """What a gradient is told of the forward step has one shape. Raises InvalidArgumentError."""
    for name, value in named.items():
        if value.shape != shape:
            raise invalid(f"{name} must have shape {shape_text(shape)}, got {shape_text(value.shape)}")


#: What LSTMs hand to their gradients.
_MADE = ("i", "cs", "f", "o", "ci", "co")


def _steps(seq_len_max: Array, x: Array) -> int:
    """How many steps are to be made."""
    if seq_len_max.ndim:
        raise invalid(f"seq_len_max must be rank 0 but is rank {seq_len_max.ndim}")
    if x.ndim != 3:
        raise invalid("x must be 3D")
    count = int(seq_len_max)
    if not 0 <= count <= len(x):
        raise invalid(f"seq_len_max is {count}; x has {len(x)} steps")
    return count


@kernel("BlockLSTM", "BlockLSTMV2", T=FLOATING)
def build_block_lstm(node: KernelNode) -> Compute:
    """x [T, B, I] → gates, states and outputs [T, B, C]; zeros after the last step that is made."""

    def compute(seq_len_max: Array, x: Array, cs_prev: Array, h_prev: Array, *weights: Array) -> Any:
        count = _steps(seq_len_max, x)
        inputs, cells = _check_states(x, cs_prev, h_prev, 3)
        lstm = _lstm(node, weights, inputs, cells)
        outs = tuple(np.empty((*x.shape[:2], cells), x.dtype) for _ in range(7))
        cs, h = cs_prev, h_prev
        for t in range(count):
            made = lstm.step(x[t], cs, h)
            cs, h = made[1], made[6]
            for out, value in zip(outs, made, strict=True):
                out[t] = value
        for out in outs:
            out[count:] = 0
        return outs

    return compute


@kernel("BlockLSTMGrad", "BlockLSTMGradV2", T=FLOATING)
def build_block_lstm_grad(node: KernelNode) -> Compute:
    def compute(seq_len_max: Array, x: Array, cs_prev: Array, h_prev: Array, *rest: Array) -> Any:
        count = _steps(seq_len_max, x)
        inputs, cells = _check_states(x, cs_prev, h_prev, 3)
        lstm = _lstm(node, rest[:5], inputs, cells)
        _check_made((*x.shape[:2], cells), dict(zip((*_MADE, "h", "cs_grad", "h_grad"), rest[5:], strict=True)))
        *made, h, cs_grad, h_grad = rest[5:]
        w, cs = rest[0], made[1]
        x_grad, w_grad, b_grad = np.zeros_like(x), np.zeros_like(w), np.zeros_like(rest[4])
        peephole_grads = [np.zeros(cells, x.dtype) for _ in range(3)]
        to_cs, to_h = np.zeros_like(cs_prev), np.zeros_like(h_prev)
        w_turned = np.ascontiguousarray(w.T)
        for t in reversed(range(count)):
            cs_before, h_before = (cs[t - 1], h[t - 1]) if t else (cs_prev, h_prev)
            to_cs, gates, peepholes = lstm.step_back(
                cs_before, [value[t] for value in made], cs_grad[t] + to_cs, h_grad[t] + to_h
            )
            of_xh = product(gates, w_turned)
            x_grad[t], to_h = of_xh[:, :inputs], of_xh[:, inputs:]
            xh = np.concatenate([x[t], h_before], axis=1)
            w_grad += product(np.ascontiguousarray(xh.T), gates)
            b_grad += gates.sum(0)
            for total, value in zip(peephole_grads, peepholes or (), strict=False):
                total += value
        return x_grad, to_cs, np.ascontiguousarray(to_h), w_grad, *peephole_grads, b_grad

    return compute


def _check_gru(x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array) -> tuple[int, int]:
    """How many inputs and cells there are. Raises InvalidArgumentError where shapes do not fit."""
    if x.ndim != 2 or h_prev.ndim != 2 or len(x) != len(h_prev):
        raise invalid(f"x and h_prev must be 2D and of one batch: {shape_text(x.shape)}, {shape_text(h_prev.shape)}")
    inputs, cells = x.shape[1], h_prev.shape[1]
    wanted = {
        "w_ru": (w_ru, (inputs + cells, 2 * cells)),
        "w_c": (w_c, (inputs + cells, cells)),
        "b_ru": (b_ru, (2 * cells,)),
        "b_c": (b_c, (cells,)),
    }
    for name, (value, shape) in wanted.items():
        if value.shape != shape:
            raise invalid(
                f"{name} has shape {shape_text(value.shape)}; {inputs} inputs and {cells} cells need "
                f"{shape_text(shape)}"
            )
    return inputs, cells


@kernel("GRUBlockCell", T=FLOATING)
def build_gru_cell(node: KernelNode) -> Compute:
    """x [B, I], h [B, C] → r, u, c and the next h, each [B, C]."""

    def compute(x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array) -> Any:
        _, cells = _check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
        both = product(np.concatenate([x, h_prev], axis=1), w_ru)
        both += b_ru
        both = sigmoid(both)
        r, u = np.ascontiguousarray(both[:, :cells]), np.ascontiguousarray(both[:, cells:])
        c = product(np.concatenate([x, h_prev * r], axis=1), w_c)
        c += b_c
        np.tanh(c, out=c)
        return r, u, c, u * h_prev + (u.dtype.type(1) - u) * c

    return compute


@kernel("GRUBlockCellGrad", T=FLOATING)
def build_gru_cell_grad(node: KernelNode) -> Compute:
    def compute(x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array, *made: Array) -> Any:
        inputs, cells = _check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
        r, u, c, d_h = made
        _check_made(h_prev.shape, {"r": r, "u": u, "c": c, "d_h": d_h})
        one = u.dtype.type(1)
        d_c_bar = d_h * (one - u) * (one - c * c)
        of_xhr = product(d_c_bar, np.ascontiguousarray(w_c.T))
        d_hr = of_xhr[:, inputs:]
        d_both = np.empty((len(x), 2 * cells), x.dtype)
        d_both[:, :cells] = d_hr * h_prev * r * (one - r)
        d_both[:, cells:] = d_h * (h_prev - c) * u * (one - u)
        of_xh = product(d_both, np.ascontiguousarray(w_ru.T))
        d_x = of_xh[:, :inputs] + of_xhr[:, :inputs]
        d_h_prev = of_xh[:, inputs:] + d_hr * r + d_h * u
        return d_x, d_h_prev, d_c_bar, d_both

    return compute
