"""How files are opened: `Files` opens any, `graph_files.py` only those that a graph may use.

What reads and writes formats (checkpoint/, records.py) takes one of them and opens nothing itself. So the same code
serves the user's program, which opens what the user may, and the ops of a graph, which are restricted. A name is a path
of this machine or a URL (file_names.py), which url_files.py works on. All functions block while the disk or the network
does, and raise OSError.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import glob
import io
import mmap
import os
import shutil
import stat
import sys
import uuid
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from tenfold_core import errors, url_files
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import is_url
from tenfold_core.url_files import FileStat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tenfold_core.url_streams import UrlWriter


class Opened(Protocol):
    """A file that is read by places. `read_into` returns how many bytes it has read, 0 at the end."""

    size: int

    def read_into(self, out: Any, offset: int) -> int: ...

    def close(self) -> None: ...


class _Descriptor:
    """A file of this machine."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read_into(self, out: Any, offset: int) -> int:
        return os.preadv(self._descriptor, [out], offset)

    def close(self) -> None:
        os.close(self._descriptor)


class _Seeking:
    """A file elsewhere."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = length(file)

    def read_into(self, out: Any, offset: int) -> int:
        self._file.seek(offset)
        return int(self._file.readinto(out))  # type: ignore[attr-defined]

    def close(self) -> None:
        self._file.close()


class Ranges:
    """The bytes of an open file by their places, as those of a memory map: `[at]` and `[begin:end]`."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._size = length(file)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, at: Any) -> Any:
        begin, end, _ = (at if isinstance(at, slice) else slice(at, at + 1)).indices(self._size)
        with os_errors(self._path):
            self._file.seek(begin)
            data = self._file.read(max(0, end - begin))
        return data if isinstance(at, slice) else data[0]

    def close(self) -> None:
        self._file.close()


