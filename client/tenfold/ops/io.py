"""Files (`tf.io`): reading and writing whole files where the operation runs, finding them, decoding records.

The save and restore operations of checkpoints are built by the saver. Paths are those of the task, not of the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops.array import _alias

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The bytes of a file."""
    return tensor_op("ReadFile", name, filename=filename)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Writes a string to a file, creating its folder."""
    op: Operation = apply_op("WriteFile", name, filename=filename, contents=contents)
    return op


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match a glob pattern."""
    return tensor_op("MatchingFiles", name, pattern=pattern)


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
    fixed_length: Any = None,
) -> Tensor:
    """The bytes of strings read as numbers; adds a dimension.

    With `fixed_length`, a multiple of the type's size, each string is cut or filled with zeros to so many bytes.
    """
    data = _alias("input_bytes", input_bytes, "bytes", bytes)
    if fixed_length is not None:
        return tensor_op(
            "DecodePaddedRaw",
            name,
            input_bytes=data,
            fixed_length=fixed_length,
            out_type=out_type,
            little_endian=little_endian,
        )
    return tensor_op("DecodeRaw", name, bytes=data, out_type=out_type, little_endian=little_endian)


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> list[Tensor]:
    """The columns of CSV records; `record_defaults` gives their types and what an empty field means."""
    result: list[Tensor] = apply_op(
        "DecodeCSV",
        name,
        records=records,
        record_defaults=list(record_defaults),
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=select_cols,
    )
    return result
