"""Files that appear whole or not at all: written under a temporary name, flushed to the disk, then renamed.

Used by bundle_writer.py, merge.py and v1.py, and by the kernels of cpu/io.py for the texts of errors. The temporary
names are TensorFlow's (`.tempstate` and a number), so that its tools know what a killed task left behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from typing import TYPE_CHECKING, BinaryIO

from tenfold_core import errors
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

#: What TensorFlow takes for the scheme of a file's name.
_SCHEME = re.compile(r"([a-zA-Z][0-9a-zA-Z.]*)://")

_CLASSES: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.FailedPreconditionError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
}


def os_error(name: str, error: OSError) -> errors.OpError:
    """The step's error for what the operating system said of a file: TensorFlow's class and its `NAME; reason`."""
    kind = _CLASSES.get(error.errno or 0, errors.UnknownError)
    return kind(None, None, f"{name}; {error.strerror or error}")


def local_path(name: bytes | str) -> str:
    """The name of a file on this machine: `file://` in front of it is TensorFlow's way to say so.

    Raises UnimplementedError for another scheme, such as `hdfs://`, which would else become a folder of that name.
    """
    path = os.fsdecode(name)
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    if scheme[1] != "file":
        raise errors.UnimplementedError(
            None,
            None,
            f"File system scheme '{scheme[1]}' not implemented (file: '{path}'). There are the files of this machine: "
            "a path, or file:// before it; mount what lies elsewhere.",
        )
    return path[len("file://") :]


@contextlib.contextmanager
def os_errors(name: str) -> Iterator[None]:
    """Turns an OSError of the block into the step's error about the file `name`."""
    try:
        yield
    except OSError as error:
        raise os_error(name, error) from None
    except ValueError as error:  # a name with a zero byte in it
        raise errors.InvalidArgumentError(None, None, f"{name!r}; {error}") from None


class AtomicFile:
    """`with AtomicFile(path) as out:` writes beside `path` and renames at the end; an error leaves nothing behind.

    Reaches the disk before the rename, so that a crash of the machine cannot leave a file of zeros under the name. What
    the disk says to a write in the block becomes the step's error, with the file's name.
    """

    def __init__(self, path: str, *, files: Files = EVERYWHERE) -> None:
        self.path = path
        self._files = files
        self._temporary = f"{path}.tempstate{secrets.randbits(64)}"
        #: Whether all of it has reached the disk.
        self._prepared = False
        with os_errors(path):
            #: Buffered by us in large pieces: tensors go straight through.
            self.out: BinaryIO = files.create(self._temporary)

    def __enter__(self) -> BinaryIO:
        return self.out

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self.publish()
            return
        self.discard()
        if isinstance(error, OSError) and error.filename is None:  # of a write, which knows no name
            raise os_error(self.path, error) from None

    def prepare(self) -> None:
        """Brings all that was written to the disk: publishing only renames then. The last write was before. Raises the
        step's error.
        """
        if self._prepared:
            return
        with os_errors(self.path):
            self.out.flush()
            os.fsync(self.out.fileno())
        self._prepared = True

    def publish(self, *, sync: bool = True) -> None:
        """Flushes, and gives the file its name. Raises the step's error where that fails, and removes the rest.

        Without `sync` the name itself has not reached the disk; the caller that publishes another file there does that.
        """
        try:
            self.prepare()
            with os_errors(self.path):
                self.out.close()
                self._files.replace(self._temporary, self.path)
                if sync:
                    self._files.sync_folder(os.path.dirname(self.path) or ".")
        except errors.OpError:
            self.discard()
            raise

    def discard(self) -> None:
        """Removes what was written. Never raises."""
        with contextlib.suppress(OSError):
            self.out.close()
        with contextlib.suppress(OSError, errors.OpError):
            self._files.unlink(self._temporary)


def make_folder(path: str, *, files: Files = EVERYWHERE) -> None:
    """Makes one folder, not its parents, unless it is there: what TensorFlow does before it writes a checkpoint."""
    with os_errors(path), contextlib.suppress(FileExistsError):
        files.make_folder(path or ".")
