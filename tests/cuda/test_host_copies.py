"""Copies between the host and a GPU give what was there when they were called, by streams that run late and anyhow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.fake_cupy import FakeGPU

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Elements: none, taken along with the command, pinned, beside the kernels, in several pieces.
SIZES = (0, 3, 50, 200, 1000)


def gpu_of(patch: pytest.MonkeyPatch, seed: int, **limits: int) -> FakeGPU:
    gpu = FakeGPU(patch, seed, **limits)
    for name, value in (("_DIRECT", 64), ("_PINNED_FROM", 64), ("_BESIDE", 512), ("_STAGED_PIECE", 1024)):
        patch.setattr(gpu.module, name, value)
    return gpu


def doubled(gpu: FakeGPU, x: DeviceArray) -> DeviceArray:
    """A kernel."""
    out: Any = gpu.empty(x.shape, x.dtype)
    given, made = (each.buffer.memory and each.buffer.memory.data.view(x.dtype) for each in (x, out))
    if given is not None:
        gpu.lane.stream.put(lambda: np.multiply(given, 2, out=made))
    return out  # type: ignore[no-any-return]


@pytest.mark.parametrize("pinned_bytes", [1 << 40, 4000, 0])
def test_what_is_copied_is_what_was_there(monkeypatch: pytest.MonkeyPatch, pinned_bytes: int) -> None:
    for seed in range(5):
        gpu = gpu_of(monkeypatch, seed, pinned_bytes=pinned_bytes)
        for step in range(3):
            for size in SIZES:
                source = np.arange(size) + step
                x = gpu.copies.to_device(source)
                source[...] = -1
                y = doubled(gpu, x)
                del x
                assert gpu.copies.to_host(y).tolist() == [2 * (number + step) for number in range(size)]


def test_feeds_that_nobody_waits_for_do_not_overwrite_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        gpu = gpu_of(monkeypatch, seed)
        made = []
        for step in range(6):
            made.append(doubled(gpu, gpu.copies.to_device(np.full(100, step))))

        assert [gpu.copies.to_host(each)[0] for each in made] == [2 * step for step in range(6)]


def test_a_scalar_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)

    assert gpu.copies.to_host(gpu.copies.to_device(np.array(7.0))).shape == ()


def test_what_is_kept_for_copies_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = gpu_of(monkeypatch, 0)
    gpu.copies.to_device(np.zeros(100))

    assert gpu.copies.give_back()
    assert not gpu.copies.give_back()
