"""The optimizers' updates in NumPy, made of the same scalar bodies: the stand-ins of updates.py and sparse_updates.py.

The text of a body in scalar.py works on whole arrays once its square root and maximum are NumPy's. Bodies that branch
on an element have no such form: `dense` and `sparse` give None for them, and their loops are compiled at once.
"""

from __future__ import annotations

import inspect
import linecache
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels import scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.arrays import Array

#: Bodies without a branch on an element → how many variables and slots they give.
_OUTPUTS = {
    "gradient_descent": 1,
    "momentum": 2,
    "keras_momentum": 2,
    "adagrad": 2,
    "adam": 3,
    "ada_max": 3,
    "rmsprop": 3,
    "centered_rmsprop": 4,
    "adadelta": 3,
}
#: What the bodies call, on arrays.
_NUMPY = {"math": SimpleNamespace(sqrt=np.sqrt), "max": np.maximum, "abs": np.abs}


@cache
def _in_numpy(name: str) -> Callable[..., Any]:
    names: dict[str, Any] = dict(_NUMPY)
    # the lines by themselves: inspect.getsource looks through all modules first, which a first step would wait for
    lines = linecache.getlines(scalar.__file__)[getattr(scalar, name).__code__.co_firstlineno - 1 :]
    exec("".join(inspect.getblock(lines)), names)
    body: Callable[..., Any] = names[name]
    return body


def _on_arrays(name: str) -> Callable[..., tuple[Array, ...]]:
    body = _in_numpy(name)
    if _OUTPUTS[name] == 1:
        return lambda *arguments: (body(*arguments),)
    return body


def _scalars(name: str, given: Sequence[Any]) -> Sequence[Any]:
    """What the body takes after the gradient, of what the loop is given: Adam's is prepared once a call."""
    if name != "adam":
        return given
    beta1_power, beta2_power, lr, beta1, beta2, epsilon, one, nesterov = given
    alpha = _in_numpy("adam_rate")(lr, beta1_power, beta2_power, one)
    return alpha, beta1, one - beta1, one - beta2, epsilon, nesterov


@cache
def dense(name: str) -> Callable[..., None] | None:
    """(var_N, slots_N…, grad_N, scalars…), in place; None where NumPy has no form of it."""
    if name not in _OUTPUTS:
        return None
    body, count = _on_arrays(name), _OUTPUTS[name]

    def update(*arguments: Any) -> None:
        given = arguments[: count + 1]
        for buffer, value in zip(given, body(*given, *_scalars(name, arguments[count + 1 :])), strict=False):
            buffer[...] = value

    return update


@cache
def sparse(name: str) -> Callable[..., int] | None:
    """(var_LW, slots_LW…, grad_KW, indices_K, scalars…) → the first bad position or −1; None as `dense`."""
    if name not in _OUTPUTS:
        return None
    body, count = _on_arrays(name), _OUTPUTS[name]

    def update(*arguments: Any) -> int:
        tables, grad_KW, indices_K = arguments[:count], arguments[count], arguments[count + 1]
        scalars = _scalars(name, arguments[count + 2 :])
        bad_K = (indices_K < 0) | (indices_K >= tables[0].shape[0])
        if bad_K.any():
            return int(bad_K.argmax())
        for chosen_M in _rounds(indices_K):
            rows_M = indices_K[chosen_M]
            values = body(*(table[rows_M] for table in tables), grad_KW[chosen_M], *scalars)
            for table, value_MW in zip(tables, values, strict=True):
                table[rows_M] = value_MW
        return -1

    return update


def _rounds(indices_K: Array) -> list[Array]:
    """Positions of the indices: of each row's first mention, of its second, and so on."""
    order_K = np.argsort(indices_K, kind="stable")
    sorted_K = indices_K[order_K]
    starts_K = np.concatenate(([True], sorted_K[1:] != sorted_K[:-1])) if sorted_K.size else np.zeros(0, bool)
    positions_K = np.arange(sorted_K.size)
    mention_K = positions_K - np.maximum.accumulate(np.where(starts_K, positions_K, 0))
    return [order_K[mention_K == number] for number in range(int(mention_K.max(initial=-1)) + 1)]
