"""Which Tenfold this is, and which Python runs it."""

from __future__ import annotations

import platform
from importlib import metadata


def build_info() -> dict[str, str]:
    """`version` of the installed distribution ("unknown" where there is none) and `python`'s."""
    try:
        version = metadata.version("tenfold")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return {"version": version, "python": platform.python_version()}
