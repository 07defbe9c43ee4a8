"""`tf.load_op_library` and its like: compiled kernels of TensorFlow's cannot be loaded, and this says what can be done.

A kernel library is compiled against TensorFlow's C++ headers; Tenfold's kernels are Python and Numba.
"""

from __future__ import annotations

from typing import NoReturn

from tenfold_core import errors

__all__ = ["load_file_system_library", "load_library", "load_op_library"]

_INSTEAD = (
    "it is compiled for TensorFlow's own kernels, and Tenfold has none of those. Write the op with tf.py_func (and "
    "tf.custom_gradient for its gradient), or add a kernel to Tenfold: CONTRIBUTING.md, 'Adding an op'."
)


def load_op_library(library_filename: str) -> NoReturn:
    """Raises UnimplementedError that says what to do instead, NotFoundError for a file that is not there."""
    _refuse(library_filename, f"the op library {library_filename} cannot be loaded: {_INSTEAD}")


def load_library(library_location: str) -> NoReturn:
    """As `load_op_library`."""
    _refuse(library_location, f"the library {library_location} cannot be loaded: {_INSTEAD}")


def load_file_system_library(library_filename: str) -> NoReturn:
    """As `load_op_library`, for file systems."""
    _refuse(
        library_filename,
        f"the file system {library_filename} cannot be loaded: Tenfold reads local files only. Mount it, or copy the "
        "files.",
    )


def _refuse(path: str, why: str) -> NoReturn:
    from tenfold import gfile

    if not gfile.Exists(path):
        raise errors.NotFoundError(None, None, f"{path}: cannot open shared object file: No such file or directory")
    raise errors.UnimplementedError(None, None, why)
