"""Writes a checkpoint of format V2, a tensor bundle: `P.data-00000-of-00001` and the index `P.index`.

Tensors go to the data file as they are added; the index, which makes the bundle exist, is written last. Both files
appear under their names only when they are whole. Used by the kernel SaveV2. Follows tensor_bundle.cc.
"""

from __future__ import annotations

import contextlib
import struct
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import crc32c, dtypes, errors
from tenfold_core.checkpoint.bundle_reader import data_filename, meta_filename
from tenfold_core.checkpoint.coding import put_varint
from tenfold_core.checkpoint.files import AtomicFile, make_folder
from tenfold_core.checkpoint.table import TableWriter
from tenfold_core.file_errors import os_error
from tenfold_core.file_names import parent
from tenfold_core.files import EVERYWHERE, Files
from tenfold_protos import tensor_bundle_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.checkpoint.slices import TensorSlice
    from tenfold_core.dtypes import DType

#: The version of the format that is written here.
PRODUCER = 1
#: Written, and checksummed, this much at a time: what the processor's cache holds.
_PIECE = 1 << 20


class BundleWriter:
    """`with BundleWriter(prefix) as writer: writer.add(…)`. Leaving the block publishes; an error leaves no file.

    Makes the folder of `prefix`, not its parents. Not thread-safe. Methods block while the disk does.
    """

    def __init__(self, prefix: str, *, files: Files = EVERYWHERE) -> None:
        self.prefix = prefix
        self._files = files
        make_folder(parent(prefix), files=files)
        self._data = AtomicFile(data_filename(prefix, 0, 1), files=files)
        self._size = 0
        self._entries: dict[bytes, tensor_bundle_pb2.BundleEntryProto] = {}

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def add(self, name: str, value: np.ndarray[Any, Any], dtype: DType | None = None) -> None:
        """Adds a whole tensor. Raises InvalidArgumentError for a name that is there, UnimplementedError for a type
        that has no stored form.
        """
        self._add(_key(name), value, dtype)

    def add_slice(
        self,
        name: str,
        full_shape: tuple[int, ...],
        part: TensorSlice,
        value: np.ndarray[Any, Any],
        dtype: DType | None = None,
    ) -> None:
        """Adds the box `part` of a tensor of `full_shape`; other parts may come, here or in another task's bundle."""
        if part.covers(full_shape):
            self.add(name, value, dtype)
            return
        kind = _dtype(value, dtype)
        key = _key(name)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = tensor_bundle_pb2.BundleEntryProto(dtype=kind.as_datatype_enum)  # type: ignore[arg-type]
            set_shape(entry, full_shape)
        elif not entry.slices or entry.dtype != kind.as_datatype_enum or shape_of(entry) != full_shape:
            raise errors.InvalidArgumentError(
                None, None, f"Slices of {name} differ in type or whole shape, or it was also saved whole"
            )
        entry.slices.append(part.to_proto())
        self._add(part.key(key), value, kind)

    def finish(self) -> None:
        """Publishes the data file, then the index. Raises the step's error where the disk refuses; nothing is left."""
        try:
            self._data.prepare()
            write_index(self.prefix, 1, self._entries, partial(self._data.publish, sync=False), files=self._files)
        except errors.OpError:
            self._data.discard()
            with contextlib.suppress(OSError, errors.OpError):
                if not self._files.exists(meta_filename(self.prefix)):
                    self._files.unlink(self._data.path)  # the index alone was refused
            raise

    def discard(self) -> None:
        """Removes what was written so far."""
        self._data.discard()

    def _add(self, key: bytes, value: np.ndarray[Any, Any], dtype: DType | None) -> None:
        if key in self._entries:
            raise errors.InvalidArgumentError(None, None, f"Adding duplicate key: {_printable(key)}")
        kind = _dtype(value, dtype)
        try:
            if kind is dtypes.string:
                size, crc = self._write_strings(value)
            elif kind is dtypes.variant:
                size, crc = self._write_variants(value)
            else:
                size, crc = self._write_numbers(value)
        except OSError as error:
            raise os_error(self._data.path, error) from None
        entry = tensor_bundle_pb2.BundleEntryProto(
            dtype=kind.as_datatype_enum,  # type: ignore[arg-type]
            shard_id=0,
            offset=self._size,
            size=size,
            crc32c=crc32c.mask(crc),
        )
        set_shape(entry, value.shape)
        self._entries[key] = entry
        self._size += size

    def _write_numbers(self, value: np.ndarray[Any, Any]) -> tuple[int, int]:
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        crc = 0
        for at in range(0, flat.size, _PIECE):
            piece = flat[at : at + _PIECE]
            crc = crc32c.extend(crc, piece)
            self._data.out.write(piece.data)
        return flat.size, crc

    def _write_strings(self, value: np.ndarray[Any, Any]) -> tuple[int, int]:
        items: list[bytes] = value.reshape(-1).tolist()
        lengths = b"".join(put_varint(len(item)) for item in items)
        crc = crc32c.value(b"".join(struct.pack("<I" if len(i) < 1 << 32 else "<Q", len(i)) for i in items))
        check = struct.pack("<I", crc32c.mask(crc))
        crc = crc32c.extend(crc, check)
        self._data.out.write(lengths + check)
        size = len(lengths) + len(check)
        for item in items:
            crc = crc32c.extend(crc, item)
            self._data.out.write(item)
            size += len(item)
        return size, crc

    def _write_variants(self, value: np.ndarray[Any, Any]) -> tuple[int, int]:
        """Messages, as bytes: each with its length before it and a checksum of all so far behind it."""
        size = crc = 0
        for item in value.reshape(-1).tolist():
            crc = crc32c.extend(crc32c.extend(crc, struct.pack("<Q", len(item))), item)
            check = struct.pack("<I", crc32c.mask(crc))
            crc = crc32c.extend(crc, check)
            piece = put_varint(len(item)) + item + check
            self._data.out.write(piece)
            size += len(piece)
        return size, crc


