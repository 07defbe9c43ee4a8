"""`tf.gfile`: files and folders of this machine and of stores (`s3://…`), with TensorFlow's names and errors.

Errors are those of tenfold_core/errors.py (NotFoundError for a file that is not there, UnimplementedError for a scheme
that nothing here opens, …). Follows TF 1.15's lib/io/file_io.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

__all__ = [
    "Copy",
    "DeleteRecursively",
    "Exists",
    "FastGFile",
    "GFile",
    "Glob",
    "IsDirectory",
    "ListDirectory",
    "MakeDirs",
    "MkDir",
    "Open",
    "Remove",
    "Rename",
    "Stat",
    "Walk",
]

_READ = ("r", "r+", "a+", "w+")
_WRITE = ("w", "a", "r+", "a+", "w+")


class GFile:
    """A file that is opened by the first call that needs it, so the constructor raises no file system error.

    `mode` is as for `open`; with "b", reads give bytes, else text. A reader does not see what a writer has buffered:
    `flush` the writer first. Raises InvalidArgumentError for an unknown mode, PermissionDeniedError for
    a read or write that the mode does not allow.
    """

    def __init__(self, name: str | os.PathLike[str], mode: str = "r") -> None:
        plain = mode.replace("b", "")
        if plain not in (*_READ, *_WRITE):
            raise errors.InvalidArgumentError(None, None, "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._name, self._mode, self._plain, self._is_binary = os.fspath(name), mode, plain, "b" in mode
        self._reader: IO[bytes] | None = None
        self._writer: IO[bytes] | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def mode(self) -> str:
        return self._mode

    def size(self) -> int:
        """Bytes of the file on the disk."""
        return Stat(self._name).length

    def write(self, file_content: str | bytes) -> None:
        self._for_writing().write(_as_bytes(file_content))

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes, or the rest."""
        return self._decoded(self._for_reading().read(n))

    def readline(self) -> Any:
        """The next line with its end; empty at the end."""
        return self._decoded(self._for_reading().readline())

    def readlines(self) -> list[Any]:
        return list(self)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Moves the reader. `position` is the old name of `offset`."""
        if offset is None and position is None:
            raise TypeError("seek(): offset argument required")
        if offset is not None and position is not None:
            raise TypeError("seek(): offset and position may not be set simultaneously.")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError(
                None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2."
            )
        with os_errors(self._name):
            self._for_reading().seek((position or 0) if offset is None else offset, whence)

    def tell(self) -> int:
        return (self._for_reading() if self._plain in _READ else self._for_writing()).tell()

    def seekable(self) -> bool:
        return True

    def flush(self) -> None:
        """Passes what was written to the operating system, or to the store: of a large file only `close` does that."""
        if self._writer is not None:
            with os_errors(self._name):
                self._writer.flush()

    def close(self) -> None:
        """Closes what is open; the next use opens it again."""
        reader, writer, self._reader, self._writer = self._reader, self._writer, None, None
        with os_errors(self._name):
            for each in (reader, writer):
                if each is not None:
                    each.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Programs often write `GFile(path).read()` without a close; TensorFlow allows it.
        for each in (self.__dict__.get("_reader"), self.__dict__.get("_writer")):
            if each is not None:
                each.close()

    def _decoded(self, data: bytes) -> Any:
        return data if self._is_binary else data.decode()

    def _for_reading(self) -> IO[bytes]:
        if self._plain not in _READ:
            raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
        self.flush()
        if self._reader is None:
            with os_errors(self._name):
                self._reader = EVERYWHERE.open_to_read(file_path(self._name))
        return self._reader

    def _for_writing(self) -> IO[bytes]:
        if self._plain not in _WRITE:
            raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
        if self._writer is None:
            with os_errors(self._name):
                # "r+" makes the file, or empties it, as TensorFlow's does.
                opens = EVERYWHERE.append if self._plain[0] == "a" else EVERYWHERE.create
                self._writer = opens(file_path(self._name))
        return self._writer


Open = GFile


class FastGFile(GFile):
    """Old name of `GFile`."""


class FileStatistics(NamedTuple):
    """What `Stat` gives."""

    length: int
    mtime_nsec: int
    is_directory: bool


def Exists(filename: str) -> bool:
    return EVERYWHERE.exists(file_path(filename))


def IsDirectory(dirname: str) -> bool:
    return EVERYWHERE.is_folder(file_path(dirname))


def Stat(filename: str) -> FileStatistics:
    """Raises NotFoundError."""
    with os_errors(filename):
        found = EVERYWHERE.stat(file_path(filename))
    return FileStatistics(found.size, found.mtime_ns, found.is_folder)


def Remove(filename: str) -> None:
    """Deletes a file. Raises NotFoundError."""
    with os_errors(filename):
        EVERYWHERE.unlink(file_path(filename))


def DeleteRecursively(dirname: str) -> None:
    """Deletes a folder with its contents, or a file. Raises NotFoundError, PermissionDeniedError for a whole bucket."""
    with os_errors(dirname):
        EVERYWHERE.remove_tree(file_path(dirname))


def MkDir(dirname: str) -> None:
    """Makes a folder; its parent must exist. Does nothing if the path is there. Raises NotFoundError."""
    # in TensorFlow 1.15, too, the second of two is no error
    if Exists(dirname):
        return
    with os_errors(dirname):
        EVERYWHERE.make_folder(file_path(dirname))


def MakeDirs(dirname: str) -> None:
    """Makes a folder and its missing parents; an existing folder is not an error."""
    with os_errors(dirname):
        EVERYWHERE.make_folders(file_path(dirname))


def ListDirectory(dirname: str) -> list[str]:
    """The names in a folder. Raises NotFoundError if `dirname` is not a folder.

    In a store such as S3 a folder is there while a file lies below it.
    """
    if not IsDirectory(dirname):
        raise errors.NotFoundError(None, None, f"Could not find directory {dirname}")
    with os_errors(dirname):
        return EVERYWHERE.names(file_path(dirname))


def Glob(filename: str | Sequence[str]) -> list[str]:
    """The files that match the pattern, or any of several."""
    patterns = [filename] if isinstance(filename, (str, bytes)) else filename
    found = []
    for pattern in patterns:
        with os_errors(pattern):
            found += EVERYWHERE.matching(file_path(pattern))
    return found


def Walk(top: str, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, its folders, its files) for each folder of a tree, parents first, or last with `in_order` false."""
    with os_errors(top):
        yield from EVERYWHERE.walk(file_path(top), in_order)


def Copy(oldpath: str, newpath: str, overwrite: bool = False) -> None:
    """Copies a file. Raises AlreadyExistsError unless `overwrite`."""
    _refuse_existing(newpath, overwrite)
    with os_errors(oldpath):
        EVERYWHERE.copy(file_path(oldpath), file_path(newpath))


def Rename(oldname: str, newname: str, overwrite: bool = False) -> None:
    """Moves a file or folder within a file system. Raises AlreadyExistsError unless `overwrite`."""
    _refuse_existing(newname, overwrite)
    with os_errors(oldname):
        EVERYWHERE.replace(file_path(oldname), file_path(newname))


def _refuse_existing(path: str, overwrite: bool) -> None:
    if not overwrite and Exists(path):
        raise errors.AlreadyExistsError(None, None, "file already exists")


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
