"""`tf.compat`: strings as bytes or text, and the switches of TensorFlow 2 that a TensorFlow 1 program turns off.

`tenfold.compat.v1` is the whole namespace again, for programs that import `tensorflow.compat.v1`.
"""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

bytes_or_text_types = (bytes, str)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)


def as_bytes(bytes_or_text: str | bytes, encoding: str = "utf-8") -> bytes:
    """`bytes_or_text` as bytes. Raises TypeError for anything but bytes and text."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str:
    """`bytes_or_text` as text. Raises TypeError for anything but bytes and text."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any) -> str:
    """Text of anything: bytes are decoded, the rest goes through `str`."""
    return as_text(value) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as text; anything else unchanged."""
    return as_str_any(os.fspath(path)) if hasattr(path, "__fspath__") else path


# Tenfold has graph mode only: functions that disable TensorFlow 2 do nothing, those that enable it raise.


def disable_v2_behavior() -> None:
    """Does nothing: Tenfold behaves like TensorFlow 1.x."""


def disable_eager_execution() -> None:
    """Does nothing: there is no eager execution."""


def enable_v2_behavior() -> None:
    """Raises NotImplementedError: there is no eager execution."""
    raise NotImplementedError("Tenfold builds and runs graphs; there is no eager execution to turn on")


def disable_control_flow_v2() -> None:
    """Does nothing: loops and conditionals use Switch and Merge, as in TensorFlow 1.x."""


def enable_control_flow_v2() -> None:
    """Raises NotImplementedError: the client builds no functional loops."""
    raise NotImplementedError("Tenfold's client builds loops and conditionals of version 1 only")


def control_flow_v2_enabled() -> bool:
    """Always False."""
    return False


def executing_eagerly() -> bool:
    """Always False."""
    return False


def __getattr__(name: str) -> Any:
    if name == "v1":
        from importlib import import_module

        return import_module("tenfold.compat.v1")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
