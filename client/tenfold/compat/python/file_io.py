"""`tensorflow.python.lib.io.file_io`: the functions of tf.gfile under their other names."""

from __future__ import annotations

import os
import secrets
from typing import Any

from tenfold import gfile
from tenfold.gfile import Copy as copy
from tenfold.gfile import DeleteRecursively as delete_recursively
from tenfold.gfile import Exists as file_exists
from tenfold.gfile import FileStatistics, GFile
from tenfold.gfile import Glob as get_matching_files
from tenfold.gfile import IsDirectory as is_directory
from tenfold.gfile import ListDirectory as list_directory
from tenfold.gfile import MakeDirs as recursive_create_dir
from tenfold.gfile import MkDir as create_dir
from tenfold.gfile import Remove as delete_file
from tenfold.gfile import Rename as rename
from tenfold.gfile import Stat as stat
from tenfold.gfile import Walk as walk
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE

__all__ = [
    "FileIO",
    "FileStatistics",
    "atomic_write_string_to_file",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_exists",
    "filecmp",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
]


class FileIO(GFile):
    """A file whose mode has to be given."""

    def __init__(self, name: str, mode: str) -> None:
        super().__init__(name, mode)


def read_file_to_string(filename: str, binary_mode: bool = False) -> Any:
    """The content of a file: text, or bytes with `binary_mode`. Raises NotFoundError."""
    with GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: str, file_content: str | bytes) -> None:
    """Writes a file."""
    with GFile(filename, "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: str, contents: str | bytes, overwrite: bool = True) -> None:
    """Writes a file that appears whole or not at all. Raises AlreadyExistsError unless `overwrite`."""
    temporary = f"{filename}.tmp{secrets.token_hex(8)}"
    write_string_to_file(temporary, contents)
    try:
        gfile.Rename(temporary, filename, overwrite)
    except BaseException:
        gfile.Remove(temporary)
        raise


def get_file_size(filename: str) -> int:
    """Bytes of a file. Raises NotFoundError."""
    return stat(filename).length


def file_crc32(filename: str, block_size: int = 0) -> str:
    """The CRC-32 of a file, in hexadecimal."""
    import zlib

    return hex(zlib.crc32(read_file_to_string(filename, binary_mode=True)))


def filecmp(filename_a: str, filename_b: str) -> bool:
    """Whether two files have the same content. Raises NotFoundError."""
    with os_errors(os.fspath(filename_a)):
        return EVERYWHERE.same(file_path(filename_a), file_path(filename_b))
