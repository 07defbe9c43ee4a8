"""Files that tasks on other machines send of what they have left: in pieces, into the run's output folder. Blocking.

A file lies beside that folder until its last piece is there, so nobody reads half of one. Paths are the program's: each
part of one is made and opened within the folder before it, and no link is followed. Read by artifacts.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import artifacts

if TYPE_CHECKING:
    from pathlib import Path

#: What a file counts for besides its bytes: empty ones take room, too.
FILE_BYTES = 4096
#: Beside the output folder: the files of which pieces are missing.
ARRIVING = "arriving"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str) -> list[str]:
    """The parts of a path in the output folder. Raises `invalid-artifact` for what leads elsewhere."""
    parts = path.split("/")
    if len(parts) > artifacts.MAX_DEPTH or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ApiError("invalid-artifact", f"{path[:500]!r} is not the path of a file in an output folder.")
    return parts


def keep(folder: Path, task: str, path: str, piece: bytes, offset: int, size: int) -> bool:
    """Writes the bytes from `offset` on of a file of `size` bytes that `task` sends; whether it is complete now. Raises
    `invalid-artifact` for a piece that does not follow the one before it, and OSError."""
    parts = parts_of(path)
    arriving = folder.parent / ARRIVING
    arriving.mkdir(mode=0o700, exist_ok=True)
    beside = arriving / hashlib.sha256(f"{task}\0{path}".encode()).hexdigest()
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if offset else os.O_TRUNC)
    file = os.open(beside, flags, 0o600)
    try:
        there = os.fstat(file).st_size
        if offset > there and _is_kept(folder, path, size):
            os.unlink(beside)
            return True  # the answer to the last piece was lost
        if offset > there or offset + len(piece) > size:
            text = f"a piece begins at {offset} and has {len(piece)} bytes, of {size}; {there} bytes have come."
            raise ApiError("invalid-artifact", text)
        left = memoryview(piece)
        while left:
            done = os.pwrite(file, left, offset)
            left, offset = left[done:], offset + done
    finally:
        os.close(file)
    if offset < size:
        return False
    _publish(beside, folder, parts)
    return True


def _is_kept(folder: Path, path: str, size: int) -> bool:
    try:
        file, found = artifacts.opened(folder, path)
    except ApiError:
        return False
    artifacts.close(file)
    return found == size


def _publish(beside: Path, folder: Path, parts: list[str]) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as opened:

        def enter(name: str | Path, above: int | None) -> int:
            found = os.open(name, _FOLDER, dir_fd=above)
            opened.callback(os.close, found)
            return found

        at = enter(folder, None)
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=at)
            at = enter(part, at)
        os.rename(beside, parts[-1], dst_dir_fd=at)
