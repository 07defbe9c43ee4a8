"""Copies of many small arrays are few launches, and copy what single ones copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support import dry_gpu
from support.kernel_runs import DEVICE
from tenfold_kernels.cuda import joined_copies
from tenfold_kernels.cuda._runtime import runtime

GPU = DEVICE.replace("CPU", "GPU")


@pytest.mark.parametrize("count", [0, 2, 9, 70])
def test_each_array_is_copied(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    gpu = runtime(0)
    launched: list[int] = []
    launch = joined_copies.launch_over

    def noted(kernel: Any, *arguments: Any) -> None:
        launched.append(len(kernel.types))
        launch(kernel, *arguments)

    monkeypatch.setattr(joined_copies, "launch_over", noted)
    monkeypatch.setattr(joined_copies, "SMALL", 24)
    # none, words, no whole words, large ones
    sizes = [0 if number == 5 else 1 + number % 4 for number in range(count)]
    types: list[Any] = [np.float32, np.float64, np.int8, np.complex64]
    values = [np.arange(size).astype(types[number % 4]) for number, size in enumerate(sizes)]
    pairs = [(gpu.to_device(value), gpu.to_device(np.zeros_like(value))) for value in values]

    joined_copies.copy_all(gpu, pairs)

    if not dry_gpu.is_on():
        for value, (_, copied) in zip(values, pairs, strict=True):
            np.testing.assert_array_equal(copied.to_host(), value)
    joined = sum(0 < value.nbytes <= 24 and value.nbytes % 4 == 0 for value in values)
    assert len(launched) == (-(-joined // 32) if joined > 2 else 0)


def test_a_part_that_begins_between_words_is_copied_alone() -> None:
    gpu = runtime(0)
    whole = gpu.to_device(np.arange(16, dtype=np.float16))
    parts = [(whole.rows(at, at + 4), gpu.empty((4,), whole.dtype)) for at in (1, 2, 3, 4, 6)]

    joined_copies.copy_all(gpu, parts)

    if not dry_gpu.is_on():
        assert [copied.to_host()[0] for _, copied in parts] == [1, 2, 3, 4, 6]
