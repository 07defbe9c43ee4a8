"""Uploaded working directories: zip files by their sha256, in the runs' folder. Blocking; the routes use a thread.

A package is kept until nobody has asked for it for `settings.package_memory`; a run has its own unpacked copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import zipfile
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError
from tenfold_core.checkpoint.files import AtomicFile

if TYPE_CHECKING:
    from pathlib import Path

NAME = re.compile(r"[0-9a-f]{64}")


#: What is written to see whether a disk that was full has room again.
_PROBE_BYTES = 1 << 20


class Packages:
    """The packages in `folder`."""

    def __init__(self, folder: Path, *, unpacked_limit: int) -> None:
        self._folder, self._limit = folder, unpacked_limit

    def has(self, name: str) -> bool:
        """Whether it is there; it is kept anew then."""
        try:
            os.utime(self._path(name))
        except FileNotFoundError:
            return False
        return True

    def probe(self) -> None:
        """Raises OSError, or the error of a file, where the folder takes no package. Writes one of a megabyte."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / "probe"
        try:
            with AtomicFile(str(path)) as file:
                file.write(bytes(_PROBE_BYTES))
        finally:
            path.unlink(missing_ok=True)

    def add(self, name: str, content: bytes) -> bool:
        """Keeps a package; False if it was there. Raises INVALID_ARGUMENT for one whose name is not its sha256, that is
        no zip file, or that would be too large when it is unpacked."""
        if hashlib.sha256(content).hexdigest() != name:
            raise ApiError(
                "package-differs", f"the package's sha256 is {hashlib.sha256(content).hexdigest()}, not {name}."
            )
        if self.has(name):
            return False
        self._check(content)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with AtomicFile(str(self._path(name))) as file:
            file.write(content)
        return True

    def contains(self, name: str, path: str) -> bool:
        """Whether the package has that file or folder, named from its root. Raises FileNotFoundError for a package
        that is gone."""
        wanted = os.path.normpath(path)
        with zipfile.ZipFile(self._path(name)) as package:
            return any(each == wanted or each.startswith(f"{wanted}/") for each in package.namelist())

    def unpack(self, name: str, into: Path) -> None:
        """Raises FileNotFoundError for a package that is gone, OSError."""
        with zipfile.ZipFile(self._path(name)) as package:
            for entry in package.infolist():
                # never outside of `into`: zipfile drops what leads there
                path = package.extract(entry, into)
                if mode := entry.external_attr >> 16 & 0o777:
                    os.chmod(path, mode | 0o400)

    def forget(self, before: float) -> None:
        """Removes the packages that nobody has asked for since that moment."""
        if not self._folder.is_dir():
            return
        for path in self._folder.glob("*.zip"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.zip"

    def _check(self, content: bytes) -> None:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as package:
                size = sum(entry.file_size for entry in package.infolist())
                broken = package.testzip() if size <= self._limit else None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise ApiError("package-not-zip", f"the package is not a zip file: {error}.") from None
        if size > self._limit:
            raise ApiError("package-too-large", f"the package has {size} bytes unpacked; {self._limit} are accepted.")
        if broken is not None:
            raise ApiError("package-broken", f"the package is broken at {broken!r}.")
