"""Reads a checkpoint of format V2, a tensor bundle: `P.index` says where each tensor lies in `P.data-*`.

Bytes go from the file straight into the tensor's own memory, a piece at a time, and are checksummed on the way; no
size that a file claims is believed before it was held against the file's real size. Follows tensor_bundle.cc.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import crc32c, dtypes, errors
from tenfold_core.checkpoint.coding import get_varint
from tenfold_core.checkpoint.slices import MAX_RANK, TensorSlice, overlap
from tenfold_core.checkpoint.table import SSTable
from tenfold_core.file_errors import os_errors
from tenfold_core.files import EVERYWHERE, Files, Opened
from tenfold_core.memory_limits import has_arrays
from tenfold_protos import tensor_bundle_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.dtypes import DType

_CONSUMER = 1
#: Read, and checksummed, this much at a time: what the processor's cache holds.
_PIECE = 1 << 20
#: Bytes of the widest element.
_WIDEST = 16

Entry = tensor_bundle_pb2.BundleEntryProto


def meta_filename(prefix: str) -> str:
    """The name of a bundle's index."""
    return f"{prefix}.index"


def data_filename(prefix: str, shard: int, num_shards: int) -> str:
    """The name of one of a bundle's data files."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


class BundleReader:
    """One bundle, open. `with BundleReader(prefix) as reader: reader.read("w")`. Not thread-safe; blocks on the disk.

    Raises NotFoundError for files and names that are not there, DataLossError for damage (naming file, tensor and
    offset), UnimplementedError for a bundle of another byte order or a newer format.
    """

    def __init__(self, prefix: str, *, files: Files = EVERYWHERE) -> None:
        self.prefix = prefix
        self._opener = files
        self._files: dict[int, Opened] = {}
        self._table = SSTable(meta_filename(prefix), files=files)
        try:
            self._header = self._read_header()
        except BaseException:
            self._table.close()
            raise

    def close(self) -> None:
        self._table.close()
        while self._files:
            self._files.popitem()[1].close()

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def num_shards(self) -> int:
        """How many data files there are."""
        return self._header.num_shards

    def raw_entries(self) -> Iterator[tuple[bytes, Entry]]:
        """Every key but the header's with its entry, parts of tensors included: for merging."""
        return ((key, self._entry(key)) for key, _ in self._table.items() if key)

    def names(self) -> list[str]:
        """Every tensor, whole or in parts, sorted."""
        return [key.decode("utf-8", "surrogateescape") for key, _ in self._entries()]

    def shapes(self) -> dict[str, tuple[DType, tuple[int, ...]]]:
        """Name → type and whole shape."""
        return {name: self.dtype_and_shape(name) for name in self.names()}

    def contains(self, name: str) -> bool:
        return self._table.get(_key(name)) is not None

    def dtype_and_shape(self, name: str) -> tuple[DType, tuple[int, ...]]:
        """The type and the whole shape of a tensor."""
        entry = self._entry(_key(name))
        return self._dtype(name, entry), self._shape(name, entry)

    def slices(self, name: str) -> list[TensorSlice]:
        """The parts that a tensor is stored in; none for one that is stored whole."""
        return [self._slice(name, proto) for proto in self._entry(_key(name)).slices]

    def place(self, name: str) -> tuple[int, int]:
        """Shard and offset, the order in which reading is cheapest."""
        entry = self._entry(_key(name))
        return entry.shard_id, entry.offset

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """The whole tensor, joined if it is stored in parts; the caller's own."""
        key = _key(name)
        entry = self._entry(key)
        if entry.slices:
            return self.read_slice(name, TensorSlice.full(len(entry.shape.dim)))
        return self._value(name, entry)

    def read_slice(self, name: str, part: TensorSlice) -> np.ndarray[Any, Any]:
        """A part of a tensor, however it is stored. Raises InvalidArgumentError where stored parts leave gaps."""
        key = _key(name)
        entry = self._entry(key)
        shape, dtype = self._shape(name, entry), self._dtype(name, entry)
        wanted = part.bounds(shape)
        if not entry.slices:
            return np.asarray(self._value(name, entry)[tuple(slice(a, b) for a, b in wanted)], order="C")
        size = part.shape_in(shape)
        missing = math.prod(size)
        pieces = {}
        for proto in entry.slices:
            stored = self._slice(name, proto)
            meets = overlap(wanted, self._bounds(name, stored, shape))
            if meets is None or stored in pieces:
                continue
            stored_entry = self._entry(stored.key(key))
            if stored_entry.dtype != entry.dtype or self._shape(name, stored_entry) != stored.shape_in(shape):
                raise self._damaged(name, stored_entry, f"slice {stored} has another type or shape than the tensor")
            self._located(name, stored_entry)
            pieces[stored] = stored_entry, *meets
            missing -= math.prod(s.stop - s.start for s in meets[0])
        if missing > 0:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Does not have sufficient slices for partitioned tensor {name} to restore in slice_spec: {part}",
            )
        # Only now, when so much is known to be in the files, memory is taken for it. Zeros, not leftovers of the heap,
        # should a damaged file's parts overlap instead of filling the whole.
        out = np.zeros(size, dtype.as_numpy_dtype) if dtype is not dtypes.string else np.full(size, b"", object)
        for stored_entry, into, of in pieces.values():
            out[into] = self._value(name, stored_entry)[of]
        return out

    def _entries(self) -> Iterator[tuple[bytes, bytes]]:
        return ((key, value) for key, value in self._table.items() if key and not key.startswith(b"\x00"))

    def _read_header(self) -> tensor_bundle_pb2.BundleHeaderProto:
        value = self._table.get(b"")
        if value is None:
            raise errors.DataLossError(None, None, f"{self._table.path} is corrupted: it has no header entry")
        header = tensor_bundle_pb2.BundleHeaderProto()
        _parse(header, value, f"{self._table.path} is corrupted: its header is not parseable")
        if header.endianness != tensor_bundle_pb2.BundleHeaderProto.LITTLE:
            raise errors.UnimplementedError(
                None, None, f"TensorBundle at {self.prefix} was written by a big-endian machine; only little is read"
            )
        if header.version.min_consumer > _CONSUMER:
            raise errors.UnimplementedError(
                None,
                None,
                f"TensorBundle at {self.prefix} needs a reader of version {header.version.min_consumer}; "
                f"this one is {_CONSUMER}",
            )
        return header

    def _entry(self, key: bytes) -> Entry:
        value = self._table.get(key)
        printable = key.decode("utf-8", "backslashreplace")
        if value is None or not key:
            raise errors.NotFoundError(None, None, f"Key {printable} not found in checkpoint")
        entry = Entry()
        _parse(entry, value, f"{self._table.path} is corrupted: Entry for key {printable} not parseable.")
        return entry

    def _damaged(self, name: str, entry: Entry, what: str) -> errors.DataLossError:
        path = data_filename(self.prefix, entry.shard_id, self._header.num_shards)
        return errors.DataLossError(
            None, None, f"TensorBundle at {path}: tensor {name} at offset {entry.offset} ({entry.size} bytes): {what}"
        )

    def _dtype(self, name: str, entry: Entry) -> DType:
        try:
            dtype = dtypes.as_dtype(int(entry.dtype))
        except TypeError:
            raise self._damaged(name, entry, f"unknown type number {entry.dtype}") from None
        if dtype.is_ref_dtype:
            raise self._damaged(name, entry, f"a tensor of type {dtype.name} cannot be stored")
        return dtype

    def _shape(self, name: str, entry: Entry) -> tuple[int, ...]:
        shape = tuple(dim.size for dim in entry.shape.dim)
        if entry.shape.unknown_rank or len(shape) > MAX_RANK or any(size < 0 for size in shape):
            raise self._damaged(name, entry, f"Invalid tensor shape: {list(shape)}")
        if not has_arrays(shape, _WIDEST):
            raise self._damaged(name, entry, f"No array has the shape {list(shape)}")
        return shape

    def _slice(self, name: str, proto: Any) -> TensorSlice:
        try:
            return TensorSlice.from_proto(proto)
        except errors.InvalidArgumentError as error:
            raise errors.DataLossError(None, None, f"{self._table.path}: tensor {name}: {error.message}") from None

    def _bounds(self, name: str, part: TensorSlice, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        try:
            return part.bounds(shape)
        except errors.InternalError as error:
            raise errors.DataLossError(None, None, f"{self._table.path}: tensor {name}: {error.message}") from None

    def _value(self, name: str, entry: Entry) -> np.ndarray[Any, Any]:
        dtype, shape, file = self._located(name, entry)
        if dtype is dtypes.string:
            return self._strings(name, entry, file, math.prod(shape)).reshape(shape)
        if dtype is dtypes.variant:
            return self._variants(name, entry, file, math.prod(shape)).reshape(shape)
        out: np.ndarray[Any, Any] = np.empty(shape, dtype.as_numpy_dtype)
        self._fill(name, entry, file, out.reshape(-1).view(np.uint8))
        return out

    def _located(self, name: str, entry: Entry) -> tuple[DType, tuple[int, ...], Opened]:
        """Type, shape and file of a value whose bytes are all there. Raises what `read` raises for others."""
        dtype, shape = self._dtype(name, entry), self._shape(name, entry)
        if not dtype.is_numpy_compatible and dtype is not dtypes.variant:
            raise errors.UnimplementedError(
                None, None, f"Restoring data type {dtype.op_name} not yet supported (tensor {name})"
            )
        count = math.prod(shape)
        fixed = None if dtype in (dtypes.string, dtypes.variant) else count * np.dtype(dtype.as_numpy_dtype).itemsize
        if fixed is not None and entry.size != fixed:
            raise self._damaged(name, entry, f"Invalid size in bundle entry: stored {entry.size}; expected {fixed}")
        # Each string has at least its length, a byte; and there is the checksum of the lengths.
        if fixed is None and entry.size < count + 4:
            raise self._damaged(name, entry, f"Invalid size in bundle entry: {count} strings do not fit {entry.size}")
        file = self._file(name, entry)
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > file.size:
            raise self._damaged(name, entry, f"the file ends before the tensor does, at {file.size}")
        return dtype, shape, file

    def _file(self, name: str, entry: Entry) -> Opened:
        """The entry's data file."""
        found = self._files.get(entry.shard_id)
        if found is None:
            if not 0 <= entry.shard_id < max(self._header.num_shards, 1):
                raise self._damaged(name, entry, f"shard {entry.shard_id} of {self._header.num_shards}")
            path = data_filename(self.prefix, entry.shard_id, self._header.num_shards)
            with os_errors(path):
                found = self._files[entry.shard_id] = self._opener.open_by_places(path)
        return found

    def _fill(self, name: str, entry: Entry, file: Opened, out: np.ndarray[Any, Any]) -> None:
        """Reads the entry's bytes into `out` (uint8) and holds them against their checksum."""
        crc = self._read_pieces(name, entry, file, out)
        self._check(name, entry, crc)

    def _read_pieces(self, name: str, entry: Entry, file: Opened, out: np.ndarray[Any, Any]) -> int:
        crc = at = 0
        with os_errors(data_filename(self.prefix, entry.shard_id, self._header.num_shards)):
            while at < out.size:
                piece = out[at : at + _PIECE]
                got = file.read_into(piece.data, entry.offset + at)
                if not got:
                    raise self._damaged(name, entry, f"the file ended after {at} bytes of the tensor")
                crc = crc32c.extend(crc, piece[:got])
                at += got
        return crc

    def _check(self, name: str, entry: Entry, crc: int) -> None:
        stored = crc32c.unmask(entry.crc32c)
        if stored != crc:
            raise self._damaged(
                name,
                entry,
                f"Checksum does not match: stored {stored:08d} vs. calculated on the restored bytes {crc:08d}",
            )

    def _strings(self, name: str, entry: Entry, file: Opened, count: int) -> np.ndarray[Any, Any]:
        """Strings: their lengths as varints, the lengths' checksum, then their bytes one after the other."""
        raw = np.empty(entry.size, np.uint8)
        self._read_pieces(name, entry, file, raw)
        data = raw.tobytes()
        lengths = []
        at = 0
        try:
            for _ in range(count):
                length, at = get_varint(data, at)
                lengths.append(length)
        except ValueError as error:
            raise self._damaged(name, entry, str(error)) from None
        if at + 4 + sum(lengths) != len(data):
            raise self._damaged(name, entry, f"String lengths longer than expected offset {len(data)}")
        crc = crc32c.value(b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths))
        check = data[at : at + 4]
        if crc32c.unmask(struct.unpack("<I", check)[0]) != crc:
            raise self._damaged(name, entry, "The length checksum does not match")
        self._check(name, entry, crc32c.extend(crc32c.extend(crc, check), data[at + 4 :]))
        out = np.empty(count, object)
        at += 4
        for i, length in enumerate(lengths):
            out[i] = data[at : at + length]
            at += length
        return out

    def _variants(self, name: str, entry: Entry, file: Opened, count: int) -> np.ndarray[Any, Any]:
        """Messages, as bytes: each has its length before it and a checksum of all so far behind it."""
        raw = np.empty(entry.size, np.uint8)
        self._read_pieces(name, entry, file, raw)
        data = raw.tobytes()
        out = np.empty(count, object)
        at = crc = 0
        for i in range(count):
            try:
                length, at = get_varint(data, at)
            except ValueError as error:
                raise self._damaged(name, entry, str(error)) from None
            end = at + length
            if end + 4 > len(data):
                raise self._damaged(name, entry, f"Variant {i} of {length} bytes goes beyond the entry's end")
            out[i] = data[at:end]
            crc = crc32c.extend(crc32c.extend(crc, struct.pack("<Q", length)), out[i])
            check = data[end : end + 4]
            if crc32c.unmask(struct.unpack("<I", check)[0]) != crc:
                raise self._damaged(name, entry, f"The checksum after Variant {i} does not match.")
            crc = crc32c.extend(crc, check)
            at = end + 4
        self._check(name, entry, crc)
        return out


def _parse(message: Any, value: bytes, failure: str) -> None:
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(value)
    except DecodeError:
        raise errors.DataLossError(None, None, failure) from None


def _key(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
