"""A working directory as one zip file, for a control service that has no share in the submitter's disk.

The directory is a folder of this machine, or lies in a store: `s3://bucket/project`.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import IO, NamedTuple

from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path, is_url
from tenfold_core.files import EVERYWHERE

#: What no program needs of its folder.
LEFT_OUT = frozenset(
    (
        *(".git", ".hg", ".svn", ".venv", "venv"),
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"),
    )
)
#: The time of every entry: the same folder gives the same file.
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: Of a file in a store, which has no such thing.
_PLAIN = 0o644


class _File(NamedTuple):
    path: str
    #: As it is called in the package.
    name: str
    mode: int


def pack(folder: Path | str, into: IO[bytes]) -> str:
    """Writes the files of `folder`, a path or a URL, as a zip, and returns its sha256 as hexadecimal text. Links to
    files are followed, folders of LEFT_OUT are not packed. The same files give the same bytes. Raises
    NotADirectoryError, OSError, and the step's error of a store."""
    where = file_path(os.fspath(folder))
    if not EVERYWHERE.is_folder(where):
        raise NotADirectoryError(f"{where} is not a folder")
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as package:
        for file in _files(where):
            entry = zipfile.ZipInfo(file.name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = file.mode << 16
            with EVERYWHERE.open_to_read(file.path) as source, package.open(entry, "w", force_zip64=True) as target:
                while piece := source.read(1 << 20):
                    target.write(piece)
    digest = hashlib.sha256()
    into.seek(0)
    while piece := into.read(1 << 20):
        digest.update(piece)
    into.seek(0)
    return digest.hexdigest()


def _files(folder: str) -> list[_File]:
    found: list[_File] = []
    elsewhere = is_url(folder)
    with os_errors(folder):
        for parent, folders, names in EVERYWHERE.walk(folder):
            folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
            for name in sorted(names):
                path = os.path.join(parent, name)
                within = path.removeprefix(folder.rstrip("/") + "/") if elsewhere else os.path.relpath(path, folder)
                if elsewhere:
                    found.append(_File(path, within, _PLAIN))
                elif os.path.isfile(path):
                    found.append(_File(path, Path(within).as_posix(), os.stat(path).st_mode & 0o777))
    return found