def write_index(
    prefix: str,
    num_shards: int,
    entries: dict[bytes, tensor_bundle_pb2.BundleEntryProto],
    publish_data: Callable[[], None],
    *,
    files: Files = EVERYWHERE,
) -> None:
    """Writes the index of a bundle, whose data files `publish_data` puts in place: the bundle appears right afterwards.

    Where an older bundle of the name is replaced, its index does not fit the new data: between the two there are only
    renames, everything has reached the disk before.
    """
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=num_shards)
    header.version.producer = PRODUCER
    path = meta_filename(prefix)
    file = AtomicFile(path, files=files)
    with file as out:
        try:
            table = TableWriter(out)
            table.add(b"", header.SerializeToString())
            for key in sorted(entries):
                table.add(key, entries[key].SerializeToString())
            table.finish()
        except OSError as error:
            raise os_error(path, error) from None
        file.prepare()
        publish_data()


def set_shape(entry: tensor_bundle_pb2.BundleEntryProto, shape: tuple[int, ...]) -> None:
    """Writes the shape; a scalar's is there, and empty."""
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)


def shape_of(entry: tensor_bundle_pb2.BundleEntryProto) -> tuple[int, ...]:
    return tuple(dim.size for dim in entry.shape.dim)


def _dtype(value: np.ndarray[Any, Any], dtype: DType | None) -> DType:
    kind = dtypes.as_dtype(value.dtype) if dtype is None else dtype.base_dtype
    if not kind.is_numpy_compatible and kind is not dtypes.variant:
        raise errors.UnimplementedError(None, None, f"Saving data type {kind.op_name} not yet supported")
    return kind


def _key(name: str) -> bytes:
    if not name:
        raise errors.InvalidArgumentError(None, None, "A tensor cannot be saved under an empty name")
    return name.encode("utf-8", "surrogateescape")


def _printable(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")
