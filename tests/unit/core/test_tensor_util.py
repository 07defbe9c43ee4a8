"""Tensors to the wire and back, and what a hostile message gets for an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_core import dtypes, errors, tensor_util
from tenfold_protos import tensor_pb2, tensor_shape_pb2

NUMBERS = [d for d in dtypes.ALL_TYPES if d.is_numpy_compatible and d is not dtypes.string]


def proto(dtype: int, dims: list[int], **fields: Any) -> tensor_pb2.TensorProto:
    dim = tensor_shape_pb2.TensorShapeProto.Dim
    shape = tensor_shape_pb2.TensorShapeProto(dim=[dim(size=d) for d in dims])
    return tensor_pb2.TensorProto(dtype=dtype, tensor_shape=shape, **fields)


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_round_trip_of_every_type(dtype: dtypes.DType, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.as_numpy_dtype)

    again = tensor_util.proto_to_tensor(tensor_util.tensor_to_proto(array))

    assert again.dtype == array.dtype
    assert again.shape == shape
    assert np.array_equal(again, array)


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda d: d.name)
@pytest.mark.parametrize("values", [[], [1], [0, 1]], ids=len)
def test_a_large_number_repeated_is_held_once_where_that_is_asked(dtype: dtypes.DType, values: list[int]) -> None:
    given_values = np.array(values).astype(dtype.as_numpy_dtype)
    shape = (tensor_util.HELD_ONCE_BYTES, 2)
    message = tensor_util.make_tensor_proto(given_values, dtype, shape)

    whole = tensor_util.proto_to_tensor(message)
    once = tensor_util.proto_to_tensor(message, held_once=True)

    assert whole.flags.c_contiguous
    assert once.dtype == whole.dtype
    assert once.tobytes() == whole.tobytes()
    is_whole = len(values) == 2 or bool(message.tensor_content)  # eight bits and less are written out
    assert tensor_util.held_bytes(once) == (whole.nbytes if is_whole else 0)


@given(st.lists(st.binary(max_size=20), max_size=6))
def test_strings_round_trip_in_both_encodings(items: list[bytes]) -> None:
    array = np.array([*items, None], object)[:-1]
    message = tensor_util.tensor_to_proto(array)
    assert tensor_util.make_ndarray(message).tolist() == items

    lengths = b"".join(len(item).to_bytes(1, "little") for item in items)
    as_feed = proto(7, [len(items)], tensor_content=lengths + b"".join(items))
    assert tensor_util.make_ndarray(as_feed).tolist() == items


def test_the_last_value_repeats_and_none_means_zeros() -> None:
    assert tensor_util.make_ndarray(proto(1, [3], float_val=[1, 2])).tolist() == [1, 2, 2]
    assert tensor_util.make_ndarray(proto(3, [2])).tolist() == [0, 0]
    assert tensor_util.make_ndarray(proto(7, [2], string_val=[b"x"])).tolist() == [b"x", b"x"]
    assert tensor_util.make_ndarray(proto(19, [1], half_val=[0x3C00])).tolist() == [1.0]
    assert tensor_util.make_ndarray(proto(8, [1], scomplex_val=[1, 2])).tolist() == [1 + 2j]


def test_of_a_value_that_is_too_wide_the_lowest_bits_count() -> None:
    assert tensor_util.make_ndarray(proto(6, [2], int_val=[300, -1])).tolist() == [44, -1]
    assert tensor_util.make_ndarray(proto(4, [1], int_val=[-1])).tolist() == [255]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (proto(1, [2], tensor_content=b"abc"), "needs 8"),
        (proto(1, [-2]), "negative size"),
        (proto(1, [1 << 40, 1 << 40]), "too large"),
        (proto(1, [0, 1 << 62, 1 << 62]), "There is no array of shape"),
        (proto(7, [0, 1 << 62, 1 << 62]), "There is no array of shape"),
        (proto(7, [1 << 45]), "too large"),
        (proto(0, [1]), "unknown type number 0"),
        (proto(77, [1]), "unknown type number 77"),
        (proto(101, [1]), "float_ref is not handled"),
        (proto(20, [1]), "resource tensor cannot be made"),
        (proto(1, [1], float_val=[1, 2]), "holds 2 values, 1 at most"),
        (proto(7, [2], tensor_content=b"\x05"), "ends within the 2 lengths"),
        (proto(7, [1], tensor_content=b"\x05ab"), "need 6 bytes"),
        (proto(7, [1], tensor_content=b"\xff" * 12), "ends within"),
    ],
)
def test_what_is_wrong_is_said(message: tensor_pb2.TensorProto, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        tensor_util.proto_to_tensor(message)


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        (1, None, np.int32),
        (1 << 40, None, np.int64),
        (1.5, None, np.float32),
        ([1, 2.5], None, np.float32),
        (True, None, np.bool_),
        (np.float64(1), None, np.float64),
        ([], None, np.float32),
        (3, "float64", np.float64),
    ],
)
def test_types_are_inferred_as_tensorflow_does(values: Any, dtype: Any, wanted: Any) -> None:
    assert tensor_util.as_array(values, dtype).dtype == wanted


def test_what_offers_an_array_keeps_its_type() -> None:
    class Column:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array([1.5, 2.5], dtype)

    assert tensor_util.as_array(Column()).dtype == np.float64
    assert tensor_util.as_array(Column(), "float32").dtype == np.float32


@pytest.mark.parametrize(
    ("values", "dtype", "error"),
    [
        (1.5, "int32", TypeError),
        ("a", "float32", TypeError),
        (1, "string", TypeError),
        (True, "int32", TypeError),
        (300, "uint8", ValueError),
        (None, None, ValueError),
        ([[1], [2, 3]], None, ValueError),
    ],
)
def test_values_that_do_not_fit_are_refused(values: Any, dtype: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tensor_util.as_array(values, dtype)


def test_make_tensor_proto_fills_a_shape() -> None:
    filled = tensor_util.make_ndarray(tensor_util.make_tensor_proto(7, shape=[2, 2]))
    assert filled.tolist() == [[7, 7], [7, 7]]
    with pytest.raises(ValueError, match="Too many elements"):
        tensor_util.make_tensor_proto([1, 2, 3], shape=[2])
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tensor_util.make_tensor_proto([1, 2], shape=[3], verify_shape=True)


def test_an_empty_list_of_strings() -> None:
    empty = tensor_util.as_array([], "string")
    assert empty.shape == (0,)
    assert tensor_util.make_ndarray(tensor_util.make_tensor_proto([], "string")).dtype == object


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL_TYPES if d.is_carried], ids=str)
def test_types_that_numpy_cannot_compute_with_are_carried(dtype: dtypes.DType) -> None:
    array = np.array([1, 0, 3], dtype.as_numpy_dtype)
    proto = tensor_util.tensor_to_proto(array)
    assert proto.dtype == dtype.as_datatype_enum
    assert tensor_util.proto_to_tensor(proto).tobytes() == array.tobytes()
    assert tensor_util.make_tensor_proto(np.array([1, 0, 3]), dtype) == proto

    listed = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    getattr(listed, dtype.proto_field).append(7)
    listed.tensor_shape.dim.add(size=2)
    assert tensor_util.proto_to_tensor(listed).tolist() == [(7,), (7,)]
    with pytest.raises(TypeError, match=r"must come as an array of|Expected q"):
        tensor_util.make_tensor_proto([1, 2], dtype)


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float8_e5m2, dtypes.float8_e4m3fn, dtypes.int4], ids=str)
def test_narrow_types_travel_both_ways(dtype: dtypes.DType) -> None:
    array = np.array([1, -2, 3], dtype.as_numpy_dtype)
    assert tensor_util.make_ndarray(tensor_util.make_tensor_proto([1, -2, 3], dtype)).tolist() == array.tolist()

    listed = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
    listed.tensor_shape.dim.add(size=3)
    if dtype.proto_field == "half_val":
        listed.half_val.extend(array.view(np.uint16).tolist())
    elif dtype.proto_field == "float8_val":
        listed.float8_val = array.tobytes()
    else:
        listed.int_val.extend([1, -2, 3])
    assert tensor_util.proto_to_tensor(listed).tolist() == array.tolist()


def test_a_variant_from_elsewhere_is_carried() -> None:
    proto = tensor_pb2.TensorProto(dtype=dtypes.variant.as_datatype_enum)
    proto.variant_val.add(type_name="int", metadata=b"\3\0\0\0")

    value = tensor_util.proto_to_tensor(proto)

    assert value.shape == ()
    assert list(tensor_util.tensor_to_proto(value, dtypes.variant).variant_val) == list(proto.variant_val)


@pytest.mark.parametrize(
    ("value", "dtype", "field", "expected"),
    [
        (1.5, None, "float_val", [1.5]),
        ([2], "int64", "int64_val", [2]),
        (1, "float16", "half_val", [0x3C00]),
        (1, "bfloat16", "half_val", [0x3F80]),
        (3, "uint8", "int_val", [3]),
        (2j, "complex64", "scomplex_val", [0.0, 2.0]),
        ([True, False], None, "bool_val", [True, False]),
    ],
)
def test_one_number_is_written_as_a_value(value: Any, dtype: Any, field: str, expected: list[Any]) -> None:
    proto = tensor_util.make_tensor_proto(value, dtype)

    assert list(getattr(proto, field)) == expected
    assert not proto.tensor_content


def test_a_repeated_value_is_written_once() -> None:
    proto = tensor_util.make_tensor_proto(7.0, shape=[1000, 1000])

    assert list(proto.float_val) == [7.0]
    assert (tensor_util.make_ndarray(proto) == np.full([1000, 1000], 7, np.float32)).all()
    assert tensor_util.make_ndarray(tensor_util.make_tensor_proto([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]
    narrow = tensor_util.make_tensor_proto([1, 2], dtypes.float8_e5m2, [2, 2])
    assert tensor_util.make_ndarray(narrow).tolist() == [[1, 2], [2, 2]]
