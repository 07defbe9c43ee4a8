"""The assertions of all test files, rewritten before processes that run tests beside each other collect them.

pytest keeps a rewritten file beside its source and reads it as long as the source stays as it is. In a new checkout
there are none: each of the processes would rewrite every file at the same moment as the others, 15 seconds of work.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import struct
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

from _pytest.assertion import rewrite

if TYPE_CHECKING:
    from pathlib import Path

#: So few are not worth a process.
_FEW = 50


def rewrite_all(tests: Path) -> None:
    """Rewrite each `test_*.py` below `tests` that is new or has changed, with all cores; blocks until it is done.

    pytest offers no way to ask for this. Where its own functions are not those of pytest 9, each process does it. Up to
    9.1 a file is known by its time and size, later by its bytes.
    """
    if sys.dont_write_bytecode or not hasattr(rewrite, "_write_pyc_fp"):
        return
    stale = [path for path in sorted(tests.rglob("test_*.py")) if not _is_current(path)]
    if len(stale) >= _FEW:
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
            list(pool.map(_rewrite, stale, chunksize=16))


def _is_current(path: Path) -> bool:
    try:
        with _rewritten(path).open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        return False
    state = path.stat()
    by_time = struct.pack("<LL", int(state.st_mtime) & 0xFFFFFFFF, state.st_size)
    return head[8:] in (by_time, importlib.util.source_hash(path.read_bytes()))


def _rewrite(path: Path) -> None:
    """Write it whole or not at all: another process may be reading."""
    no_config: Any = None  # it is asked for an option that only plugins need
    source, code = rewrite._rewrite_test(path, no_config)
    written = _rewritten(path)
    written.parent.mkdir(parents=True, exist_ok=True)
    unfinished = written.with_suffix(f".{os.getpid()}")
    with unfinished.open("wb") as file:
        rewrite._write_pyc_fp(file, source, code)
    unfinished.replace(written)


def _rewritten(path: Path) -> Path:
    return rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
