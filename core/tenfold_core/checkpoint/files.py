"""Files that appear whole or not at all: written under a temporary name, flushed to the disk, then renamed.

Where a file elsewhere (a URL) is written, all of it is sent, and one request makes it appear: url_streams.py. Used by
bundle_writer.py, merge.py and v1.py, and by the kernels of cpu/io.py for the texts of errors. The temporary
names are TensorFlow's (`.tempstate` and a number), so that its tools know what a killed task left behind.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING, BinaryIO, cast

from tenfold_core import errors
from tenfold_core.file_errors import os_error, os_errors
from tenfold_core.file_names import is_url
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from types import TracebackType

    from tenfold_core.url_streams import UrlWriter


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
        #: What takes it, if it lies elsewhere.
        self._url: UrlWriter | None = None
        with os_errors(path):
            if is_url(path):
                self._url = files.create_unpublished(path)
            #: Buffered by us in large pieces: tensors go straight through.
            self.out = cast("BinaryIO", self._url) if self._url is not None else files.create(self._temporary)

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
            if self._url is not None:
                self._url.prepare()
            else:
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
                if self._url is not None:
                    self._url.publish()
                    self._url.close()
                    return
                self.out.close()
                self._files.replace(self._temporary, self.path)
                if sync:
                    self._files.sync_folder(os.path.dirname(self.path) or ".")
        except errors.OpError:
            self.discard()
            raise

    def discard(self) -> None:
        """Removes what was written. Never raises."""
        if self._url is not None:
            self._url.close()
            return
        with contextlib.suppress(OSError):
            self.out.close()
        with contextlib.suppress(OSError, errors.OpError):
            self._files.unlink(self._temporary)


def make_folder(path: str, *, files: Files = EVERYWHERE) -> None:
    """Makes one folder, not its parents, unless it is there: what TensorFlow does before it writes a checkpoint."""
    with os_errors(path), contextlib.suppress(FileExistsError):
        files.make_folder(path or ".")
