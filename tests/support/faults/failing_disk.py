"""A folder whose disk is full, broken or read-only as long as a test wants: a FUSE mount (failing_disk_main.py).

The processes that use it are real ones and know nothing of it: their writes fail in the kernel, and work again after
`heal`. Where this machine has no FUSE the test is skipped, with the reason.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds for the mount to come and to go.
PATIENCE = 30.0
_TESTS = Path(__file__).resolve().parents[2]


class Failure(NamedTuple):
    """What fails, and how: groups of operations of failing_disk_main.py."""

    errno: str
    groups: tuple[str, ...]
    #: What the system calls it.
    words: str


FULL = Failure("ENOSPC", ("write", "create"), "No space left on device")
BROKEN = Failure("EIO", ("write", "sync", "create", "rename"), "Input/output error")
#: As ext4 does it after an error of the disk: files that are open for writing fail, too.
READ_ONLY = Failure("EROFS", ("write", "create", "open-to-write", "rename", "remove"), "Read-only file system")
FAILURES = {"full": FULL, "broken": BROKEN, "read-only": READ_ONLY}


class FailingDisk:
    """A mounted folder. Blocking; commands have been carried out when they return."""

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self.folder, self._process = folder, process

    def fail(self, failure: Failure, after: int = 0) -> None:
        """These operations fail, and no others, after so many of them."""
        self._tell(f"fail {failure.errno} {after} {' '.join(failure.groups)}")

    def heal(self) -> None:
        """All works again."""
        self._tell("heal")

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer == "done\n", f"the failing disk has ended: {answer!r}"


def why_not() -> str:
    """Why there can be no failing disk here; "" if there can."""
    try:
        import mfusepy  # noqa: F401
    except (ImportError, OSError, AttributeError) as error:  # the system's library is missing, or too old
        return f"FUSE is not installed here: {error}"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened here"
    return ""


@contextlib.contextmanager
def failing_disk(parent: Path) -> Iterator[FailingDisk]:
    """A new folder in `parent` whose disk fails on demand. Skips the test where it cannot be mounted."""
    if why := why_not():
        pytest.skip(why)
    below, mount = parent / "below", parent / "disk"
    below.mkdir()
    mount.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "support.faults.failing_disk_main", str(below), str(mount)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=_TESTS,
    )
    # a mount that hangs would hang whoever asks for it
    watchdog = threading.Timer(PATIENCE, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "mounted\n":
            _, said = process.communicate(timeout=PATIENCE)
            pytest.skip(f"a FUSE file system cannot be mounted here: {said.strip() or process.returncode}")
        watchdog.cancel()
        disk = FailingDisk(mount, process)
        try:
            yield disk
        finally:
            disk.heal()
    finally:
        watchdog.cancel()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
