"""The files of stores and other machines, by their URLs: what files.py does for paths, through fsspec.

fsspec's file systems differ in what they raise, what they remember and what a folder is; that is made one here. Nothing
is remembered of a listing, as other tasks write too; a bucket is neither made nor deleted. All functions block on the
network, with the deadline of url_errors.py, and raise OSError. Decision 0169.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import functools
import io
import os
import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from tenfold_core.file_names import RENAME, library, row, scheme_of
from tenfold_core.url_errors import attempt
from tenfold_core.url_streams import UrlReader, UrlWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Copied this much at a time between file systems.
_PIECE = 4 << 20
_MAGIC = re.compile(r"[*?\[]")


class FileStat(NamedTuple):
    """What is known of a file without reading it. The time is that of its last change, in ns since the epoch."""

    size: int
    mtime_ns: int
    is_folder: bool


class _Shown(io.BufferedWriter):
    """What is flushed is seen by readers, as that of a file of this machine."""

    def flush(self) -> None:
        super().flush()
        self.raw.flush()


class _Place(NamedTuple):
    """A URL, taken apart."""

    fs: Any
    #: The name as its file system knows it.
    path: str
    #: What stands before such a name in a URL.
    prefix: str


def _place(url: str) -> _Place:
    scheme = scheme_of(url)
    rest = url.partition("://")[2]
    if "\0" in url or {".", ".."} & set(rest.split("/")):
        raise OSError(errno.EINVAL, "the name of a URL may not hold '.' or '..' as a folder, nor a null byte")
    kind = library(scheme, url)
    host = rest.partition("/")[0] if row(url).has_host else ""

    def opened() -> _Place:
        fs = _file_system(scheme, tuple(sorted(kind._get_kwargs_from_urls(url).items())))
        return _Place(fs, fs._strip_protocol(url), f"{scheme}://{host}")

    return attempt(url, opened)


@functools.lru_cache(maxsize=64)
def _file_system(scheme: str, options: tuple[tuple[str, Any], ...]) -> Any:
    import fsspec

    return fsspec.filesystem(scheme, use_listings_cache=False, **dict(options))


def _url(place: _Place, name: str) -> str:
    if place.prefix.endswith("://"):
        return place.prefix + name.lstrip("/")
    return f"{place.prefix}/{name.lstrip('/')}"


# -- files -------------------------------------------------------------------------------------------------------------


def open_to_read(url: str) -> BinaryIO:
    """The file, at any place of it, in a buffer."""
    place = _place(url)
    return cast("BinaryIO", io.BufferedReader(UrlReader(url, place.fs, place.path), 1 << 16))


def create(url: str) -> BinaryIO:
    """The file, to write to: it appears when it is closed, and so far as it is there with each flush."""
    place = _place(url)
    _refuse_folder(place)
    return cast("BinaryIO", _Shown(UrlWriter(url, place.fs, place.path, row(url), at_close=True), 1 << 16))


def append(url: str) -> BinaryIO:
    """As `create`, and what is there comes first: it is read and sent anew."""
    found = None
    with contextlib.suppress(FileNotFoundError):
        found = open_to_read(url)
    out = create(url)
    if found is not None:
        with found:
            while piece := found.read(_PIECE):
                out.write(piece)
    return out


def create_unpublished(url: str) -> UrlWriter:
    """The file, to write to; its `publish` makes it appear."""
    place = _place(url)
    _refuse_folder(place)
    return UrlWriter(url, place.fs, place.path, row(url), at_close=False)


def stat(url: str) -> FileStat:
    place = _place(url)
    info = attempt(url, lambda: place.fs.info(place.path))
    return FileStat(int(info.get("size") or 0), _changed(info), info["type"] == "directory")


def find(url: str) -> FileStat | None:
    """As `stat`; None where there is nothing, which is not the same as a store that cannot be asked."""
    try:
        return stat(url)
    except FileNotFoundError:
        return None


def replace(source: str, destination: str) -> None:
    """Another name for a file, or for all files of a folder. Where no such thing is, a copy and its end."""
    here, there = _place(source), _place(destination)
    if row(source).publish == RENAME and here.fs is there.fs:
        attempt(source, lambda: here.fs.mv(here.path, there.path))
        return
    found = stat(source)
    if not found.is_folder:
        copy(source, destination)
        unlink(source)
        return
    names = attempt(source, lambda: here.fs.find(here.path))
    for name in names:
        copy(_url(here, name), destination.rstrip("/") + name[len(here.path.rstrip("/")) :])
    remove_tree(source)


def copy(source: str, destination: str) -> None:
    """A second file with the same bytes; within one store they do not come here."""
    here, there = _place(source), _place(destination)
    if here.fs is there.fs and row(source).publish != RENAME:
        attempt(source, lambda: here.fs.cp_file(here.path, there.path))
        return
    with open_to_read(source) as read:
        fill(destination, read)


def fill(url: str, read: BinaryIO) -> None:
    """A file with all that `read` still has; it appears whole."""
    out = create_unpublished(url)
    try:
        while piece := read.read(_PIECE):
            out.write(piece)
        out.publish()
    finally:
        out.close()


def unlink(url: str) -> None:
    place = _place(url)
    if stat(url).is_folder:  # stores say nothing of what was not there
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    with contextlib.suppress(FileNotFoundError):  # gone with an earlier try
        attempt(url, lambda: place.fs.rm_file(place.path))


# -- folders -----------------------------------------------------------------------------------------------------------


def make_folder(url: str) -> None:
    """One folder, not its parents, where there are folders. Raises FileExistsError."""
    place = _place(url)
    if row(url).has_folders and place.path.strip("/"):
        if find(url) is not None:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
        attempt(url, lambda: place.fs.makedirs(place.path, exist_ok=True))


def make_folders(url: str) -> None:
    """A folder and its parents, where there are folders."""
    place = _place(url)
    if row(url).has_folders and place.path.strip("/"):
        attempt(url, lambda: place.fs.makedirs(place.path, exist_ok=True))


def remove_folder(url: str) -> None:
    """An empty folder. Raises an OSError for others."""
    place = _place(url)
    if not row(url).has_folders:
        return
    if names(url):  # not every library looks
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
    attempt(url, lambda: place.fs.rmdir(place.path))


def remove_tree(url: str) -> None:
    """A folder with all below it. Raises an OSError for a whole bucket or file system."""
    place = _place(url)
    if not place.path.strip("/") or (not row(url).has_folders and "/" not in place.path.strip("/")):
        raise OSError(errno.EPERM, "this is a whole bucket or file system, which is not deleted: name a folder of it")
    stat(url)
    with contextlib.suppress(FileNotFoundError):
        attempt(url, lambda: place.fs.rm(place.path, recursive=True))


def names(url: str) -> list[str]:
    """The names in a folder, sorted. Raises FileNotFoundError where there is none."""
    place = _place(url)
    own = place.path.strip("/")
    found = attempt(url, lambda: place.fs.ls(place.path, detail=False))
    # a store may list the folder's own mark
    return sorted({os.path.basename(name.rstrip("/")) for name in found if name.strip("/") != own})


def walk(url: str, top_down: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, its folders, its files) for each folder of a tree; nothing where there is none."""
    place = _place(url)
    try:
        found = attempt(url, lambda: place.fs.ls(place.path, detail=True))
    except FileNotFoundError:
        return
    own = place.path.strip("/")
    folders: list[str] = []
    files: list[str] = []
    for info in found:
        name = info["name"].rstrip("/")
        if name.strip("/") != own:
            (folders if info["type"] == "directory" else files).append(os.path.basename(name))
    folders.sort()
    files.sort()
    if top_down:
        yield url, folders, files
    for name in folders:
        yield from walk(f"{url.rstrip('/')}/{name}", top_down)
    if not top_down:
        yield url, folders, files


