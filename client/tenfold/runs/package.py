"""A working directory as one zip file, for a control service that has no share in the submitter's disk."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import IO

#: What no program needs of its folder.
LEFT_OUT = frozenset(
    (
        *(".git", ".hg", ".svn", ".venv", "venv"),
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
    )
)
#: The time of every entry: the same folder gives the same file.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, into: IO[bytes]) -> str:
    """Writes the files of `folder` as a zip, and returns its sha256 as hexadecimal text. Links to files are followed,
    folders of LEFT_OUT are not packed. The same files give the same bytes. Raises NotADirectoryError, OSError."""
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder")
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as package:
        for path in _files(folder):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            with path.open("rb") as source, package.open(entry, "w", force_zip64=True) as target:
                while piece := source.read(1 << 20):
                    target.write(piece)
    digest = hashlib.sha256()
    into.seek(0)
    while piece := into.read(1 << 20):
        digest.update(piece)
    into.seek(0)
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        found += [path for name in sorted(names) if (path := Path(parent, name)).is_file()]
    return found
