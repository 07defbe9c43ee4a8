"""Files of stores, open: `UrlReader` reads by ranges, `UrlWriter` writes what appears whole or not at all.

Neither holds more than a few pieces of a large file in memory. Used by url_files.py; file_names.py says how a file of
each scheme appears. Not thread-safe; methods block on the network and raise OSError.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import sys
from typing import Any

from tenfold_core.file_names import COMMIT, PUT, RENAME, Scheme
from tenfold_core.url_errors import as_os_error, attempt

#: Bytes of a file that are asked for together; a file that has no more comes by one request.
READ_BLOCK = 4 << 20
#: Bytes that are written before a file becomes a multipart upload, and those of a part: 10,000 parts are 320 GB, and
#: two of them are in memory.
PART = 32 << 20


class UrlReader(io.RawIOBase):
    """A file to read from, at any place. What is read is of one version where the store can tell (S3's ETag)."""

    def __init__(self, url: str, fs: Any, path: str) -> None:
        super().__init__()
        self.url = url
        self._fs, self._path = fs, path
        #: What it is read from, once something was; set first, because a file that is not there is closed too.
        self._inner: Any = None
        info = attempt(url, lambda: fs.info(path))
        if info["type"] == "directory":
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        self._at = 0
        if info["size"] is None:  # as some web servers
            self._inner = io.BytesIO(attempt(url, lambda: fs.cat_file(path)))
            info = {"size": len(self._inner.getbuffer())}
        self.size = int(info["size"])

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if at < 0:
            raise OSError(errno.EINVAL, f"a place before the beginning: {at}")
        self._at = at
        return at

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer).cast("B") as out:
            count = min(len(out), self.size - self._at)
            if count <= 0:
                return 0
            data = attempt(self.url, lambda: self._read(count))
            out[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, count: int) -> bytes:
        if self._inner is None:
            self._inner = self._whole() if self.size <= READ_BLOCK else self._ranges()
        try:
            self._inner.seek(self._at)
            return bytes(self._inner.read(count))
        except Exception:
            self._close_inner()
            raise

    def _whole(self) -> io.BytesIO:
        data = self._fs.cat_file(self._path)
        if len(data) != self.size:
            raise OSError(errno.ESTALE, f"it was replaced while it was read: {len(data)} bytes, not {self.size}")
        return io.BytesIO(data)

    def _ranges(self) -> Any:
        return self._fs.open(self._path, "rb", block_size=READ_BLOCK)

    def _close_inner(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            with contextlib.suppress(Exception):
                inner.close()

    def close(self) -> None:
        if not self.closed:
            self._close_inner()
        super().close()


class UrlWriter(io.RawIOBase):
    """A file that is written and then appears, by `publish`; `discard` leaves nothing.

    With `at_close` closing publishes it, and `flush` shows what is there so far, while that is less than a part: a
    store has no append, so each flush sends all of it. A write that failed is not published.
    """

    def __init__(self, url: str, fs: Any, path: str, row: Scheme, *, at_close: bool) -> None:
        super().__init__()
        self.url = url
        self._fs, self._path, self._row, self._at_close = fs, path, row, at_close
        #: What was written, until it is too much to be kept.
        self._held = bytearray()
        #: The upload that takes the rest, and the name it goes to where that is another first.
        self._stream: Any = None
        self._temporary = f"{path}.tempstate{secrets.randbits(64)}"
        self._size = 0
        self._shown = -1
        self._is_prepared = self._is_over = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        piece = memoryview(data).cast("B")
        if self._stream is None and (self._row.publish == PUT or len(self._held) + len(piece) <= PART):
            self._held += piece
        else:
            try:
                self._send(piece)
            except BaseException:
                self.discard()
                raise
        self._size += len(piece)
        return len(piece)

    def flush(self) -> None:
        if not self.closed and self._at_close and not self._is_over and self._stream is None:
            self._show()
        super().flush()

    def prepare(self) -> None:
        """Sends all that was written: publishing is a single request then. The last write was before."""
        if self._is_prepared or self._stream is None:
            return
        try:
            self._stream.close()
        except Exception as error:
            raise as_os_error(self.url, error) from error
        self._is_prepared = True

    def publish(self) -> None:
        """Gives the file its name."""
        if self._is_over:
            return
        self.prepare()
        if self._stream is None:
            self._show()
        elif self._row.publish == COMMIT:
            attempt(self.url, self._stream.commit)
        else:
            self._rename()
        self._is_over = True
        self._held, self._stream = bytearray(), None

    def discard(self) -> None:
        """Leaves nothing of what was not published. Never raises."""
        stream, self._stream, self._is_over = self._stream, None, True
        self._held = bytearray()
        if stream is None:
            return
        with contextlib.suppress(Exception):
            if self._row.publish == COMMIT:
                stream.closed = True  # its own close would publish nothing, but send the rest
                stream.discard()
            else:
                stream.close()
                self._fs.rm_file(self._temporary)

    def close(self) -> None:
        if self.closed:
            return
        try:
            # the library's thread is gone when the interpreter ends: waiting for it would be for ever
            if self._at_close and not self._is_over and not sys.is_finalizing():
                self.publish()
            else:
                self.discard()
        finally:
            self._at_close = False
            super().close()

    def _send(self, piece: memoryview) -> None:
        try:
            if self._stream is None:
                commits = self._row.publish == COMMIT
                more = {"autocommit": False} if commits else {}
                name = self._path if commits else self._temporary
                self._stream = self._fs.open(name, "wb", block_size=PART, **more)
                held, self._held = self._held, bytearray()
                self._stream.write(bytes(held))
            self._stream.write(bytes(piece))
        except Exception as error:
            raise as_os_error(self.url, error) from error

    def _show(self) -> None:
        """What was written as the file, by one put."""
        if self._shown == self._size:
            return
        data = bytes(self._held)
        if self._row.publish != RENAME:
            attempt(self.url, lambda: self._fs.pipe_file(self._path, data))
        else:
            attempt(self.url, lambda: self._fs.pipe_file(self._temporary, data))
            self._rename()
        self._shown = self._size

    def _rename(self) -> None:
        try:
            attempt(self.url, lambda: self._fs.mv(self._temporary, self._path))
        except OSError:
            with contextlib.suppress(Exception):
                self._fs.rm_file(self._temporary)
            raise
