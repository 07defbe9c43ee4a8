"""The table of element types: numbers, names, conversions and limits."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes
from tenfold_protos import tensor_pb2, types_pb2


def test_numbers_are_those_of_types_proto() -> None:
    for dtype in dtypes.ALL_TYPES:
        name = "DT_" + dtype.op_name.upper()
        assert types_pb2.DataType.Value(name) == dtype.as_datatype_enum
        assert types_pb2.DataType.Value(name + "_REF") == dtype.as_ref.as_datatype_enum


def test_every_number_of_types_proto_has_its_type_and_no_other_has_one() -> None:
    numbers = {number: name for name, number in types_pb2.DataType.items() if number}
    known = {number: "DT_" + dtypes.as_dtype(number).op_name.upper() for number in range(1, 200) if number in numbers}

    assert known == numbers
    assert [dtype.as_datatype_enum for dtype in dtypes.ALL_TYPES] == sorted(n for n in numbers if n < 100)
    for number in {0, *range(34, 101), *range(134, 200)}:
        with pytest.raises(TypeError, match=f"convert value {number} .*no such number"):
            dtypes.as_dtype(number)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "is_floating",
            "float32 float64 bfloat16 float16 float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz "
            "float8_e5m2fnuz float4_e2m1fn",
        ),
        ("is_integer", "int32 uint8 int16 int8 int64 uint16 uint32 uint64 int4 uint4 int2 uint2"),
        ("is_unsigned", "uint8 uint16 uint32 uint64 uint4 uint2"),
        ("is_complex", "complex64 complex128"),
        ("is_bool", "bool"),
        ("is_quantized", "qint8 quint8 qint32 qint16 quint16"),
        ("is_carried", "qint8 quint8 qint32 qint16 quint16"),
    ],
)
def test_which_types_are_of_a_kind(kind: str, names: str) -> None:
    assert {dtype.name for dtype in dtypes.ALL_TYPES if getattr(dtype, kind)} == set(names.split())
    assert {dtype.name for dtype in dtypes.ALL_TYPES if getattr(dtype.as_ref, kind)} == set(names.split())


def test_numpy_computes_with_all_but_handles_and_quantised_types() -> None:
    not_computed = {dtype.name for dtype in dtypes.ALL_TYPES if not dtype.is_numpy_compatible}

    assert not_computed == {"resource", "variant", "qint8", "quint8", "qint16", "quint16", "qint32"}
    for name, bits in (("qint8", np.int8), ("quint8", np.uint8), ("qint16", np.int16), ("qint32", np.int32)):
        assert dtypes.as_dtype(name).as_numpy_dtype == np.dtype([(name, bits)])
        assert dtypes.as_dtype(np.dtype([(name, bits)])) is dtypes.as_dtype(name)


def test_numpys_types_and_bytes_of_an_element_are_those_of_the_type() -> None:
    sizes = {dtype.name: dtype.size for dtype in dtypes.ALL_TYPES}
    small = {name: 1 for name in sizes if name.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2"))}

    assert sizes == small | {
        "float32": 4, "float64": 8, "int32": 4, "uint8": 1, "int16": 2, "int8": 1, "string": 1, "complex64": 8,
        "int64": 8, "bool": 1, "qint8": 1, "quint8": 1, "qint32": 4, "bfloat16": 2, "qint16": 2, "quint16": 2,
        "uint16": 2, "complex128": 16, "float16": 2, "resource": 1, "variant": 1, "uint32": 4, "uint64": 8,
    }  # fmt: skip
    for number, numpy_type in dtypes.FIXED_SIZE.items():
        dtype = dtypes.as_dtype(number)
        assert numpy_type == np.dtype(dtype.as_numpy_dtype)
        assert dtypes.as_dtype(numpy_type) is dtype
    assert {dtypes.as_dtype(number).name for number in dtypes.FIXED_SIZE} == set(sizes) - {
        "string", "resource", "variant",
    }  # fmt: skip
    for name in ("string", "resource", "variant"):
        assert dtypes.as_dtype(name).as_numpy_dtype is np.object_


def test_elements_are_in_a_field_of_the_message() -> None:
    fields = {dtype.name: dtype.proto_field for dtype in dtypes.ALL_TYPES}

    assert set(fields.values()) <= set(tensor_pb2.TensorProto.DESCRIPTOR.fields_by_name)
    assert [fields[name] for name in ("float32", "bool", "uint16", "bfloat16", "complex64", "qint32", "resource")] == [
        "float_val", "bool_val", "int_val", "half_val", "scomplex_val", "int_val", "resource_handle_val",
    ]  # fmt: skip


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


def test_an_unknown_numpy_type_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(TypeError, match=r"NumPy types known: (.*)\.$") as raised:
        dtypes.as_dtype(np.dtype("datetime64[s]"))

    known: Any = raised.value.args[0].rpartition(": ")[2].strip(".").split(", ")
    assert known == [dtype.name for dtype in dtypes.ALL_TYPES if dtype.name not in ("resource", "variant")]


def test_reference_types() -> None:
    ref = dtypes.int32.as_ref
    assert ref.name == "int32_ref"
    assert ref.is_ref_dtype
    assert ref.base_dtype is dtypes.int32
    assert dtypes.int32.is_compatible_with(ref)
    assert not ref.is_compatible_with(dtypes.int32)
    assert ref.is_compatible_with(ref)
    assert not dtypes.int32.is_compatible_with(dtypes.int64.as_ref)
    assert (ref.op_name, ref.as_datatype_enum, int(ref)) == ("int32_ref", 103, 103)
    assert ref.as_ref is ref
    assert dtypes.half._as_ref.op_name == "half_ref"
    assert (ref._is_ref_dtype, dtypes.int32._is_ref_dtype, dtypes.int32.is_ref_dtype) == (True, False, False)
    assert dtypes.int32.base_dtype is dtypes.int32


def test_the_real_part_of_a_type() -> None:
    assert dtypes.complex64.real_dtype is dtypes.complex64.as_ref.real_dtype is dtypes.float32
    assert dtypes.complex128.real_dtype is dtypes.float64
    assert dtypes.int8.as_ref.real_dtype is dtypes.int8


def test_limits_sizes_and_kinds() -> None:
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.float16.max == np.finfo(np.float16).max
    assert (dtypes.float64.size, dtypes.string.size) == (8, 1)
    assert dtypes.uint8.is_unsigned
    assert not dtypes.qint8.is_integer
    assert (dtypes.bool_.min, dtypes.bool_.max) == (False, True)
    assert (dtypes.uint4.min, dtypes.uint4.max) == (0, 15)
    assert dtypes.float32.min == -dtypes.float32.max == np.finfo(np.float32).min
    assert dtypes.bfloat16.max == 2.0**127 * (2 - 2.0**-7)
    with pytest.raises(TypeError, match=r"minimum value of tf.string"):
        _ = dtypes.string.min
    with pytest.raises(TypeError, match=r"maximum value of tf.complex64"):
        _ = dtypes.complex64.max


def test_a_dtype_compares_with_what_converts_to_it_and_pickles() -> None:
    assert dtypes.float32 == np.float32
    assert dtypes.float32 == "float32"
    assert dtypes.float32 != "no such type"
    assert (dtypes.float32 == dtypes.float32, dtypes.float32 == dtypes.float64) == (True, False)
    assert (dtypes.float32 == None, dtypes.float64 == None) == (False, False)  # noqa: E711
    assert {dtypes.float32: 1, dtypes.int32: 2}[dtypes.as_dtype("int32")] == 2
    assert hash(dtypes.float32) != hash(dtypes.float32.as_ref)
    assert (str(dtypes.half), repr(dtypes.int32.as_ref)) == ("<dtype: 'float16'>", "tf.int32_ref")
    assert pickle.loads(pickle.dumps(dtypes.int64)) is dtypes.int64
