"""Names of files: a path of this machine, or the URL of another file system, such as `s3://bucket/train/model.ckpt`.

`SCHEMES` is the table of those file systems, a row each; url_files.py works on them through fsspec, which is imported
when the first URL is seen. The functions here are what os.path is for paths, for both.
"""

from __future__ import annotations

import functools
import os
import re
from importlib import import_module
from typing import Any, NamedTuple

from tenfold_core import errors

#: What TensorFlow takes for the scheme of a file's name.
_SCHEME = re.compile(r"([a-zA-Z][0-9a-zA-Z.]*)://")

#: How a file appears whole: an upload that is committed, one put of all bytes, or another name that is changed.
COMMIT, PUT, RENAME = "commit", "put", "rename"


class Scheme(NamedTuple):
    """A file system by the scheme of its URLs."""

    #: The extra of the distribution that brings its library.
    extra: str
    publish: str
    #: Whether there are folders, or only names with slashes in them.
    has_folders: bool
    #: Whether the part behind `://` is a host; else it is a bucket, or a part of the path.
    has_host: bool
    #: Where its library looks for credentials, for the message when there are none.
    credentials: str
    #: What fsspec needs besides, and imports late.
    module: str = ""


_AWS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile (AWS_PROFILE, ~/.aws), or the role of the machine"
_GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default login`, or the account of the machine"
_S3 = Scheme("s3", COMMIT, False, False, _AWS)
_GS = Scheme("gs", COMMIT, False, False, _GOOGLE)

#: What graphs may name. A program itself may also use what else fsspec knows, as `_OTHER`.
SCHEMES = {
    "s3": _S3,
    "s3a": _S3,
    "gs": _GS,
    "gcs": _GS,
    "hdfs": Scheme("hdfs", RENAME, True, True, "the user of the process, or a Kerberos ticket (kinit)", "pyarrow"),
    "memory": Scheme("storage", PUT, True, False, ""),
}
_OTHER = Scheme("storage", RENAME, True, True, "what its library says")


def scheme_of(path: str) -> str:
    """The scheme of a URL; empty for a path of this machine, `file://` before it or not."""
    if "://" not in path:
        return ""
    found = _SCHEME.match(path)
    return "" if found is None or found[1] == "file" else found[1]


def is_url(path: str) -> bool:
    """Whether the name is that of a file elsewhere."""
    return scheme_of(path) != ""


def row(path: str) -> Scheme:
    """The row of a URL's scheme."""
    return SCHEMES.get(scheme_of(path), _OTHER)


def file_path(name: bytes | str) -> str:
    """The name as `Files` takes it: a URL as it is, a path without the `file://` that may stand before it.

    Raises UnimplementedError for a scheme that nothing here opens, and for one whose library is not installed.
    """
    path = os.fsdecode(name)
    if "://" not in path:
        return path
    found = _SCHEME.match(path)
    if found is None:
        return path
    if found[1] == "file":
        return path[len("file://") :]
    library(found[1], path)
    return path


def library(scheme: str, path: str) -> Any:
    """fsspec's class for a scheme; imports it. Raises UnimplementedError, as `file_path`."""
    try:
        return _library(scheme)
    except ValueError:
        known = ", ".join(f"{each}://" for each in SCHEMES)
        why = f"There are paths of this machine, file:// before them or not, and {known}"
        why += "; mount what lies elsewhere."
    except ImportError as error:
        extra = SCHEMES.get(scheme, _OTHER).extra
        why = f"Its library is not installed ({error}): pip install 'tenfold[{extra}]', or mount it and give a path."
    raise errors.UnimplementedError(
        None, None, f"File system scheme '{scheme}' not implemented (file: '{path}'). {why}"
    ) from None


@functools.cache
def _library(scheme: str) -> Any:
    import fsspec

    found = fsspec.get_filesystem_class(scheme)
    if module := SCHEMES.get(scheme, _OTHER).module:
        import_module(module)
    return found


# -- what os.path is for paths -----------------------------------------------------------------------------------------


def is_absolute(path: str) -> bool:
    """Whether the name means the same wherever it stands."""
    return os.path.isabs(path) or _SCHEME.match(path) is not None


def join(folder: str, *names: str) -> str:
    """A name within a folder; a URL or an absolute path among `names` begins anew."""
    for name in names:
        folder = name if _SCHEME.match(name) else os.path.join(folder, name)
    return folder


def parent(path: str) -> str:
    """The folder of a name; that of a URL keeps its scheme and its bucket or host."""
    if not is_url(path):
        return os.path.dirname(path)
    scheme, _, rest = path.partition("://")
    return f"{scheme}://{rest.rpartition('/')[0]}"


def relative(path: str, folder: str) -> str:
    """`path` as seen from `folder`; a URL that does not lie below it stays as it is."""
    if not is_url(path) and not is_url(folder):
        return os.path.relpath(path, folder)
    return path.removeprefix(folder.rstrip("/") + "/")


def is_within(path: str, folder: str) -> bool:
    """Whether a URL is `folder`, also a URL, or lies below it."""
    folder = folder.rstrip("/")
    return path == folder or path.startswith(folder + "/")
