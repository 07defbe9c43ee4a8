"""Checkpoints of format V1: tables of SavedTensorSlices, one file a shard, values inside protos.

The ops Save, SaveSlices, Restore and RestoreSlice, and a Saver told `write_version=V1`, use it; RestoreV2 falls back
to it where there is no `.index`. Follows tensor_slice_writer.cc and tensor_slice_reader.cc.
"""

from __future__ import annotations

import glob
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors, tensor_util
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.checkpoint.slices import MAX_RANK, TensorSlice, overlap
from tenfold_core.checkpoint.table import SSTable, TableWriter
from tenfold_core.file_errors import os_error
from tenfold_core.files import EVERYWHERE, Files
from tenfold_core.memory_limits import has_arrays
from tenfold_protos import saved_tensor_slice_pb2, tensor_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_core.dtypes import DType

_PRODUCER = 1
_CONSUMER = 1
#: A proto message holds no more.
_MAX_MESSAGE = (1 << 31) - 1
#: Bytes of the widest element.
_WIDEST = 16
_VALUE_BYTES = {"int_val": 10, "int64_val": 10, "half_val": 3, "bool_val": 1}


class SavedTensor(NamedTuple):
    """What to write: a whole tensor, or the box `part` of one whose whole shape is `full_shape`."""

    name: str
    full_shape: tuple[int, ...]
    part: TensorSlice
    value: np.ndarray[Any, Any]
    dtype: DType


def write_slice_table(path: str, tensors: Iterable[SavedTensor], *, files: Files = EVERYWHERE) -> None:
    """Writes a V1 checkpoint file; it appears when it is whole. Each value is held a second time while it is written.

    Raises InvalidArgumentError for a tensor that is saved twice or too large for a proto, UnimplementedError for a
    type that the format has no field for.
    """
    directory = saved_tensor_slice_pb2.SavedTensorSlices()
    directory.meta.versions.producer = _PRODUCER
    metas: dict[str, Any] = {}
    rows: dict[bytes, SavedTensor] = {}
    for tensor in tensors:
        meta = metas.get(tensor.name)
        if meta is None:
            meta = metas[tensor.name] = directory.meta.tensor.add(name=tensor.name, type=tensor.dtype.as_datatype_enum)
            meta.shape.SetInParent()
            for size in tensor.full_shape:
                meta.shape.dim.add(size=size)
        elif meta.type != tensor.dtype.as_datatype_enum or _shape(meta) != tensor.full_shape:
            raise errors.InternalError(
                None, None, f"Mismatching shapes or types: slices of {tensor.name} are of different tensors"
            )
        key = tensor.part.key(tensor.name.encode("utf-8", "surrogateescape"))
        if key in rows:
            raise errors.InvalidArgumentError(None, None, f"Tensor {tensor.name}, slice {tensor.part}, is saved twice")
        rows[key] = tensor
        meta.slice.append(tensor.part.to_proto())
    with AtomicFile(path, files=files) as out:
        try:
            table = TableWriter(out)
            table.add(b"", directory.SerializeToString())
            for key in sorted(rows):
                table.add(key, _record(rows[key]))
            table.finish()
        except OSError as error:
            raise os_error(path, error) from None


def _record(tensor: SavedTensor) -> bytes:
    record = saved_tensor_slice_pb2.SavedTensorSlices()
    record.data.name = tensor.name
    record.data.slice.CopyFrom(tensor.part.to_proto())
    values, dtype = tensor.value.reshape(-1), tensor.dtype
    field = dtype.proto_field
    if not dtype.is_numpy_compatible or field in ("uint32_val", "uint64_val", "float8_val"):
        raise errors.UnimplementedError(None, None, f"Saving data type {dtype.op_name} not yet supported")
    if dtype is dtypes.string:
        size = sum(len(v) + 10 for v in values.tolist())
    else:
        size = values.size * _VALUE_BYTES.get(field, values.dtype.itemsize)
    if size + 1024 > _MAX_MESSAGE:
        raise errors.InvalidArgumentError(
            None, None, f"Tensor slice is too large to serialize (conservative estimate: {size + 1024} bytes)"
        )
    if dtype.is_complex:
        values = np.ascontiguousarray(values).view(np.float32 if dtype is dtypes.complex64 else np.float64)
    elif field == "half_val":
        values = np.ascontiguousarray(values).view(np.uint16)
    getattr(record.data.data, field).extend(values.tolist())
    return record.SerializeToString()


class _Tensor(NamedTuple):
    dtype: DType
    shape: tuple[int, ...]
    #: Part → the file that holds it.
    parts: dict[TensorSlice, SSTable]


