"""safetensors files: tensors by name, as other frameworks exchange weights. Read and written a tensor at a time.

    length uint64 | a header of that length, JSON: name → dtype, shape, data_offsets; __metadata__ | bytes of all

The library `safetensors` reads local files, or bytes that are in memory as a whole; here files are wherever `Files`
opens them. The tests hold both against each other. Follows the description of the format in the library's repository,
huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_errors import os_error, os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE, Files
from tenfold_core.memory_limits import has_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_core.dtypes import DType

_LENGTH = struct.Struct("<Q")
#: The longest header that the format allows.
MOST_HEADER_BYTES = 100_000_000
_METADATA = "__metadata__"
_PIECE = 1 << 20

#: The format's names. Files have their tensors in the reverse of this order, so that each lies at a multiple of its
#: elements' size.
_NAMES: dict[str, DType] = {
    "BOOL": dtypes.bool_,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "I16": dtypes.int16,
    "U16": dtypes.uint16,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "I32": dtypes.int32,
    "U32": dtypes.uint32,
    "F32": dtypes.float32,
    "C64": dtypes.complex64,
    "F64": dtypes.float64,
    "I64": dtypes.int64,
    "U64": dtypes.uint64,
}
_OF_DTYPE = {dtype: name for name, dtype in _NAMES.items()}
_ORDER = {name: number for number, name in enumerate(_NAMES)}


class TensorPlace(NamedTuple):
    """One tensor of a file."""

    dtype: DType
    shape: tuple[int, ...]
    #: Where its bytes begin in the file, and how many they are.
    offset: int
    size: int


class SafetensorsReader:
    """A file, open: `with SafetensorsReader(path) as reader: reader.read("w")`. Not thread-safe; blocks.

    Raises NotFoundError for a file or a name that is not there, DataLossError for what is no such file, and
    UnimplementedError for a type that has no counterpart here. Nothing that the file claims is believed before it is
    held against its size.
    """

    def __init__(self, path: str, *, files: Files = EVERYWHERE) -> None:
        self.path = file_path(path)
        with os_errors(self.path):
            self._file = files.open_by_places(self.path)
        try:
            self.tensors, self.metadata = self._read_header(files)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> SafetensorsReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def names(self) -> list[str]:
        return sorted(self.tensors)

    def read(self, name: str) -> np.ndarray[Any, Any]:
        """A tensor; the caller's own."""
        place = self.tensors.get(name)
        if place is None:
            raise errors.NotFoundError(None, None, f"{self.path} has no tensor {name}; there are {_some(self.tensors)}")
        out = np.empty(place.shape, place.dtype.as_numpy_dtype)
        raw = out.reshape(-1).view(np.uint8)
        self._fill(raw, place.offset)
        if place.dtype is dtypes.bool_ and raw.size and raw.max() > 1:
            raise self._damaged(f"tensor {name} of type BOOL holds a byte of {raw.max()}")
        return out

    def _fill(self, out: np.ndarray[Any, Any], offset: int) -> None:
        at = 0
        with os_errors(self.path):
            while at < out.size:
                got = self._file.read_into(out[at : at + _PIECE].data, offset + at)
                if not got:
                    raise self._damaged(f"it ended at byte {offset + at}")
                at += got

    def _damaged(self, what: str) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{self.path} is no safetensors file, or is damaged: {what}")

    def _read_header(self, files: Files) -> tuple[dict[str, TensorPlace], dict[str, str]]:
        size = self._file.size
        if size < _LENGTH.size:
            raise self._damaged(f"it has {size} bytes; the length of the header alone takes {_LENGTH.size}")
        first = np.empty(_LENGTH.size, np.uint8)
        self._fill(first, 0)
        (length,) = _LENGTH.unpack(first.tobytes())
        if length > min(MOST_HEADER_BYTES, size - _LENGTH.size):
            raise self._damaged(f"a header of {length} bytes does not fit a file of {size}")
        files.check_bytes(self.path, length)
        text = np.empty(length, np.uint8)
        self._fill(text, _LENGTH.size)
        try:
            header = json.loads(text.tobytes().decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"its header is not as it should be: {error}") from None
        if not isinstance(header, dict):
            raise self._damaged("its header is not a JSON object")
        metadata = header.pop(_METADATA, {})
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise self._damaged(f"{_METADATA} holds other things than texts")
        begin = _LENGTH.size + length
        found = {name: self._place(name, row, begin) for name, row in header.items()}
        end = begin
        for name, place in sorted(found.items(), key=lambda item: (item[1].offset, item[1].size)):
            if place.offset != end:
                raise self._damaged(f"tensor {name} begins at byte {place.offset}, the one before ends at {end}")
            end += place.size
        if end != size:
            raise self._damaged(f"its tensors end at byte {end} of {size}")
        return found, metadata

    def _place(self, name: str, row: Any, begin: int) -> TensorPlace:
        if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
            raise self._damaged(f"tensor {name} has other fields than dtype, shape and data_offsets")
        kind, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
        if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
            raise self._damaged(f"tensor {name} has shape {_short(shape)} and data_offsets {_short(offsets)}")
        dtype = _NAMES.get(kind) if isinstance(kind, str) else None
        if dtype is None:
            raise errors.UnimplementedError(
                None, None, f"{self.path}: tensor {name} is of type {_short(kind)}; read are {', '.join(_NAMES)}"
            )
        width = np.dtype(dtype.as_numpy_dtype).itemsize
        size = math.prod(shape) * width
        if offsets[1] - offsets[0] != size or not has_arrays(tuple(shape), width):
            raise self._damaged(
                f"tensor {name} of type {kind} and shape {_short(shape)} has data_offsets {_short(offsets)}"
            )
        if begin + offsets[1] > self._file.size:
            raise self._damaged(f"tensor {name} goes beyond the end of the file")
        return TensorPlace(dtype, tuple(shape), begin + offsets[0], size)


