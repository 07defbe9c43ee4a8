"""How much free memory a kernel wants before it takes any: exactly so many bytes are enough, and one less is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors, memory_limits

if TYPE_CHECKING:
    from collections.abc import Callable


def assert_wants(monkeypatch: pytest.MonkeyPatch, size: int, run: Callable[[], Any]) -> None:
    """Asserts that `run` goes through with `size` bytes free, and is refused with one less."""
    with monkeypatch.context() as patch:
        for name in ("_SMALL", "_LARGE", "_RESERVE"):
            patch.setattr(memory_limits, name, 0)
        patch.setattr(memory_limits, "_granted", {})
        patch.setattr(memory_limits, "available", lambda: size)
        run()
        patch.setattr(memory_limits, "available", lambda: size - 1)
        with pytest.raises(errors.ResourceExhaustedError, match=f"{size - 1} are free"):
            run()
