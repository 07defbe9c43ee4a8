"""Tensors under session handles: what a handle says, how many there may be, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_runs import DEVICE, Steps
from tenfold_core import dtypes, errors
from tenfold_kernels.cpu import data_flow_session

F32 = dtypes.float32


@pytest.fixture
def steps() -> Steps:
    return Steps()


def held(steps: Steps, handle: Any, dtype: Any = F32) -> Any:
    return steps("GetSessionTensor", handle, dtype=dtype)


def test_a_tensor_is_kept_under_its_handle_until_it_is_deleted(steps: Steps) -> None:
    first = steps("GetSessionHandle", np.float32([1, 2]), name="n")
    second = steps("GetSessionHandle", np.float32([3]), name="n")
    assert [first[()], second[()]] == [f"n;{number};{DEVICE}".encode() for number in range(2)]
    assert held(steps, first).tolist() == [1, 2]
    assert held(steps, second).tolist() == [3]

    assert steps("DeleteSessionTensor", first) is None

    message = f"^The tensor with handle 'n;0;{DEVICE}' is not in the session store.$"
    for op, attrs in (("GetSessionTensor", {"dtype": F32}), ("DeleteSessionTensor", {})):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            steps(op, first, **attrs)
    assert held(steps, second).tolist() == [3]


def test_a_tensor_is_of_the_type_that_it_has(steps: Steps) -> None:
    handle = steps("GetSessionHandle", np.float32([1]))
    with pytest.raises(errors.InvalidArgumentError, match=r"^The tensor of this handle is float32, not int32$"):
        held(steps, handle, dtypes.int32)


def test_there_are_so_many_tensors_at_most(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_flow_session.MAX_SESSION_TENSORS == 65536
    monkeypatch.setattr(data_flow_session, "MAX_SESSION_TENSORS", 2)
    first, _ = (steps("GetSessionHandle", np.float32(0)) for _ in range(2))
    with pytest.raises(errors.ResourceExhaustedError, match=r"^More than 2 tensors are kept under session handles"):
        steps("GetSessionHandle", np.float32(0))
    steps("DeleteSessionTensor", first)
    steps("GetSessionHandle", np.float32(0))
