"""The launcher of this machine, as every launcher."""

from __future__ import annotations

from .conformance import LauncherConformance


class TestLocal(LauncherConformance):
    name = "local"
