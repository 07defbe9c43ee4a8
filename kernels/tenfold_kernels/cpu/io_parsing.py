"""Bytes to values: CSV lines, serialized tensors, padded raw bytes. Packed strings are in string_decode.py.

Outputs are fresh. Follows decode_csv_op.cc, decode_padded_raw_op.cc, parse_tensor_op.cc.
"""

from __future__ import annotations

import base64
import itertools
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes, tensor_util
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, output_type, scalar_object, shape_text
from tenfold_kernels.cpu._strings import bytes_attr, printable
from tenfold_kernels.cpu.string_number import numbers_of, parser
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources import messages
from tenfold_protos import tensor_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_core.dtypes import DType

_QUOTE = ord('"')
_ENDS = b"\r\n"
#: Records from which on they are read column by column.
_MANY = 4


class _Line:
    """Splits a CSV record into fields, as RFC 4180 says; only the `selected` ones are given."""

    def __init__(self, delimiter: bytes, quotes: bool, selected: list[int]) -> None:
        self._mark, self._delimiter = delimiter, delimiter[0]
        self._quotes = quotes
        self._selected = selected

    def plain(self, line: bytes) -> list[bytes] | None:
        """What `fields` gives of a line without quotes and ends of lines; None for another one."""
        if not line or b"\n" in line or b"\r" in line or (self._quotes and b'"' in line):
            return None
        found = line.split(self._mark)
        return [found[n] for n in self._selected if n < len(found)] if self._selected else found

    def fields(self, line: bytes) -> Iterator[bytes]:
        """The fields. Raises InvalidArgumentError for misplaced quotes and line ends."""
        at = number = given = 0
        while at < len(line):
            if line[at] in _ENDS:
                at += 1
                continue
            wanted = not self._selected or self._selected[given] == number
            if self._quotes and line[at] == _QUOTE:
                field, at = self._quoted(line, at + 1)
            else:
                field, at = self._plain(line, at)
            number += 1
            if wanted:
                yield field
                given += 1
                if given == len(self._selected):
                    return
        if line and line[-1] == self._delimiter and (not self._selected or self._selected[given] == number):
            yield b""

    def _plain(self, line: bytes, at: int) -> tuple[bytes, int]:
        end = line.find(self._delimiter, at)
        field = line[at:] if end < 0 else line[at:end]
        if (self._quotes and b'"' in field) or b"\n" in field or b"\r" in field:
            raise invalid("Unquoted fields cannot have quotes/CRLFs inside")
        return field, at + len(field) + 1

    def _quoted(self, line: bytes, at: int) -> tuple[bytes, int]:
        out = bytearray()
        last = len(line) - 1
        while at < last and (line[at] != _QUOTE or line[at + 1] != self._delimiter):
            if line[at] == _QUOTE:
                if line[at + 1] != _QUOTE:
                    raise invalid("Quote inside a string has to be escaped by another quote")
                at += 1
            out.append(line[at])
            at += 1
        if at > last or line[at] != _QUOTE:
            raise invalid("Quoted field has to end with quote followed by delim or end")
        return bytes(out), at + 2


@kernel("DecodeCSV")
def build_decode_csv(node: KernelNode) -> Compute:
    """Lines of text to a tensor a column; an empty or N/A field becomes the column's default."""
    types = [t.base_dtype for t in node.output_types]
    delimiter, missing = bytes_attr(node, "field_delim", b","), bytes_attr(node, "na_value")
    selected = [int(i) for i in node.attrs["select_cols"]]
    if len(delimiter) != 1:
        raise invalid("field_delim should be only 1 char")
    if selected and len(selected) != len(types):
        raise invalid("select_cols should match output size")
    if any(b <= a for a, b in itertools.pairwise(selected)):
        raise invalid("select_cols should be strictly increasing indices")
    if selected and selected[0] < 0:
        raise invalid("select_cols should be non-negative indices")
    line = _Line(delimiter, bool(node.attrs["use_quote_delim"]), selected)
    parsers = [None if t.name == "string" else parser(t.as_numpy_dtype) for t in types]

    def compute(records: Array, *defaults: Array) -> Array | tuple[Array, ...]:
        for f, default in enumerate(defaults):
            if default.ndim > 1:
                raise invalid("Each record default should be at most rank 1")
            if default.size > 1:
                raise invalid(f"There should only be 1 default per field but field {f} has {default.size}")
        texts = records.reshape(-1).tolist()
        if len(texts) >= _MANY:
            columns = columns_of_records([line.plain(record) for record in texts], types, missing, defaults)
            if columns is not None:
                made = [column.reshape(records.shape) for column in columns]
                return made[0] if len(made) == 1 else tuple(made)
        outs = [np.empty(records.shape, t.as_numpy_dtype) for t in types]
        flats = [out.reshape(-1) for out in outs]
        for i, record in enumerate(texts):
            fields = line.plain(record)
            if fields is None:
                fields = list(line.fields(record))
            if len(fields) != len(types):
                raise invalid(f"Expect {len(types)} fields but have {len(fields)} in record {i}")
            for f, field in enumerate(fields):
                if not field or field == missing:
                    if not defaults[f].size:
                        raise invalid(f"Field {f} is required but missing in record {i}!")
                    flats[f][i] = defaults[f].reshape(-1)[0]
                    continue
                parse = parsers[f]
                try:
                    flats[f][i] = field if parse is None else parse(field)
                except ValueError:
                    raise invalid(
                        f"Field {f} in record {i} is not a valid {types[f].op_name}: {printable(field)}"
                    ) from None
        return outs[0] if len(outs) == 1 else tuple(outs)

    return compute


