"""`python -m support.faults.failing_disk_main FOLDER MOUNT`: the folder, mounted again, on a disk that fails on demand.

A FUSE layer of the tests: what is done under MOUNT is done in FOLDER, but for what is to fail. Commands are lines of
standard input and are answered with a line: `fail ERRNO N GROUP…`, from the N-th operation of these groups on, and
`heal`; before that comes the line `mounted`. At the end of its input it takes the mount away. See failing_disk.py.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import mfusepy

if TYPE_CHECKING:
    from collections.abc import Iterable

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Layer(mfusepy.Operations):  # type: ignore[misc]
    """Does in `root` what is asked, unless its group of operations fails."""

    use_ns = True

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        #: What fails with which errno, once `_left` more operations of it have been done.
        self._failing: frozenset[str] = frozenset()
        self._errno, self._left = 0, 0

    def _at(self, path: str) -> str:
        return self._root + path

    def fail(self, number: int, after: int, groups: Iterable[str]) -> None:
        with self._lock:
            self._errno, self._left, self._failing = number, after, frozenset(groups)

    def _try(self, group: str) -> None:
        with self._lock:
            if group not in self._failing:
                return
            self._left -= 1
            if self._left < 0:
                raise mfusepy.FuseOSError(self._errno)

    def init(self, path: str) -> None:
        print("mounted", flush=True)

    # -- looking

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._at(path))
        names = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_ino")
        times = {f"st_{each}time": getattr(found, f"st_{each}time_ns") for each in "amc"}
        return {**{name: getattr(found, name) for name in names}, **times}

    def readdir(self, path: str, fh: int) -> list[str]:
        self._try("read")
        return [".", "..", *os.listdir(self._at(path))]

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._at(path))
        sizes = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail")
        names = (*sizes, "f_files", "f_ffree", "f_favail", "f_namemax")
        return {name: getattr(found, name) for name in names}

    # -- changing names

    def mkdir(self, path: str, mode: int) -> None:
        self._try("create")
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: str) -> None:
        self._try("remove")
        os.rmdir(self._at(path))

    def unlink(self, path: str) -> None:
        self._try("remove")
        os.unlink(self._at(path))

    def rename(self, old: str, new: str) -> None:
        self._try("rename")
        os.rename(self._at(old), self._at(new))

    def symlink(self, target: str, source: str) -> None:
        self._try("create")
        os.symlink(source, self._at(target))

    def chmod(self, path: str, mode: int) -> None:
        self._try("create")
        os.chmod(self._at(path), mode)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        self._try("create")
        os.utime(self._at(path), ns=times)

    # -- files

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._try("create")
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def open(self, path: str, flags: int) -> int:
        if flags & _WRITING:
            self._try("open-to-write")
        # every file can be read, as the kernel may ask for a page before it writes to it
        wanted = os.O_RDWR if flags & (os.O_WRONLY | os.O_RDWR) else os.O_RDONLY
        return os.open(self._at(path), wanted | flags & os.O_TRUNC)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        self._try("read")
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._try("write")
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        self._try("open-to-write")
        os.truncate(self._at(path), length)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        self._try("sync")

    def flush(self, path: str, fh: int) -> None:
        """Closing loses nothing: it was written through."""

    def release(self, path: str, fh: int) -> None:
        os.close(fh)


def obey(layer: Layer, mount: str) -> None:
    """Body of a thread: the commands, until there is nobody to give them."""
    for line in sys.stdin:
        command, *words = line.split()
        if command == "fail":
            layer.fail(getattr(errno, words[0]), int(words[1]), words[2:])
        else:
            layer.fail(0, 0, ())
        print("done", flush=True)
    take_away(mount)


def take_away(mount: str) -> None:
    """Unmounts, also with files open."""
    for program in (["umount", "-l"], ["fusermount3", "-uz"], ["fusermount", "-uz"]):
        with contextlib.suppress(OSError):
            if subprocess.run([*program, mount], capture_output=True, timeout=20, check=False).returncode == 0:
                return


def main() -> None:
    root, mount = sys.argv[1:]
    layer = Layer(root)
    threading.Thread(target=obey, args=(layer, mount), name="commands", daemon=True).start()
    # the older library splits writes into pages unless it is told not to
    larger = {"big_writes": True} if mfusepy.fuse_version_major < 3 else {}
    mfusepy.FUSE(layer, mount, foreground=True, nothreads=False, default_permissions=True, **larger)


if __name__ == "__main__":
    main()
