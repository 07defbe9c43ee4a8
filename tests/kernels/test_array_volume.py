"""Windows of volumes as channels, one by one; what is refused; what they take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import errors

F = np.float32


def filled(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=F).reshape(shape)


def run(ops: Any, x: np.ndarray, sizes: Any = (2, 2, 2), strides: Any = (1, 1, 1), same: bool = False) -> np.ndarray:
    return ops.run(  # type: ignore[no-any-return]
        "ExtractVolumePatches", [x], ksizes=[1, *sizes, 1], strides=[1, *strides, 1],
        padding=b"SAME" if same else b"VALID",
    )  # fmt: skip


def windows(x: np.ndarray, sizes: Any, strides: Any, same: bool) -> np.ndarray:
    n, *space, depth = x.shape
    outs, before = [], []
    for size, k, stride in zip(space, sizes, strides, strict=True):
        out = -(-size // stride) if same else max(0, 1 + (size - k) // stride)
        outs.append(out)
        before.append(max(0, (out - 1) * stride + k - size) // 2 if same else 0)
    found = np.zeros((n, *outs, *sizes, depth), x.dtype)
    for place in np.ndindex(*outs, *sizes):
        at = [
            out * stride - edge + inner
            for out, stride, edge, inner in zip(place[:3], strides, before, place[3:], strict=True)
        ]
        if all(0 <= i < size for i, size in zip(at, space, strict=True)):
            found[(slice(None), *place)] = x[(slice(None), *at)]
    return found.reshape(n, *outs, int(np.prod(sizes)) * depth)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 3, 1), (1, 2, 4)])
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 1, 3), (1, 3, 2)])
def test_windows_of_volumes(ops: Any, same: bool, sizes: Any, strides: Any) -> None:
    for shape in ((2, 3, 4, 5, 2), (1, 1, 2, 3, 1), (0, 3, 4, 4, 1), (1, 3, 4, 4, 0), (1, 0, 2, 2, 1)):
        x = filled(shape)
        wanted = windows(x, sizes, strides, same)
        found = run(ops, x, sizes, strides, same)
        assert (found.shape, found.tolist()) == (wanted.shape, wanted.tolist())


@pytest.mark.parametrize("name", ["ksizes", "strides"])
def test_windows_go_over_space_only(ops: Any, name: str) -> None:
    def with_values(values: list[int]) -> None:
        attrs = {"ksizes": [1] * 5, "strides": [1] * 5, "padding": b"VALID"} | {name: values}
        ops.run("ExtractVolumePatches", [filled((1, 2, 2, 2, 1))], **attrs)

    for values in ([2, 1, 1, 1, 1], [1, 1, 1, 1, 2]):
        text = f"{name} of batch and channels must be 1, got {values}"
        with pytest.raises(errors.UnimplementedError, match=re.escape(text)):
            with_values(values)
    for values in ([1, 0, 1, 1, 1], [1, 1, -1, 1, 1], [1, 1, 1, 1], [1] * 6):
        text = f"{name} must be 5 numbers above zero, got {values}"
        with pytest.raises(errors.InvalidArgumentError, match=re.escape(text)):
            with_values(values)


@pytest.mark.parametrize("shape", [(2, 2, 2, 1), (1, 1, 2, 2, 2, 1)])
def test_windows_are_of_volumes(ops: Any, shape: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^input must be 5-dimensional\[[0-9,]*2,2,2,1\]$"):
        run(ops, filled(shape))


def test_what_windows_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_wants(monkeypatch, 2 * (2 * 3 * 4) * 8 * 2 * 4, lambda: run(ops, filled((1, 3, 4, 5, 2))))
