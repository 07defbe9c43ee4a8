"""Strings split into sparse tensors. Follows TensorFlow 1.15's ops/string_ops.py; there are no ragged results."""

from __future__ import annotations

from typing import Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.graph.sparse_tensor import SparseTensor


def _sparse_only(result_type: str) -> None:
    if result_type != "SparseTensor":
        raise ValueError(f"result_type must be 'SparseTensor', got {result_type!r}: Tenfold has no ragged tensors")


def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:
    """Splits each string of a vector at any of the characters of `delimiter` (a space by default)."""
    _sparse_only(result_type)
    with name_scope(name, "StringSplit", [source]):
        given = delimiter if delimiter is not None else " " if sep is None else sep
        delimiters = convert_to_tensor(given, dtype="string")
        parts = apply_op("StringSplit", None, input=source, delimiter=delimiters, skip_empty=skip_empty)
        return SparseTensor(parts[0], parts[1], parts[2])


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> SparseTensor:
    """Splits each string of a vector at `sep`, as Python's `str.split`; at white space without it."""
    _sparse_only(result_type)
    text = source if input is None else input
    with name_scope(name, "StringSplit", [text]):
        separator = convert_to_tensor("" if sep is None else sep, dtype="string")
        parts = apply_op("StringSplitV2", None, input=text, sep=separator, maxsplit=maxsplit)
        return SparseTensor(parts[0], parts[1], parts[2])