def matching(pattern: str, *, folders: bool = True) -> list[str]:
    """The URLs that match a shell pattern, sorted; `*` ends at a slash. Without `folders` those of files only."""
    if not _MAGIC.search(pattern):
        found = find(pattern)
        return [] if found is None or (found.is_folder and not folders) else [pattern]
    place = _place(pattern)
    infos = attempt(pattern, lambda: place.fs.glob(place.path, detail=True))
    return sorted(
        _url(place, name.rstrip("/")) for name, info in infos.items() if folders or info["type"] != "directory"
    )


def _refuse_folder(place: _Place) -> None:
    if not os.path.basename(place.path):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))


def _changed(info: dict[str, Any]) -> int:
    """When a file was changed, in ns since the epoch; 0 where its store does not say."""
    for key in ("LastModified", "mtime", "updated", "last_modified", "created"):
        found = info.get(key)
        if isinstance(found, str) and found:
            with contextlib.suppress(ValueError):
                found = datetime.datetime.fromisoformat(found)
        if isinstance(found, datetime.datetime):
            if found.tzinfo is None:
                found = found.replace(tzinfo=datetime.UTC)
            return int(found.timestamp() * 1_000_000_000)
        if isinstance(found, (int, float)):
            return int(found * 1_000_000_000)
    return 0
