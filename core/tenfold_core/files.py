"""How files are opened: `Files` opens any, `graph_files.py` only those that a graph may use.

What reads and writes formats (checkpoint/, records.py) takes one of them and opens nothing itself. So the same code
serves the user's program, which opens what the user may, and the ops of a graph, which are restricted. All functions
block while the disk does, and raise OSError.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import sys
from typing import TYPE_CHECKING, BinaryIO, cast

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator


class Files:
    """Every file that the process may open. Subclasses restrict `_at` and `_open`, through which all else goes."""

    @property
    def most_bytes(self) -> int:
        """Bytes that are read of one file, or of one record of it, into memory."""
        return sys.maxsize

    # -- files -------------------------------------------------------------------------------------------------------

    def descriptor(self, path: str) -> int:
        """A descriptor to read from; the caller closes it."""
        with self._at(path, follow=True) as (folder, name):
            return self._open(path, name, os.O_RDONLY, folder)

    def open_to_read(self, path: str) -> BinaryIO:
        return cast("BinaryIO", os.fdopen(self.descriptor(path), "rb"))

    def create(self, path: str) -> BinaryIO:
        """The file, empty, to write to."""
        with self._at(path, follow=True) as (folder, name):
            descriptor = self._open(path, name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, folder)
        return cast("BinaryIO", os.fdopen(descriptor, "wb"))

    def read_whole(self, path: str) -> bytes:
        """All of a file. Raises ResourceExhaustedError for more than `most_bytes`."""
        with self.open_to_read(path) as file:
            self.check_bytes(path, os.fstat(file.fileno()).st_size)
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
        try:
            with self._at(path, follow=True) as (folder, name):
                os.stat(name, dir_fd=folder)
        except OSError:
            return False
        return True

    def is_folder(self, path: str) -> bool:
        """False where there is nothing, too."""
        try:
            with self._at(path, follow=True) as (folder, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=folder).st_mode)
        except OSError:
            return False

    def size(self, path: str) -> int:
        with self._at(path, follow=True) as (folder, name):
            return os.stat(name, dir_fd=folder).st_size

    def matching(self, pattern: str) -> list[str]:
        """The names that match a shell pattern, sorted."""
        return sorted(glob.glob(pattern))

    def replace(self, source: str, destination: str) -> None:
        with self._at(source) as (from_folder, old), self._at(destination) as (to_folder, new):
            os.replace(old, new, src_dir_fd=from_folder, dst_dir_fd=to_folder)

    def unlink(self, path: str) -> None:
        with self._at(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    # -- folders -----------------------------------------------------------------------------------------------------

    def make_folder(self, path: str) -> None:
        """One folder, not its parents. Raises FileExistsError."""
        with self._at(path, follow=True) as (folder, name):
            os.mkdir(name, dir_fd=folder)

    def make_folders(self, path: str) -> None:
        """A folder and its parents, as far as they are missing."""
        os.makedirs(path, exist_ok=True)

    def remove_folder(self, path: str) -> None:
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


#: For programs of the user, which need nobody's leave.
EVERYWHERE = Files()