class SliceTableReader:
    """The files of one V1 checkpoint, open: all that match `pattern`. Not thread-safe; blocks on the disk.

    Raises NotFoundError where no file matches, DataLossError for files that are no tables or are damaged.
    """

    def __init__(self, pattern: str, *, files: Files = EVERYWHERE) -> None:
        self._files = files
        self._tables: list[SSTable] = []
        self._tensors: dict[str, _Tensor] = {}
        names = files.matching(pattern) or files.matching(glob.escape(pattern))
        if not names:
            raise errors.NotFoundError(
                None,
                None,
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {pattern}",
            )
        try:
            for name in names:
                self._load(name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for table in self._tables:
            table.close()

    def __enter__(self) -> SliceTableReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> list[str]:
        return sorted(self._tensors)

    def dtype_and_shape(self, name: str) -> tuple[DType, tuple[int, ...]] | None:
        """The type and the whole shape of a tensor, or None if it is not there."""
        found = self._tensors.get(name)
        return None if found is None else (found.dtype, found.shape)

    def read_slice(self, name: str, part: TensorSlice) -> np.ndarray[Any, Any]:
        """A part of a tensor, joined of what is stored; the caller's own. Raises InvalidArgumentError for gaps."""
        tensor = self._tensors[name]
        wanted, size = part.bounds(tensor.shape), part.shape_in(tensor.shape)
        if not tensor.dtype.is_numpy_compatible:
            raise errors.UnimplementedError(None, None, f"Restoring data type {tensor.dtype.op_name} not yet supported")
        whole = tensor.parts.get(part)
        if whole is not None:
            return self._value(name, tensor, part, whole)
        pieces = []
        missing = math.prod(size)
        for stored, table in tensor.parts.items():
            meets = overlap(wanted, stored.bounds(tensor.shape))
            if meets is not None:
                into, of = meets
                pieces.append((into, self._value(name, tensor, stored, table)[of]))
                missing -= math.prod(s.stop - s.start for s in into)
        if missing > 0:
            raise errors.InvalidArgumentError(
                None, None, f"Error copying slice data: the stored slices of {name} do not cover {part}"
            )
        # Only now, when so many values are known to be there, memory is taken for them.
        kind = tensor.dtype.as_numpy_dtype
        out = np.full(size, b"", object) if tensor.dtype is dtypes.string else np.zeros(size, kind)
        for into, piece in pieces:
            out[into] = piece
        return out

    def _load(self, path: str) -> None:
        try:
            table = SSTable(path, files=self._files)
        except errors.DataLossError as error:
            raise errors.DataLossError(
                None,
                None,
                f"Unable to open table file {path}: {error.message}: perhaps your file is in a different file format "
                "and you need to use a different restore operator?",
            ) from None
        self._tables.append(table)
        record = _parsed(table.get(b""), path, "its directory")
        if record.meta.versions.min_consumer > _CONSUMER:
            raise errors.UnimplementedError(
                None, None, f"{path} needs a reader of version {record.meta.versions.min_consumer}; this is {_CONSUMER}"
            )
        for meta in record.meta.tensor:
            try:
                dtype, shape = dtypes.as_dtype(int(meta.type)), _shape(meta)
                if len(shape) > MAX_RANK or any(d < 0 for d in shape) or dtype.is_ref_dtype:
                    raise TypeError
                if not has_arrays(shape, _WIDEST):
                    raise TypeError
                held = self._tensors.setdefault(meta.name, _Tensor(dtype, shape, {}))
                if held[:2] != (dtype, shape):
                    raise TypeError
                for proto in meta.slice:
                    part = TensorSlice.from_proto(proto)
                    part.bounds(shape)
                    held.parts.setdefault(part, table)
            except (TypeError, errors.OpError):
                raise errors.DataLossError(None, None, f"{path}: the entry of tensor {meta.name} is damaged") from None

    def _value(self, name: str, tensor: _Tensor, part: TensorSlice, table: SSTable) -> np.ndarray[Any, Any]:
        stored = table.get(part.key(name.encode("utf-8", "surrogateescape")))
        data: tensor_pb2.TensorProto = _parsed(stored, table.path, f"tensor {name}, slice {part},").data.data
        shape = part.shape_in(tensor.shape)
        per_element = 2 if tensor.dtype.is_complex else 1
        held = len(getattr(data, tensor.dtype.proto_field))
        if data.tensor_content or held != math.prod(shape) * per_element:
            raise errors.DataLossError(
                None,
                None,
                f"{table.path}: tensor {name}, slice {part}, of shape {list(shape)} holds {held} values",
            )
        data.dtype = tensor.dtype.as_datatype_enum  # type: ignore[assignment]
        data.tensor_shape.Clear()
        for size in shape:
            data.tensor_shape.dim.add(size=size)
        try:
            return tensor_util.make_ndarray(data)
        except (errors.OpError, OverflowError) as error:
            raise errors.DataLossError(None, None, f"{table.path}: tensor {name}, slice {part}: {error}") from None


def _shape(meta: saved_tensor_slice_pb2.SavedSliceMeta) -> tuple[int, ...]:
    return tuple(dim.size for dim in meta.shape.dim)


def _parsed(value: bytes | None, path: str, what: str) -> saved_tensor_slice_pb2.SavedTensorSlices:
    from google.protobuf.message import DecodeError

    record = saved_tensor_slice_pb2.SavedTensorSlices()
    try:
        if value is None:
            raise DecodeError
        record.ParseFromString(value)
    except DecodeError:
        raise errors.DataLossError(None, None, f"{path} is corrupted: {what} is missing or not parseable") from None
    return record
