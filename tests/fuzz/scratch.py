"""A folder of this process for files that a reader opens: gone when the process ends, in memory if there is one."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

from tenfold_core.graph_files import GraphFiles

#: What may be read of a file, or of a record of it, into memory: little, so that a claim that is believed shows.
FILE_BYTES = 1 << 20


@functools.cache
def folder() -> Path:
    memory = "/dev/shm"
    made = tempfile.mkdtemp(prefix="tenfold-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


@functools.cache
def files() -> GraphFiles:
    """As a graph opens files, below the folder."""
    return GraphFiles(str(folder()), FILE_BYTES)


def put(name: str, content: bytes) -> str:
    """Writes a file; its path."""
    path = folder() / name
    path.write_bytes(content)
    return str(path)
