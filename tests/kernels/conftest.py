"""The fixture `ops`: `ops.run("Add", [x, y])` infers type attrs from the inputs; anything else is given by name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from support.kernel_runs import DEVICE, as_value, build, check_outputs, handle, run_op, variable


@pytest.fixture(scope="session")
def ops() -> SimpleNamespace:
    """The functions above under one name, as all tests of kernels use them."""
    return SimpleNamespace(
        run=run_op, build=build, check=check_outputs, value=as_value, variable=variable, handle=handle, device=DEVICE
    )
