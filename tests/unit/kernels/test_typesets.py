"""Which types are in which set of kernels' types."""

from __future__ import annotations

from tenfold_core import dtypes
from tenfold_kernels import typesets


def names(of: frozenset[dtypes.DType]) -> str:
    return " ".join(sorted(each.name for each in of))


def test_sets_by_their_names() -> None:
    assert names(typesets.REAL) == "float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8"
    assert names(typesets.NUMERIC - typesets.REAL) == names(typesets.COMPLEX) == "complex128 complex64"
    narrow = {each.name for each in typesets.NARROW}
    assert {"bfloat16", "float8_e5m2", "float8_e4m3fn"} <= narrow
    assert not narrow & {"float16", "float32", "float64"}
    assert {"int4", "uint4"} <= {each.name for each in typesets.SMALL}
    assert not typesets.SMALL & typesets.INTEGER
    assert dtypes.qint8 in typesets.CARRIED
    kinds = typesets.BOOL | typesets.STRING | {dtypes.resource, dtypes.variant}
    assert typesets.NUMERIC | typesets.NARROW | typesets.SMALL | typesets.CARRIED | kinds == typesets.ANY
    assert typesets.TENSOR == typesets.NUMERIC | typesets.BOOL | typesets.STRING
    assert (names(typesets.COMPILED), names(typesets.INDEX)) == ("float32 float64", "int32 int64")
