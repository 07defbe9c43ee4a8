"""Functions of `tensorflow.python.framework.device` beside its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Callable


def merge_device(spec: Any) -> Callable[[Any], str]:
    """A device function that completes what a device scope says by what an operation has already."""
    outer = DeviceSpec.from_string(spec or "") if isinstance(spec, str) or spec is None else spec

    def of(node: Any) -> str:
        return outer.make_merged_spec(DeviceSpec.from_string(node.device or "")).to_string()

    return of