class Files:
    """Every file that the process may open. Subclasses restrict `_at`, `_open` and `_is_elsewhere`, through which all
    else goes."""

    @property
    def most_bytes(self) -> int:
        """Bytes that are read of one file, or of one record of it, into memory."""
        return sys.maxsize

    # -- files -------------------------------------------------------------------------------------------------------

    def descriptor(self, path: str) -> int:
        """A descriptor to read from; the caller closes it. Raises UnimplementedError for a URL, which has none."""
        if self._is_elsewhere(path):
            raise errors.UnimplementedError(
                None, None, f"{path}; this kind of file is read from a disk only: copy it to one first (tf.gfile.Copy)"
            )
        with self._at(path, follow=True) as (folder, name):
            return self._open(path, name, os.O_RDONLY, folder)

    def open_to_read(self, path: str) -> BinaryIO:
        if self._is_elsewhere(path):
            return url_files.open_to_read(path)
        return _opened(self.descriptor(path), "rb")

    def open_by_places(self, path: str) -> Opened:
        """The file, to read large pieces of it; the caller closes it."""
        if self._is_elsewhere(path):
            return _Seeking(url_files.open_to_read(path))
        return _Descriptor(self.descriptor(path))

    def mapped(self, path: str) -> mmap.mmap | Ranges:
        """The bytes of a file, which come when they are asked for; the caller closes it."""
        if self._is_elsewhere(path):
            return Ranges(path, url_files.open_to_read(path))
        with self.open_to_read(path) as file:
            if not os.fstat(file.fileno()).st_size:
                return Ranges(path, cast("BinaryIO", io.BytesIO()))  # a map cannot be empty
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def create(self, path: str) -> BinaryIO:
        """The file, empty, to write to. One elsewhere appears when it is closed."""
        if self._is_elsewhere(path):
            return url_files.create(path)
        with self._at(path, follow=True) as (folder, name):
            return _opened(self._open(path, name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder), "wb")

    def scratch(self, folder: str) -> BinaryIO:
        """An empty file in a folder, which is made if need be, to write, read and map. It has no name, and is gone once
        it and its maps are closed. Raises InvalidArgumentError for a URL."""
        if self._is_elsewhere(folder):
            raise errors.InvalidArgumentError(None, None, f"{folder}; a file that is mapped must be on a local disk")
        self.make_folders(folder)
        path = os.path.join(folder, f"scratch_{uuid.uuid4().hex}")
        with self._at(path, follow=True) as (at, name):
            descriptor = self._open(path, name, os.O_RDWR | os.O_CREAT | os.O_EXCL, at)
            os.unlink(name, dir_fd=at)
        return _opened(descriptor, "r+b")

    def append(self, path: str) -> BinaryIO:
        """The file, to write behind what it has."""
        if self._is_elsewhere(path):
            return url_files.append(path)
        with self._at(path, follow=True) as (folder, name):
            return _opened(self._open(path, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, folder), "ab")

    def create_unpublished(self, url: str) -> UrlWriter:
        """A file elsewhere, to write to, that appears when it is published. Raises ValueError for a path."""
        if not self._is_elsewhere(url):
            raise ValueError(f"{url} is a path of this machine")
        return url_files.create_unpublished(url)

    def read_whole(self, path: str) -> bytes:
        """All of a file. Raises ResourceExhaustedError for more than `most_bytes`."""
        with self.open_to_read(path) as file:
            self.check_bytes(path, length(file))
            if self.most_bytes == sys.maxsize:
                return file.read()
            data = file.read(self.most_bytes + 1)  # it may grow meanwhile
        self.check_bytes(path, len(data))
        return data

    def check_bytes(self, path: str, count: int) -> None:
        """Raises ResourceExhaustedError where `count` bytes of `path` are more than may be in memory at once."""
        if count > self.most_bytes:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"{path}; {count} bytes are more than the {self.most_bytes} that this task reads of a file, or a "
                "record, at once (TENFOLD_FILE_BYTES)",
            )

    def exists(self, path: str) -> bool:
        """Raises the step's error where the store of a URL cannot be asked: that does not say that nothing is there."""
        if self._is_elsewhere(path):
            with os_errors(path):
                return url_files.find(path) is not None
        try:
            with self._at(path, follow=True) as (folder, name):
                os.stat(name, dir_fd=folder)
        except OSError:
            return False
        return True

    def is_folder(self, path: str) -> bool:
        """False where there is nothing, too. Raises as `exists`."""
        if self._is_elsewhere(path):
            with os_errors(path):
                found = url_files.find(path)
                return found is not None and found.is_folder
        try:
            with self._at(path, follow=True) as (folder, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
        except OSError:
            return False

    def stat(self, path: str) -> FileStat:
        """Size, time of the last change, and whether it is a folder."""
        if self._is_elsewhere(path):
            return url_files.stat(path)
        with self._at(path, follow=True) as (folder, name):
            found = os.stat(name, dir_fd=folder)
        return FileStat(found.st_size, found.st_mtime_ns, stat.S_ISDIR(found.st_mode))

    def size(self, path: str) -> int:
        if self._is_elsewhere(path):
            return url_files.stat(path).size
        with self._at(path, follow=True) as (folder, name):
            return os.stat(name, dir_fd=folder).st_size

    def matching(self, pattern: str) -> list[str]:
        """The names that match a shell pattern, sorted."""
        if self._is_elsewhere(pattern):
            return url_files.matching(pattern)
        return sorted(glob.glob(pattern))

    def matching_files(self, pattern: str) -> list[str]:
        """Those of `matching` that are no folders."""
        if self._is_elsewhere(pattern):
            return url_files.matching(pattern, folders=False)
        return [name for name in self.matching(pattern) if not self.is_folder(name)]

    def replace(self, source: str, destination: str) -> None:
        """Another name for a file or a folder, on the same machine or in the same store."""
        away = self._is_elsewhere(source), self._is_elsewhere(destination)
        if all(away):
            url_files.replace(source, destination)
            return
        if any(away):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        with self._at(source) as (from_folder, old), self._at(destination) as (to_folder, new):
            os.replace(old, new, src_dir_fd=from_folder, dst_dir_fd=to_folder)

    def unlink(self, path: str) -> None:
        if self._is_elsewhere(path):
            url_files.unlink(path)
            return
        with self._at(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    # -- folders -----------------------------------------------------------------------------------------------------

    def make_folder(self, path: str) -> None:
        """One folder, not its parents. Raises FileExistsError. Does nothing where names need no folders, as in S3."""
        if self._is_elsewhere(path):
            url_files.make_folder(path)
            return
        with self._at(path, follow=True) as (folder, name):
            os.mkdir(name, dir_fd=folder)

    def make_folders(self, path: str) -> None:
        """A folder and its parents, as far as they are missing."""
        if self._is_elsewhere(path):
            url_files.make_folders(path)
            return
        self._make_folders(path)

    def remove_folder(self, path: str) -> None:
        if self._is_elsewhere(path):
            url_files.remove_folder(path)
            return
        with self._at(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def sync_folder(self, path: str) -> None:
        """Makes renames within a folder last through a crash; file systems that cannot are left alone."""
        with contextlib.suppress(OSError), self._at(path, follow=True) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    # -- what subclasses restrict ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _at(self, path: str, *, follow: bool = False) -> Iterator[tuple[int | None, str]]:
        """A folder, open, and the name in it. With `follow` a link of that name has been resolved."""
        yield None, path

    def _open(self, path: str, name: str, flags: int, folder: int | None) -> int:
        return os.open(name, flags | os.O_CLOEXEC, 0o666, dir_fd=folder)

    def _make_folders(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def _is_elsewhere(self, path: str) -> bool:
        """Whether a name is a URL, which may be used here."""
        return "://" in path and is_url(path)


class UserFiles(Files):
    """What programs of the user do besides, and no graph."""

    def replace(self, source: str, destination: str) -> None:
        """Another name for a file or a folder; a file is copied where one of the two lies elsewhere."""
        if self._is_elsewhere(source) == self._is_elsewhere(destination):
            super().replace(source, destination)
            return
        self.copy(source, destination)
        self.unlink(source)

    def copy(self, source: str, destination: str) -> None:
        """A second file with the same bytes."""
        away = self._is_elsewhere(source), self._is_elsewhere(destination)
        if all(away):
            url_files.copy(source, destination)
        elif not any(away):
            shutil.copyfile(source, destination)
        elif away[1]:
            with self.open_to_read(source) as read:
                url_files.fill(destination, read)
        else:
            with self.open_to_read(source) as read, self.create(destination) as out:
                shutil.copyfileobj(read, out, 1 << 20)

    def remove_tree(self, path: str) -> None:
        """A folder with all below it, or a file. Raises an OSError for a whole bucket."""
        if self._is_elsewhere(path):
            url_files.remove_tree(path)
        elif self.is_folder(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            self.unlink(path)

    def same(self, one: str, other: str) -> bool:
        """Whether two files have the same bytes."""
        if not self._is_elsewhere(one) and not self._is_elsewhere(other):
            return filecmp.cmp(one, other, shallow=False)
        with self.open_to_read(one) as first, self.open_to_read(other) as second:
            if length(first) != length(second):
                return False
            while (piece := first.read(1 << 20)) == second.read(1 << 20):
                if not piece:
                    return True
            return False

    def names(self, path: str) -> list[str]:
        """The names in a folder."""
        if self._is_elsewhere(path):
            return url_files.names(path)
        return os.listdir(path)

    def walk(self, path: str, top_down: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
        """(folder, its folders, its files) for each folder of a tree."""
        if self._is_elsewhere(path):
            return url_files.walk(path, top_down)
        return os.walk(path, topdown=top_down)


#: For programs of the user, which need nobody's leave.
EVERYWHERE = UserFiles()


def length(file: BinaryIO) -> int:
    """Bytes of an open file."""
    try:
        return os.fstat(file.fileno()).st_size
    except io.UnsupportedOperation:  # it is not of this machine
        at = file.tell()
        size = file.seek(0, os.SEEK_END)
        file.seek(at)
        return size


def _opened(descriptor: int, mode: str) -> BinaryIO:
    try:
        return cast("BinaryIO", os.fdopen(descriptor, mode))
    except BaseException:  # a folder
        os.close(descriptor)
        raise
