"""What a run has left in its output folder: a bounded list of files, and a file that is read in pieces. Blocking.

The folder is the program's: it may hold links that lead elsewhere, and change while it is read. So each part of a path
is opened within the folder before it, and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Files that a list looks at, and how deep folders may lie in each other.
MAX_FILES, MAX_DEPTH = 100_000, 32
#: Bytes that are read at a time.
PIECE = 1 << 18
_RANGE = re.compile(r"bytes=(?P<begin>[0-9]{0,18})-(?P<last>[0-9]{0,18})")
_NO_LINK = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file: its path in the output folder, with slashes."""

    path: str
    size: int
    #: Wall-clock seconds.
    modified: float


def listed(folder: Path) -> list[Artifact]:
    """The files by their paths, at most MAX_FILES of them; without links, and names that are no UTF-8. Nothing where
    there is no folder."""
    found: list[Artifact] = []
    with contextlib.suppress(OSError):
        top = os.open(folder, _NO_LINK | os.O_DIRECTORY)
        try:
            _walk(top, "", 0, found)
        finally:
            os.close(top)
    return sorted(found, key=lambda each: each.path)


def _walk(folder: int, above: str, depth: int, found: list[Artifact]) -> None:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        if len(found) >= MAX_FILES or not _is_text(name):
            continue
        try:
            opened = os.open(name, _NO_LINK, dir_fd=folder)
        except OSError:
            continue  # a link, or what is gone or closed to this user
        try:
            about = os.fstat(opened)
            if stat.S_ISREG(about.st_mode):
                found.append(Artifact(above + name, about.st_size, about.st_mtime))
            elif stat.S_ISDIR(about.st_mode) and depth < MAX_DEPTH:
                _walk(opened, f"{above}{name}/", depth + 1, found)
        finally:
            os.close(opened)


def opened(folder: Path, path: str) -> tuple[int, int]:
    """The descriptor of a file, which the caller closes, and its size. Raises `no-such-artifact` for anything but a
    file of the folder."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise _missing(path)
    at = -1
    try:
        at = os.open(folder, _NO_LINK | os.O_DIRECTORY)
        for part in parts:
            above = at
            at = os.open(part, _NO_LINK, dir_fd=above)
            os.close(above)
    except OSError:
        if at >= 0:
            os.close(at)
        raise _missing(path) from None
    about = os.fstat(at)
    if not stat.S_ISREG(about.st_mode):
        os.close(at)
        raise _missing(path)
    return at, about.st_size


def close(file: int) -> None:
    """Closes what `opened` gave."""
    os.close(file)


def pieces(file: int, begin: int, end: int) -> Iterator[bytes]:
    """The bytes from `begin` up to `end`, and closes the file. A file that becomes shorter meanwhile is an OSError: the
    length of the answer has been told."""
    try:
        while begin < end:
            piece = os.pread(file, min(PIECE, end - begin), begin)
            if not piece:
                raise OSError("the file became shorter while it was sent")
            begin += len(piece)
            yield piece
    finally:
        os.close(file)


def asked_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The part of a file that a Range header of HTTP asks for, from its first byte up to its end; None for the whole,
    as for a header of another form. Raises `range-not-there` where it begins behind the end."""
    match = None if header is None else _RANGE.fullmatch(header.strip())
    if match is None or match["begin"] == match["last"] == "":
        return None
    if not match["begin"]:
        begin, end = max(0, size - int(match["last"])), size
    else:
        begin, end = int(match["begin"]), min(size, int(match["last"]) + 1) if match["last"] else size
        if match["last"] and int(match["last"]) < begin:
            return None
    if begin >= size:
        raise ApiError("range-not-there", f"the file has {size} bytes, and the range begins at {begin}.")
    return begin, end


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _missing(path: str) -> ApiError:
    return ApiError("no-such-artifact", f"the run has no file {path[:500]!r} in its output folder.")
