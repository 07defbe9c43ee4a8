"""The commit of a folder, and how its files differ from it, by asking Git. Bounded in time and size.

Used by `tenfold run` and `submit` before they start anything, and by a program's own reports (recorded.py).
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from typing import Any

#: Seconds that all questions to Git may take together.
_SECONDS = 5.0
#: Bytes of a diff that are kept: with every one of them escaped it still fits into a request of 1 MiB.
MAX_DIFF = 128 << 10
#: Git asks nobody, runs no program of the repository's to show a difference, and takes no lock.
_GIT = ("git", "--no-optional-locks", "--no-pager", "-c", "core.quotePath=true", "-c", "core.fsmonitor=false")


def source_of(folder: str, seconds: float = _SECONDS, max_diff: int = MAX_DIFF) -> dict[str, Any] | None:
    """`{"commit", "branch", "dirty", "diff", "diff_truncated"}` of the working tree that `folder` is in; None where it
    is in none, has no commit yet, or Git is missing or takes longer than `seconds`. Of the output of `git diff HEAD` at
    most `max_diff` bytes are kept. Files that Git does not track count as no difference. Blocks; never raises."""
    deadline = time.monotonic() + seconds
    head = _ask(folder, deadline, 200, "rev-parse", "HEAD")
    branch = _ask(folder, deadline, 1000, "rev-parse", "--abbrev-ref", "HEAD")
    diff = _ask(
        folder, deadline, max_diff + 1, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD", "--", "."
    )
    if head is None or branch is None or diff is None:
        return None
    text = diff[:max_diff].decode("utf-8", "ignore").replace("\0", "")
    name = branch.decode("utf-8", "replace").strip()[:300]
    return {
        "commit": head.decode("ascii", "replace").strip(),
        "branch": None if name == "HEAD" else name,
        "dirty": bool(diff),
        "diff": text,
        "diff_truncated": len(diff) > max_diff,
    }


def _ask(folder: str, deadline: float, size: int, *question: str) -> bytes | None:
    """The first `size` bytes of what Git answers; None where it fails, or the deadline passes."""
    try:
        with subprocess.Popen(
            [*_GIT, *question],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as git:
            return _read(git, deadline, size)
    except OSError:
        return None


def _read(git: subprocess.Popen[bytes], deadline: float, size: int) -> bytes | None:
    assert git.stdout is not None
    found = b""
    try:
        while len(found) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([git.stdout], [], [], left)[0]:
                return None
            piece = os.read(git.stdout.fileno(), size - len(found))
            if not piece:
                return found if git.wait(max(0.1, deadline - time.monotonic())) == 0 else None
            found += piece
    except subprocess.TimeoutExpired:
        return None
    finally:
        git.kill()
    return found
