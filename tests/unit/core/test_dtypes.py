"""The table of element types: numbers, names, conversions and limits."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_protos import types_pb2


def test_numbers_are_those_of_types_proto() -> None:
    for dtype in dtypes.ALL_TYPES:
        name = "DT_" + dtype.op_name.upper()
        assert types_pb2.DataType.Value(name) == dtype.as_datatype_enum
        assert types_pb2.DataType.Value(name + "_REF") == dtype.as_ref.as_datatype_enum


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.float32, dtypes.float32),
        ("float", dtypes.float32),
        ("float32", dtypes.float32),
        ("half", dtypes.float16),
        (1, dtypes.float32),
        (101, dtypes.float32.as_ref),
        (1.0, dtypes.float32),
        (101.0, dtypes.float32.as_ref),
        (np.int64(3), dtypes.int32),
        (np.dtype("int64"), dtypes.int64),
        (bool, dtypes.bool_),
        (int, dtypes.int32),
        (str, dtypes.string),
        (np.dtype("S3"), dtypes.string),
        (object, dtypes.string),
    ],
)
def test_as_dtype(given: object, wanted: dtypes.DType) -> None:
    assert dtypes.as_dtype(given) is wanted


@pytest.mark.parametrize("given", ["float31", 99, 1.5, float("nan"), True, np.dtype("datetime64[s]"), None])
def test_as_dtype_names_what_it_cannot_convert(given: object) -> None:
    with pytest.raises(TypeError, match="Cannot convert value"):
        dtypes.as_dtype(given)


def test_reference_types() -> None:
    ref = dtypes.int32.as_ref
    assert ref.name == "int32_ref"
    assert ref.is_ref_dtype
    assert ref.base_dtype is dtypes.int32
    assert dtypes.int32.is_compatible_with(ref)
    assert not ref.is_compatible_with(dtypes.int32)


def test_limits_sizes_and_kinds() -> None:
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.float16.max == np.finfo(np.float16).max
    assert (dtypes.float64.size, dtypes.string.size) == (8, 1)
    assert dtypes.uint8.is_unsigned
    assert not dtypes.qint8.is_integer
    with pytest.raises(TypeError, match=r"minimum value of tf.string"):
        _ = dtypes.string.min


def test_a_dtype_compares_with_what_converts_to_it_and_pickles() -> None:
    assert dtypes.float32 == np.float32
    assert dtypes.float32 == "float32"
    assert dtypes.float32 != "no such type"
    assert pickle.loads(pickle.dumps(dtypes.int64)) is dtypes.int64
