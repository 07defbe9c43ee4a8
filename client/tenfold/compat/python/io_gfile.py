"""`tf.io.gfile`: the functions of tf.gfile under TensorFlow 2's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gfile import Copy as copy
from tenfold.gfile import DeleteRecursively as rmtree
from tenfold.gfile import Exists as exists
from tenfold.gfile import GFile
from tenfold.gfile import Glob as glob
from tenfold.gfile import IsDirectory as isdir
from tenfold.gfile import ListDirectory as listdir
from tenfold.gfile import MakeDirs as makedirs
from tenfold.gfile import MkDir as mkdir
from tenfold.gfile import Remove as remove
from tenfold.gfile import Rename as rename
from tenfold.gfile import Stat as stat
from tenfold.gfile import Walk as _walk

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "GFile",
    "copy",
    "exists",
    "glob",
    "isdir",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]


def walk(top: str, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """`tf.gfile.Walk`. `onerror` is accepted and ignored, as a folder that cannot be read is passed over."""
    return _walk(top, topdown)