def columns_of_records(
    rows: Sequence[list[bytes] | None], types: Sequence[DType], missing: bytes, defaults: Sequence[Array]
) -> list[Array] | None:
    """The records column by column; None where they must be read one by one, if only to say what is wrong in which."""
    if any(row is None or len(row) != len(types) for row in rows):
        return None
    columns = []
    for fields, dtype, default in zip(zip(*rows, strict=True), types, defaults, strict=True):
        given: Sequence[bytes] = fields
        if b"" in fields or missing in fields:
            if not default.size:
                return None
            other = default.reshape(-1)[0]
            given = [field for field in fields if field and field != missing]
        column = np.empty(len(given), dtype.as_numpy_dtype)
        try:
            column[:] = given if dtype is dtypes.string else numbers_of(given, column.dtype)
        except ValueError:
            return None
        if len(given) < len(fields):
            whole = np.empty(len(fields), column.dtype)
            whole.fill(other)
            whole[[bool(field) and field != missing for field in fields]] = column
            column = whole
        columns.append(column)
    return columns


@kernel("DecodePaddedRaw")
def build_decode_padded_raw(node: KernelNode) -> Compute:
    """Bytes to numbers along a new last dimension: each string cut or filled up with zeros to one length."""
    dtype = np.dtype(output_type(node))
    source = dtype.newbyteorder("<" if node.attrs["little_endian"] else ">")

    def compute(x: Array, fixed_length: Array) -> Array:
        if fixed_length.ndim:
            raise invalid(f"k must be scalar, got shape {shape_text(fixed_length.shape)}")
        length = int(fixed_length)
        if length % dtype.itemsize:
            raise invalid(f"fixed_length ({length}) must be a multiple of the size of out_type ({dtype.itemsize})")
        if length <= 0:
            raise invalid(f"fixed_length ({length}) must be greater than zero.")
        allow((x.size, length), np.uint8, 2)
        data = b"".join(row[:length].ljust(length, b"\x00") for row in x.reshape(-1).tolist())
        values = np.frombuffer(data, dtype=source).astype(dtype)
        return values.reshape(*x.shape, length // dtype.itemsize)

    return compute


@kernel("ParseTensor")
def build_parse_tensor(node: KernelNode) -> Compute:
    """A serialized TensorProto to its tensor."""
    expected = node.output_types[0].base_dtype

    def compute(serialized: Array) -> Array:
        from google.protobuf.message import DecodeError

        if serialized.ndim:
            raise invalid(f"Expected `serialized` to be a scalar, got shape: {shape_text(serialized.shape)}")
        try:
            proto = tensor_pb2.TensorProto.FromString(bytes(serialized[()]))
        except DecodeError:
            encoded = base64.b64encode(bytes(serialized[()])).decode()
            raise invalid(f"Could not parse `serialized` as TensorProto, base64: {encoded}") from None
        is_variant = proto.dtype == dtypes.variant.as_datatype_enum
        value = messages.decode(proto, "serialized") if is_variant else tensor_util.make_ndarray(proto)
        if proto.dtype != expected.as_datatype_enum:
            raise invalid(
                f"Type mismatch between parsed tensor ({dtypes.as_dtype(int(proto.dtype)).op_name}) and dtype "
                f"({expected.op_name})"
            )
        return value

    return compute


@kernel("SerializeTensor")
def build_serialize_tensor(node: KernelNode) -> Compute:
    """A tensor to its serialized TensorProto. Raises UnimplementedError for variants that belong to their task."""
    dtype = node.input_types[0].base_dtype
    if dtype is dtypes.variant:
        return lambda x: scalar_object(messages.encode(x).SerializeToString())
    return lambda x: scalar_object(tensor_util.tensor_to_proto(x, dtype).SerializeToString())
