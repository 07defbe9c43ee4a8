"""Kernels compute as IEEE says and warn of nothing, whatever the caller's error state is."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tenfold_services.worker import numpy_errstate
from tenfold_services.worker.numpy_errstate import new_context


def wrong(_: object = None) -> list[bool]:
    zero, large = np.zeros(1, np.float32), np.full(1, 3e38, np.float32)
    return [bool(np.isinf(1 / zero)[0]), bool(np.isnan(zero / zero)[0]), bool(np.isinf(large * large)[0])]


def test_no_warning_and_no_error_inside() -> None:
    context = new_context()
    with np.errstate(all="raise"):
        for _ in range(3):
            assert context.run(wrong) == [True, True, True]
        with pytest.raises(FloatingPointError):
            wrong()


def test_a_context_serves_any_thread() -> None:
    context, found = new_context(), []
    for _ in range(2):
        thread = threading.Thread(target=lambda: found.append(context.run(wrong, None)))
        thread.start()
        thread.join(30)
    assert found == [[True, True, True]] * 2


def test_before_numpy_2_the_state_is_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_errstate.np, "__version__", "1.26.4")
    context = new_context()
    with np.errstate(all="raise"):
        assert context.run(wrong) == [True, True, True]
        assert np.geterr()["divide"] == "raise", "it was left again"
