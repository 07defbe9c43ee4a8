"""Which Tenfold and which Python."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING

from tenfold_core.build_info import build_info

if TYPE_CHECKING:
    import pytest


def test_it_is_the_installed_distribution() -> None:
    assert build_info() == {"version": metadata.version("tenfold"), "python": platform.python_version()}


def test_a_copy_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", refuse)

    assert build_info()["version"] == "unknown"
