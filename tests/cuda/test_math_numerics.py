"""CheckNumerics on a GPU, and what has no kernel there, with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels import registry

if TYPE_CHECKING:
    from types import SimpleNamespace


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_finite_numbers_get_through(gpu: SimpleNamespace, dtype: str) -> None:
    for shape in ((), (0,), (7,), (3, 5)):
        gpu.same("CheckNumerics", [np.ones(shape, dtype)], message=b"x")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("values", "found"), [([np.inf, 1], "Inf"), ([1, np.nan], "NaN"), ([np.nan, -np.inf, 0], "Inf and NaN")]
)
def test_others_are_an_error(gpu: SimpleNamespace, values: list[float], found: str, dtype: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^here : Tensor had {found} values$"):
        gpu.run("CheckNumerics", [np.array(values, dtype)], message=b"here")


@pytest.mark.parametrize(
    "op", ["FIFOQueueV2", "QueueEnqueueV2", "BarrierTakeMany", "Stage", "MapUnstage",
           "RecordInput", "ConditionalAccumulator", "MutexLock", "RandomShuffle", "ApplyAddSign"],
)  # fmt: skip
def test_an_absence_has_its_reason(op: str) -> None:
    found = registry.absence(op, "GPU")

    assert found is not None
    assert found.why
    assert not registry.has_kernel(op, "GPU")
