"""The versions that matter between processes: ours, Python's, and those of the libraries on the wire."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from tenfold_core import protocol

#: Libraries whose versions may differ between two machines with a consequence.
_LIBRARIES = ("tenfold", "numpy", "protobuf", "grpcio")


def running_versions() -> dict[str, str]:
    """Name → version, of what is installed here, "missing" for what is not; and of the protocols that are spoken."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    spoken = {"links": protocol.links(), "calls": protocol.calls(), "REST": protocol.rest()}
    found["protocols"] = ", ".join(f"{name} {each.oldest}-{each.newest}" for name, each in spoken.items())
    return found
