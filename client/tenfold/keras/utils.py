"""`tf.keras.utils`: `get_file` and `to_categorical`. As TensorFlow 1.15's keras/utils."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["get_file", "to_categorical"]

#: How long the other side may be silent, in seconds.
_SILENCE = 60
_FORMATS = {"tar": ("tar", "gztar", "bztar", "xztar"), "zip": ("zip",)}


def get_file(
    fname: str,
    origin: str,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: str | None = None,
) -> str:
    """The path of `fname` below ~/.keras/datasets (or `cache_dir`), fetched from `origin` if it is not there.

    With a hash (`file_hash`; sha256, or md5 by its length) a file that has another is fetched again. `untar` and
    `extract` unpack it beside. Blocks. Raises OSError (urllib's URLError) if it cannot be fetched, ValueError for a
    file with another hash than said.
    """
    folder = Path(cache_dir or os.environ.get("KERAS_HOME") or Path.home() / ".keras").expanduser() / cache_subdir
    folder.mkdir(parents=True, exist_ok=True)
    wanted = file_hash or md5_hash
    path = folder / (f"{fname}.tar.gz" if untar else fname)
    if not path.exists() or (wanted and not _has_hash(path, wanted, hash_algorithm)):
        _fetch(origin, path)
        if wanted and not _has_hash(path, wanted, hash_algorithm):
            raise ValueError(f"what {origin} gave for {path} has another hash than {wanted}")
    if untar or extract:
        _unpack(path, folder, "tar" if untar else archive_format)
    return str(folder / fname)


def _has_hash(path: Path, wanted: str, algorithm: str) -> bool:
    kind = "sha256" if algorithm == "sha256" or (algorithm == "auto" and len(wanted) == 64) else "md5"
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False))
    return found.hexdigest() == wanted


def _fetch(origin: str, path: Path) -> None:
    """Writes beside and renames: a file that is there is whole."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        try:
            with urllib.request.urlopen(origin, timeout=_SILENCE) as source:
                shutil.copyfileobj(source, part)
            os.replace(part.name, path)
        except BaseException:
            os.unlink(part.name)
            raise


def _unpack(path: Path, folder: Path, kinds: Any) -> None:
    known = ("tar", "zip") if kinds == "auto" else (kinds,) if isinstance(kinds, str) else tuple(kinds or ())
    for kind in (each for name in known for each in _FORMATS.get(name, ())):
        try:
            if kind == "zip":
                shutil.unpack_archive(path, folder, kind)
            else:
                shutil.unpack_archive(path, folder, kind, filter="data")
        except (shutil.ReadError, OSError, EOFError):
            continue
        return


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> Any:
    """Rows with a one at the number that an integer says; the shape of `y` and the number of classes behind it.

    A last dimension of one goes. Raises IndexError for a number beyond `num_classes`, by default the largest and one.
    """
    labels = np.array(y, dtype="int")
    shape = labels.shape[:-1] if labels.ndim > 1 and labels.shape[-1] == 1 else labels.shape
    flat = labels.ravel()
    classes = num_classes if num_classes else int(np.max(flat)) + 1
    rows = np.zeros((len(flat), classes), dtype=dtype)
    rows[np.arange(len(flat)), flat] = 1
    return rows.reshape((*shape, classes))
