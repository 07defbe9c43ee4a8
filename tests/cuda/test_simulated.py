"""What Numba's simulator has to keep for our kernels to mean there what they mean on a GPU."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_kernels.cuda._launch import Kernel
from tenfold_kernels.cuda._runtime import runtime_of

if TYPE_CHECKING:
    from types import SimpleNamespace


class _MetElement:
    """An int32, for who asks what it is together with another thread."""

    def __init__(self) -> None:
        self._both = threading.Barrier(2)
        self._asked: set[int] = set()

    @property
    def dtype(self) -> np.dtype[Any]:
        thread = threading.get_ident()
        if thread not in self._asked:
            self._asked.add(thread)
            self._both.wait(30.0)
        return np.dtype(np.int32)


def test_threads_that_ask_at_once_share_an_array(gpu: SimpleNamespace, simulated: bool) -> None:
    if not simulated:
        pytest.skip("a GPU's threads ask for no memory")
    from tenfold_kernels.cuda._code import transpose

    runtime = runtime_of(gpu.device)
    x = runtime.to_device(np.array([[1, 2], [3, 4]], np.int32))
    out = runtime.empty(x.shape, x.dtype)
    kernel = Kernel(transpose.transposer(2, 2, _MetElement()), ("int64",) * 3 + ("int32*",) * 2)

    runtime.launch(kernel, 1, 2, (1, 2, 2, x, out))

    np.testing.assert_array_equal(out.to_host(), [[1, 3], [2, 4]])
