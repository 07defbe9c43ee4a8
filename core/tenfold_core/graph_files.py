"""The files that the ops of graphs may open: below one folder or URL if the task has one, never the system's own.

A graph is a program of its sender, so its file names are checked where they are opened. `graph_files()` is what
kernels open through; a server sets it once when it starts (`use`), for the process. Decision 0072.

Theory: the name is resolved (realpath), held against the policy, and then opened component by component from / with
O_NOFOLLOW, each relative to the descriptor before. A link that is put there in between ends the walk: what is opened is
the name that was checked. Not seen are hard links, and other mounts of the refused places.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import pwd
import re
import stat
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.file_names import SCHEMES, file_path, is_url, is_within, parent, scheme_of
from tenfold_core.files import Files
from tenfold_core.memory_limits import tensor_limit

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where files are not data: they show secrets of the process, or opening them does something.
SYSTEM_PLACES = ("/proc", "/sys", "/dev")
#: How to search a folder's names without reading it; Linux only.
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAGIC = re.compile(r"[*?\[]")


class GraphFiles(Files):
    """Regular files below `root`, or anywhere if there is none, but for SYSTEM_PLACES and hidden ones of a home.

    A root within such a place opens that part of it. Names that are not absolute begin at the process's working folder.
    Raises InvalidArgumentError for a root that is not a folder, and PermissionDeniedError for every refusal.
    """

    def __init__(self, root: str = "", most_bytes: int = 0) -> None:
        #: The URL below which files are, if they are to lie elsewhere and nowhere here.
        self.url_root = file_path(root).rstrip("/") if is_url(root) else None
        #: Absolute and without links; None: every folder.
        self.root = os.path.realpath(root) if root and self.url_root is None else None
        if self.root is not None and not os.path.isdir(self.root):
            raise errors.InvalidArgumentError(
                None, None, f"TENFOLD_FILES (--files) is {root!r}; it may be a folder that exists, or a URL."
            )
        self._most_bytes = most_bytes
        homes = {os.path.realpath(os.path.expanduser("~"))}
        with contextlib.suppress(KeyError):  # a user without an entry
            homes.add(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
        self._homes = tuple(homes)

    @property
    def most_bytes(self) -> int:
        return self._most_bytes or tensor_limit()

    def matching(self, pattern: str) -> list[str]:
        """Those that match and may be opened. Raises PermissionDeniedError where the pattern begins elsewhere."""
        if self._is_elsewhere(pattern):
            return super().matching(pattern)
        _check_name(pattern)
        first = _MAGIC.search(pattern)
        fixed = os.path.dirname(pattern[: first.start()]) if first else pattern
        self._check(pattern, os.path.realpath(fixed or "."))
        return sorted(name for name in glob.iglob(pattern) if self._refusal(os.path.realpath(name)) is None)

    def _make_folders(self, path: str) -> None:
        _check_name(path)
        real = os.path.realpath(path)
        self._check(path, real)
        os.close(_walk(real, make=True))

    @contextlib.contextmanager
    def _at(self, path: str, *, follow: bool = False) -> Iterator[tuple[int | None, str]]:
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        _check_name(path)
        if follow:
            real = os.path.realpath(path)
        else:
            head, name = os.path.split(path.rstrip("/"))
            real = os.path.join(os.path.realpath(head or "."), name) if name not in ("", ".", "..") else "/"
        self._check(path, real)
        if real == self.root and not follow:
            raise errors.PermissionDeniedError(
                None, None, f"{path}; this is the folder that graphs may use on this task, which itself stays"
            )
        folder = _walk(os.path.dirname(real))
        try:
            yield folder, os.path.basename(real) or "."
        finally:
            os.close(folder)

    def _open(self, path: str, name: str, flags: int, folder: int | None) -> int:
        # asked before it is opened, as opening a device may do something, and after, as it may be another by then
        with contextlib.suppress(FileNotFoundError):
            _check_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        truncate = flags & os.O_TRUNC
        flags = (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = super()._open(path, name, flags, folder)
        try:
            _check_regular(path, os.fstat(descriptor).st_mode)
            if truncate:
                os.ftruncate(descriptor, 0)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _is_elsewhere(self, path: str) -> bool:
        """Raises PermissionDeniedError for a URL that a graph may not use."""
        if not super()._is_elsewhere(path):
            return False
        scheme = scheme_of(path)
        why = None
        if self.root is not None:
            why = f"not below {self.root}, the folder that graphs may use on this task; "
            why += "it is started with a URL as --files (TENFOLD_FILES) where graphs shall use URLs"
        elif scheme not in SCHEMES:
            why = f"graphs may use the schemes {', '.join(SCHEMES)} only"
        elif self.url_root is not None and not is_within(_fixed(path), self.url_root):
            why = f"not below {self.url_root}, which is what graphs may use on this task (--files, TENFOLD_FILES)"
        if why is not None:
            raise errors.PermissionDeniedError(None, None, f"{path}; {why}")
        return True

    def _check(self, path: str, real: str) -> None:
        """Raises PermissionDeniedError."""
        why = self._refusal(real)
        if why is not None:
            raise errors.PermissionDeniedError(None, None, f"{path}; {why}")

    def _refusal(self, real: str) -> str | None:
        """Why a graph may not use the file of this resolved name, or None."""
        if self.url_root is not None:
            return f"not below {self.url_root}, which is what graphs may use on this task (--files, TENFOLD_FILES)"
        if self.root is not None and not _is_within(real, self.root):
            return (
                f"not below {self.root}, the folder that graphs may use on this task; another is set by --files "
                "(TENFOLD_FILES) where the task is started"
            )
        for place in SYSTEM_PLACES:
            if _is_within(real, place) and not (self.root is not None and _is_within(self.root, place)):
                return f"graphs may not use {place}, which shows and changes the system, not data"
        for home in self._homes:
            if not _is_within(real, home) or home == "/":
                continue
            first = os.path.relpath(real, home).split("/", 1)[0]
            hidden = os.path.join(home, first)
            if first.startswith(".") and first != "." and not (self.root is not None and _is_within(self.root, hidden)):
                return (
                    f"graphs may not use ~/{first}, as hidden folders of a home keep secrets; the task is started with "
                    "--files (TENFOLD_FILES) and this folder where graphs shall"
                )
        return None


def _is_within(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(folder + "/")


def _fixed(url: str) -> str:
    """The folder where the names that match a pattern begin; a name that is none."""
    first = _MAGIC.search(url)
    return parent(url[: first.start()]) if first else url


def _check_name(path: str) -> None:
    # realpath says this in other words under each Python, or not at all
    if "\0" in path:
        raise errors.InvalidArgumentError(None, None, f"{path!r}; a file's name may not hold a null byte")


def _walk(folder: str, *, make: bool = False) -> int:
    """A descriptor of `folder`, absolute and resolved, reached without following a link. Raises OSError."""
    at = os.open("/", _SEARCH)
    try:
        for name in folder.split("/"):
            if not name:
                continue
            try:
                following = os.open(name, _SEARCH, dir_fd=at)
            except FileNotFoundError:
                if not make:
                    raise
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
                following = os.open(name, _SEARCH, dir_fd=at)
            os.close(at)
            at = following
    except BaseException:
        os.close(at)
        raise
    return at


def _check_regular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise errors.PermissionDeniedError(
            None, None, f"{path}; graphs may use regular files only, and this is a FIFO, a socket, a device or a link"
        )


_current: GraphFiles | None = None


def use(files: GraphFiles) -> None:
    """What graphs of this process may open from now on. The server that started last decides."""
    global _current
    _current = files


def graph_files() -> GraphFiles:
    """What kernels open files through."""
    global _current
    if _current is None:
        _current = GraphFiles()
    return _current