def write_safetensors(
    path: str,
    tensors: Mapping[str, tuple[DType, Sequence[int]]],
    value: Callable[[str], np.ndarray[Any, Any]],
    metadata: Mapping[str, str] | None = None,
    *,
    files: Files = EVERYWHERE,
) -> None:
    """Writes tensors, name → type and shape, each of which `value` gives when its turn comes. The file appears whole.

    Raises InvalidArgumentError, and writes nothing, for a type that the format does not have, such as string, and for a
    value that is not of the type and shape that were said.
    """
    rows: dict[str, Any] = {}
    if metadata:
        if not all(isinstance(key, str) and isinstance(text, str) for key, text in metadata.items()):
            raise errors.InvalidArgumentError(None, None, f"the metadata of {path} may hold texts only")
        rows[_METADATA] = dict(sorted(metadata.items()))
    at = 0
    names = sorted(tensors, key=lambda name: (-_ORDER[_kind(name, tensors[name][0])], name))
    for name in names:
        dtype, shape = tensors[name]
        size = math.prod(shape) * np.dtype(dtype.as_numpy_dtype).itemsize
        rows[name] = {"dtype": _kind(name, dtype), "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MOST_HEADER_BYTES:
        raise errors.InvalidArgumentError(
            None, None, f"{path}: a header of {len(header)} bytes; the format allows {MOST_HEADER_BYTES}"
        )
    path = file_path(path)
    with AtomicFile(path, files=files) as out:
        out.write(_LENGTH.pack(len(header)) + header)
        for name in names:
            dtype, shape = tensors[name]
            found = np.asarray(value(name))
            if found.shape != tuple(shape) or found.dtype != np.dtype(dtype.as_numpy_dtype):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"tensor {name} is of type {found.dtype} and shape {list(found.shape)}, not {dtype.name} and "
                    f"{list(shape)}",
                )
            flat = np.ascontiguousarray(found).reshape(-1).view(np.uint8)
            try:
                for begin in range(0, flat.size, _PIECE):
                    out.write(flat[begin : begin + _PIECE].data)
            except OSError as error:
                raise os_error(path, error) from None


def _kind(name: str, dtype: DType) -> str:
    if name == _METADATA:
        raise errors.InvalidArgumentError(None, None, f"no tensor may have the name {_METADATA}")
    kind = _OF_DTYPE.get(dtype.base_dtype)
    if kind is None:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"tensor {name} is of type {dtype.name}, which safetensors files do not have; leave it out (names=…), or "
            "cast it to one that they have",
        )
    return kind


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in it")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _are_counts(value: Any) -> bool:
    """Whether it is a list of whole numbers from 0 on, as short as shapes are."""
    return (
        isinstance(value, list)
        and len(value) <= 254
        and all(type(item) is int and 0 <= item < 1 << 63 for item in value)
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _some(names: Mapping[str, Any]) -> str:
    found = sorted(names)
    return ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
