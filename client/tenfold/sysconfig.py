"""`tf.sysconfig`: how TensorFlow's C++ was compiled. There is none here, and what asks for it is told so."""

from __future__ import annotations

from typing import NoReturn

from tenfold.versions import CXX11_ABI_FLAG, MONOLITHIC_BUILD

__all__ = [
    "CXX11_ABI_FLAG",
    "MONOLITHIC_BUILD",
    "get_compile_flags",
    "get_include",
    "get_lib",
    "get_link_flags",
]


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "Tenfold has no C++ headers and no library to link: ops that are compiled against TensorFlow cannot be loaded. "
        "Write the op with tf.py_func, or add a kernel to Tenfold: CONTRIBUTING.md, 'Adding an op'."
    )


def get_include() -> NoReturn:
    """Raises NotImplementedError."""
    _refuse()


def get_lib() -> NoReturn:
    """Raises NotImplementedError."""
    _refuse()


def get_compile_flags() -> NoReturn:
    """Raises NotImplementedError."""
    _refuse()


def get_link_flags() -> NoReturn:
    """Raises NotImplementedError."""
    _refuse()
