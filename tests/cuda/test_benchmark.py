"""benchmarks/cuda_torch.py measures what it can of torch, and says what it cannot. Torch is made up here."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SIZES = SimpleNamespace(copy_bytes=8, adam=4, softmax=(2, 3), chain=2, vector=8, matrix=2, steps=1, rounds=1)


@pytest.fixture
def cuda_torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    made_up = MagicMock()
    monkeypatch.setitem(sys.modules, "torch", made_up)
    monkeypatch.setitem(sys.modules, "torch.nn", made_up.nn)
    for name in ("cuda_torch", "cuda_models"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("cuda_torch")
    for name in ("cuda_torch", "cuda_models"):
        sys.modules.pop(name, None)


def once(step: Callable[[], Any], synchronize: Callable[[], None], repeat: int, rounds: int) -> float:
    step()
    return 1.0


@pytest.mark.parametrize("name", ["copy", "softmax cross-entropy", "mlp"])
def test_a_side_that_fails_is_named_and_the_others_are_measured(cuda_torch: Any, name: str) -> None:
    cuda_torch.torch.compile.side_effect = RuntimeError("no compiler\nand much more")
    missing: list[str] = []

    found = cuda_torch.seconds_of_row(name, SIZES, once, missing.append)

    assert found == {"torch eager": 1.0}
    assert missing == ([f"{name}, torch compile: RuntimeError: no compiler"] if name != "copy" else [])


def test_every_side_is_measured(cuda_torch: Any) -> None:
    found = cuda_torch.seconds_of_row("cnn", SIZES, once, pytest.fail)

    assert found == {"torch eager": 1.0, "torch compile": 1.0}
