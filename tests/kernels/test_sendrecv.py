"""The edges between partitions have no kernels: the executors run them, wherever they are placed."""

from __future__ import annotations

import pytest

from tenfold_kernels import registry


@pytest.mark.parametrize("op", ["_Send", "_Recv", "_HostSend", "_HostRecv"])
def test_the_executor_runs_them(op: str) -> None:
    absence = registry.absence(op, "CPU")

    assert absence is not None
    assert absence.executor
    assert registry.devices_with_kernel(op, {}) == ("CPU", "GPU")
