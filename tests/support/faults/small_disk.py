"""A small disk of the system's own that is really full: a tmpfs, and a file that fills it.

The full disk of failing_disk.py refuses each write as a whole; a real one takes what fits. Mounting needs root; without
it the test is skipped, with the reason.
"""

from __future__ import annotations

import contextlib
import errno
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PIECE = 4096
_SECONDS = 30.0


class SmallDisk:
    """A mounted folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self, leave: int = 0) -> None:
        """No room is left, but for about `leave` bytes."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(_PIECE)) == _PIECE:
                pass
        if leave:
            size = self._ballast.stat().st_size
            with self._ballast.open("r+b") as file:
                file.truncate(max(0, size - leave))

    def free(self) -> None:
        """There is room again."""
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(parent: Path, size: int = 4 << 20) -> Iterator[SmallDisk]:
    """A new folder in `parent` that holds `size` bytes. Skips the test where it cannot be mounted."""
    folder = parent / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except OSError as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip() or errno.errorcode[errno.EPERM]}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, timeout=_SECONDS, check=False)
