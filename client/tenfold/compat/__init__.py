"""`tf.compat`: strings as bytes or text, and the switches of TensorFlow 2 that a TensorFlow 1 program turns off.

`tenfold.compat.v1` is the whole namespace again, for programs that import `tensorflow.compat.v1`.
"""

from __future__ import annotations

import numbers
import os
from typing import Any, NoReturn

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


def no_eager_execution(what: str) -> NoReturn:
    """Raises NotImplementedError for `what`, which only eager execution has."""
    raise NotImplementedError(
        f"{what} needs eager execution, and Tenfold builds and runs graphs: leave it out, build the graph, and run it "
        "in a tf.Session, or iterate with a tf.data iterator's get_next()"
    )


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> NoReturn:
    """Raises NotImplementedError: there is no eager execution."""
    no_eager_execution("tf.enable_eager_execution")


def disable_v2_tensorshape() -> None:
    """Does nothing: `shape[0]` is a Dimension, as in TensorFlow 1.x."""


def enable_v2_tensorshape() -> NoReturn:
    """Raises NotImplementedError: programs of TensorFlow 1 count on Dimensions."""
    raise NotImplementedError(
        "shape[i] is a Dimension in Tenfold, as in TensorFlow 1: use tf.dimension_value(shape[i])"
    )


def disable_tensor_equality() -> None:
    """Does nothing: tensors are compared by identity, as in TensorFlow 1.x."""


def enable_tensor_equality() -> NoReturn:
    """Raises NotImplementedError: programs of TensorFlow 1 keep tensors in sets and dictionaries."""
    raise NotImplementedError("tensors are compared by identity in Tenfold, as in TensorFlow 1: use tf.equal(a, b)")


def dimension_value(dimension: Any) -> int | None:
    """The size of a Dimension or of a number; None for an unknown one."""
    from tenfold_core import tensor_shape

    return tensor_shape.dimension_value(dimension)


def dimension_at_index(shape: Any, index: int) -> Any:
    """The Dimension of a shape at that index, an unknown one of a shape of unknown rank."""
    from tenfold.compat.python import tensor_shape

    return tensor_shape.dimension_at_index(shape, index)


def __getattr__(name: str) -> Any:
    if name in ("v1", "forward_compatibility"):
        from importlib import import_module

        return import_module(f"tenfold.compat.{name}")
    if name in ("forward_compatible", "forward_compatibility_horizon"):
        from tenfold.compat import forward_compatibility

        return getattr(forward_compatibility, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
