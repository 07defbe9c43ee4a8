"""Open Inference Protocol tensors: what is written is read back, and what is wrong is said."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tenfold_core import errors
from tenfold_core import open_inference as oip

NUMERIC = [dtype for dtype in oip.DATATYPES.values() if dtype.kind != "O"]
ARRAYS = st.sampled_from(NUMERIC).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
TEXTS = hnp.arrays(
    np.dtype(object), hnp.array_shapes(min_dims=0, max_dims=2, max_side=3), elements=st.binary(max_size=8)
)


def assert_same(left: np.ndarray, right: np.ndarray) -> None:
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    np.testing.assert_array_equal(left, right)


@given(st.one_of(ARRAYS, TEXTS))
def test_json_round_trip(array: np.ndarray) -> None:
    text = json.dumps(oip.to_json("x", array), allow_nan=False)

    name, back = oip.from_json(oip.parse_json(text.encode()))

    assert name == "x"
    assert_same(back, array)


@given(st.lists(st.one_of(ARRAYS, TEXTS), max_size=3))
def test_binary_round_trip(arrays: list[np.ndarray]) -> None:
    heads, parts = oip.write_tensors((f"t{i}", array, i % 2 == 0) for i, array in enumerate(arrays))

    back = oip.read_tensors(json.loads(json.dumps(heads)), memoryview(b"".join(parts)), "inputs")

    assert list(back) == [f"t{i}" for i in range(len(arrays))]
    for left, right in zip(back.values(), arrays, strict=True):
        assert_same(left, right)


def test_nested_data_and_bare_scalars() -> None:
    nested = {"name": "x", "datatype": "INT32", "shape": [2, 2], "data": [[1, 2], [3, 4]]}
    scalar = {"name": "x", "datatype": "FP32", "shape": [], "data": 1.5}

    assert oip.from_json(nested)[1].tolist() == [[1, 2], [3, 4]]
    assert oip.from_json(scalar)[1] == np.float32(1.5)


def test_what_stands_for_nan_and_infinity() -> None:
    tensor = oip.to_json("x", np.array([np.nan, np.inf, -np.inf, 1], np.float32))

    assert tensor["data"] == ["NaN", "Infinity", "-Infinity", 1.0]


def tensor(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "INT8", "shape": [2], "data": [1, 2]} | changes


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([], "a tensor is an object"),
        (tensor(name=""), "no 'name'"),
        (tensor(datatype="FLOAT"), "must be one of BOOL"),
        (tensor(shape="2"), "needs a 'shape'"),
        (tensor(shape=[-1]), "at least 0"),
        (tensor(shape=[True]), "whole numbers"),
        (tensor(shape=[1 << 20, 1 << 20]), "too large"),
        (tensor(shape=[1] * 40), "at most 32"),
        (tensor(data=[1]), "has 1 values"),
        (tensor(data=[1, 300]), "300 does not fit INT8"),
        (tensor(data=[1, 2.5]), "takes whole numbers; its data holds float"),
        (tensor(data=[1, None]), "holds NoneType"),
        (tensor(data=[True, 1]), "holds bool"),
        (tensor(shape=[2, 1], data=[[1, 2]]), "does not nest"),
        (tensor(datatype="FP32", data=[1, "1.5"]), "'1.5' is not a number"),
        (tensor(datatype="FP16", data=[1, 1e30]), "does not fit FP16"),
        (tensor(datatype="FP64", data=[1, 10**400]), "too large for FP64"),
        (tensor(datatype="BOOL", data=[1, 0]), "takes true and false"),
        (tensor(datatype="BYTES", data=[1, "a"]), "takes texts"),
        (tensor(datatype="BYTES", data=["%", "a"], parameters={"encoding": "base64"}), "not"),
        (tensor(datatype="BYTES", data=["\ud800", "a"]), "surrogate"),
        (tensor(parameters=3), "must be an object"),
    ],
)
def test_wrong_tensors_are_named(wrong: Any, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.read_tensors([wrong], memoryview(b""), "inputs")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "not JSON"),
        (b"[NaN]", "NaN is not part of JSON"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
    ],
)
def test_what_is_no_json(text: bytes, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.parse_json(text)


@pytest.mark.parametrize("size", [-1, 9, "4", 2**70])
def test_binary_sizes_are_checked(size: Any) -> None:
    head = {"name": "x", "datatype": "INT8", "shape": [4], "parameters": {"binary_data_size": size}}

    with pytest.raises(errors.InvalidArgumentError, match="bytes of binary data"):
        oip.read_tensors([head], memoryview(b"1234"), "inputs")


def test_bytes_left_over_are_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="belong to no tensor"):
        oip.read_tensors([], memoryview(b"1"), "inputs")


@given(st.binary(max_size=40))
def test_hostile_binary_strings(raw: bytes) -> None:
    head = {"name": "x", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": len(raw)}}

    with contextlib.suppress(errors.InvalidArgumentError):
        oip.read_tensors([head], memoryview(raw), "inputs")


def test_rows_of_other_lengths_do_not_nest_even_if_their_sum_is_right() -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [2, 2], "data": [[1.0], [2.0, 3.0, 4.0]]}

    with pytest.raises(errors.InvalidArgumentError, match=r"'x': its data does not nest as its shape \[2, 2\] does"):
        oip.from_json(tensor)


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "written"),
    [
        (np.array([[1, 2], [3, 4]], np.int8)[:, ::-1], {"datatype": "INT8", "shape": [2, 2], "data": [2, 1, 4, 3]}),
        (np.array(7, ">i4"), {"datatype": "INT32", "shape": [], "data": [7]}),
        (np.array([True, False]), {"datatype": "BOOL", "shape": [2], "data": [True, False]}),
        (np.zeros((0, 3), np.float16), {"datatype": "FP16", "shape": [0, 3], "data": []}),
        (np.array([1 - 2j, 3], np.complex64), {"datatype": "COMPLEX64", "shape": [2], "data": [1, -2, 3, 0]}),
        (
            np.array([complex(np.inf, np.nan)], np.complex128),
            {"datatype": "COMPLEX128", "shape": [1], "data": ["Infinity", "NaN"]},
        ),
        (np.array([b"a", b""]), {"datatype": "BYTES", "shape": [2], "data": ["a", ""]}),
        (np.array(["\u00e4", "b"]), {"datatype": "BYTES", "shape": [2], "data": ["\u00e4", "b"]}),
        (np.array([["a", b"b"]], object), {"datatype": "BYTES", "shape": [1, 2], "data": ["a", "b"]}),
        (
            np.array([b"a", b"\xff"], object),
            {"datatype": "BYTES", "shape": [2], "data": ["YQ==", "/w=="], "parameters": {"encoding": "base64"}},
        ),
    ],
)
def test_the_json_of_a_tensor(array: np.ndarray, written: dict[str, Any]) -> None:
    assert oip.to_json("x", array) == {"name": "x"} | written


@pytest.mark.parametrize(
    ("array", "datatype", "shape", "raw"),
    [
        (np.array([[1, 2], [3, 4]], np.int16).T, "INT16", [2, 2], "0100030002000400"),
        (np.array([1, 258], ">i4"), "INT32", [2], "0100000002010000"),
        (np.array(True), "BOOL", [], "01"),
        (np.array(1.5, np.float64), "FP64", [], "000000000000f83f"),
        (np.array([b"ab", b"", "\u00e4"], object), "BYTES", [3], "020000006162" + "00000000" + "02000000c3a4"),
        (np.zeros((2, 0), np.float32), "FP32", [2, 0], ""),
    ],
)
def test_the_binary_form_of_a_tensor(array: np.ndarray, datatype: str, shape: list[int], raw: str) -> None:
    head, data = oip.to_binary("x", array)

    assert data.hex() == raw
    assert head == {
        "name": "x",
        "datatype": datatype,
        "shape": shape,
        "parameters": {"binary_data_size": len(raw) // 2},
    }


@pytest.mark.parametrize("dtype", ["datetime64[s]", "V3", np.longdouble])
def test_types_that_the_protocol_has_no_name_for(dtype: Any) -> None:
    for write in (oip.to_json, oip.to_binary):
        with pytest.raises(errors.UnimplementedError, match=r"no datatype for .*; it has BOOL, .*, BYTES\. .*protobuf"):
            write("x", np.zeros(2, dtype))


def test_heads_and_binary_parts_come_in_order() -> None:
    one, two = np.array([1], np.int8), np.array([2], np.int8)

    heads, parts = oip.write_tensors([("a", one, True), ("b", two, False), ("c", two, True)])

    assert parts == [b"\x01", b"\x02"]
    assert [(head["name"], head.get("data")) for head in heads] == [("a", None), ("b", [2]), ("c", None)]


# -- what is read ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("datatype", "shape", "data", "dtype", "value"),
    [
        ("INT8", [2], [-128, 127], np.int8, [-128, 127]),
        ("UINT64", [2], [0, (1 << 64) - 1], np.uint64, [0, (1 << 64) - 1]),
        ("FP16", [3], [65504, -65504.0, 1e-30], np.float16, [65504, -65504, 0]),
        ("FP32", [4], ["NaN", 1, "-Infinity", "Infinity"], np.float32, [np.nan, 1, -np.inf, np.inf]),
        ("FP64", [1], [2**60], np.float64, [2.0**60]),
        ("COMPLEX64", [2], [1, 2, 3, "NaN"], np.complex64, [1 + 2j, complex(3, np.nan)]),
        ("COMPLEX128", [], [1, -2], np.complex128, 1 - 2j),
        ("COMPLEX128", [1, 1], [1, -2], np.complex128, [[1 - 2j]]),
        ("BOOL", [1, 2], [[True, False]], np.bool_, [[True, False]]),
        ("BYTES", [2], ["a", "\u00e4"], object, [b"a", b"\xc3\xa4"]),
        ("BYTES", [1, 1], [["a"]], object, [[b"a"]]),
        ("INT8", [], 5, np.int8, 5),
        ("INT8", [1], 5, np.int8, [5]),
        ("INT8", [0], [], np.int8, []),
        ("INT8", [2, 0], [[], []], np.int8, [[], []]),
        ("INT8", [2, 2, 1], [[[1], [2]], [[3], [4]]], np.int8, [[[1], [2]], [[3], [4]]]),
        ("INT8", [2, 2, 1], [1, 2, 3, 4], np.int8, [[[1], [2]], [[3], [4]]]),
        ("INT8", [1] * 32, [3], np.int8, np.full([1] * 32, 3).tolist()),
    ],
)
def test_what_json_stands_for(datatype: str, shape: list[int], data: Any, dtype: Any, value: Any) -> None:
    name, found = oip.from_json({"name": "x", "datatype": datatype, "shape": shape, "data": data})

    assert name == "x"
    assert found.shape == tuple(shape)
    assert_same(found, np.array(value, dtype).reshape(shape))


def test_bytes_of_any_kind_come_as_base64() -> None:
    head = {"name": "x", "datatype": "BYTES", "shape": [2], "data": ["YQ==", "/w=="]}

    assert oip.from_json(head | {"parameters": {"encoding": "base64"}})[1].tolist() == [b"a", b"\xff"]
    assert oip.from_json(head | {"parameters": {"encoding": "utf-8"}})[1].tolist() == [b"YQ==", b"/w=="]
    assert oip.from_json(head | {"parameters": {}})[1].tolist() == [b"YQ==", b"/w=="]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("x", "a tensor is an object with name, datatype, shape and data, not str"),
        (tensor(name=3), "no 'name'"),
        (tensor(name=None), "no 'name'"),
        (tensor(datatype=None), "'x' has datatype None; it must be one of BOOL, UINT8"),
        (tensor(datatype=["INT8"]), "must be one of BOOL"),
        (tensor(shape=None), "needs a 'shape': a list of at most 32 sizes"),
        (tensor(shape=2), "needs a 'shape'"),
        (tensor(shape=[1] * 33), "at most 32"),
        (tensor(shape=[2, -1]), "at least 0"),
        (tensor(shape=[2.0]), "whole numbers"),
        (tensor(shape=[1 << 34]), "has 2 values; its shape and datatype INT8 ask for 17179869184"),
        (tensor(shape=[(1 << 34) + 1]), "too large"),
        (tensor(shape=[1 << 17, (1 << 17) + 1]), "too large"),
        (tensor(shape=[0, 1 << 34]), "has 2 values; .* ask for 0"),
        (tensor(shape=[0, (1 << 34) + 1]), "too large"),
        ({"name": "x", "datatype": "INT8", "shape": [2]}, "'x' has no 'data'"),
        (tensor(data=[1, 2, 3]), "has 3 values; its shape and datatype INT8 ask for 2"),
        (tensor(datatype="UINT8", data=[1, -3]), r"-3 does not fit UINT8 \(0 to 255\)"),
        (tensor(data=[128, 300]), r"128 does not fit INT8 \(-128 to 127\)"),
        (tensor(data=[-128, -129]), "-129 does not fit INT8"),
        (tensor(data=["1", None]), "its data holds NoneType, str"),
        (tensor(datatype="FP32", data=[True, 1]), r'takes numbers, "NaN", .*; its data holds bool'),
        (tensor(datatype="FP32", data=[1, "nan"]), "'nan' is not a number"),
        (tensor(datatype="FP32", data=[1, -1e39]), r"-1e\+39 does not fit FP32"),
        (tensor(datatype="FP16", data=["NaN", 65536]), "65536 does not fit FP16"),
        (tensor(datatype="COMPLEX64", data=[1, 2]), "has 2 values; .* COMPLEX64 ask for 4"),
        (tensor(datatype="BYTES", data=["a"]), r"has 1 values; its shape \[2\] asks for 2"),
        (tensor(datatype="BYTES", data=["a", "b"], parameters={"encoding": "latin-1"}), "encoding 'latin-1'; it must"),
        (tensor(datatype="BYTES", data=["YQ=", ""], parameters={"encoding": "base64"}), "'x' says .* base64"),
        (tensor(datatype="BYTES", data=["\u00e4===", ""], parameters={"encoding": "base64"}), "'x' says .* base64"),
        (tensor(data=[[1], [2]]), "its data holds list"),
        (tensor(shape=[], data=[[1]]), "its data holds list"),
        (tensor(shape=[4], data=[[1, 2], [3, 4]]), "does not nest"),
        (tensor(shape=[2, 2], data=[[1, 2], 3]), "does not nest"),
        (tensor(shape=[2, 2], data=[[1, 2], [3, 4], [5, 6]]), "does not nest"),
        (tensor(shape=[2, 1, 2], data=[[[1, 2]], [[3]]]), "does not nest"),
        (tensor(shape=[2, 1, 1], data=[[1], [2]]), "does not nest"),
    ],
)
def test_each_limit_of_a_tensor_is_told(wrong: Any, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.read_tensors([wrong], memoryview(b""), "inputs")


# -- the binary form ---------------------------------------------------------------------------------------------------


def binary(datatype: str, shape: list[int], size: Any = None) -> dict[str, Any]:
    return {"name": "x", "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "dtype", "value"),
    [
        ("INT16", [2, 2], "0100030002000400", np.int16, [[1, 3], [2, 4]]),
        ("BOOL", [3], "000201", np.bool_, [False, True, True]),
        ("BYTES", [2], "020000006162" + "00000000", object, [b"ab", b""]),
        ("BYTES", [1, 1], "00010000" + 256 * "61", object, [[256 * b"a"]]),
        ("BYTES", [0], "", object, []),
        ("FP32", [0, 2], "", np.float32, np.zeros((0, 2))),
    ],
)
def test_what_the_binary_form_stands_for(datatype: str, shape: list[int], raw: str, dtype: Any, value: Any) -> None:
    name, found = oip.from_binary(binary(datatype, shape), memoryview(bytes.fromhex(raw)))

    assert name == "x"
    assert_same(found, np.array(value, dtype))


def test_numbers_are_not_copied() -> None:
    raw = bytes(8)

    assert np.shares_memory(oip.from_binary(binary("INT32", [2]), memoryview(raw))[1], np.frombuffer(raw, np.int8))


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "said"),
    [
        ("INT16", [2], "010002", "'x' has 3 bytes of binary data; its shape and datatype ask for 4"),
        ("INT16", [2], "0100020003", "has 5 bytes"),
        ("INT16", [1 << 34], "0100", "ask for 34359738368"),
        ("BYTES", [2], "0100000061", r"has 1 elements; its shape \[2\] asks for 2"),
        ("BYTES", [1], 2 * "0100000061", "has 2 elements"),
        ("BYTES", [1], "0200000061", "ends inside element 0"),
        ("BYTES", [2], "0100000061" + "000000", "ends inside element 1"),
        ("BYTES", [1], "00", "ends inside element 0"),
        ("BYTES", [1], "ffffffff61", "ends inside element 0"),
    ],
)
def test_binary_data_of_another_size_are_told(datatype: str, shape: list[int], raw: str, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.from_binary(binary(datatype, shape), memoryview(bytes.fromhex(raw)))


def test_tensors_take_their_bytes_one_after_the_other() -> None:
    heads = [
        binary("INT8", [2], 2) | {"name": "a"},
        tensor(name="b"),
        binary("INT8", [0], 0) | {"name": "c"},
        binary("INT8", [1], 1) | {"name": "d"},
    ]

    found = oip.read_tensors(heads, memoryview(b"\x01\x02\x03"), "inputs")

    assert {name: array.tolist() for name, array in found.items()} == {"a": [1, 2], "b": [1, 2], "c": [], "d": [3]}
    assert oip.read_tensors([], memoryview(b""), "inputs") == {}
    with pytest.raises(errors.InvalidArgumentError, match=r"'x' says that it has 2 bytes .*; 1 bytes are left"):
        oip.read_tensors([heads[0], binary("INT8", [2], 2)], memoryview(b"\x01\x02\x03"), "inputs")
    with pytest.raises(errors.InvalidArgumentError, match="'x' says that it has True bytes"):
        oip.read_tensors([binary("INT8", [1], True)], memoryview(b"\x01"), "inputs")
    with pytest.raises(errors.InvalidArgumentError, match=r"^1 bytes at the end of the body belong to no tensor"):
        oip.read_tensors(heads[:2], memoryview(b"\x01\x02\x03"), "inputs")


def test_a_list_of_tensors_of_different_names_is_needed() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="'outputs' must be a list of tensors"):
        oip.read_tensors({"x": tensor()}, memoryview(b""), "outputs")
    with pytest.raises(errors.InvalidArgumentError, match="'inputs' names tensor 'x' twice"):
        oip.read_tensors([tensor(), tensor()], memoryview(b""), "inputs")


# -- bodies ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "text", "rest"), [(None, b'{"a": 1}xy', b""), ("8", b'{"a": 1}', b"xy"), ("0", b"", b'{"a": 1}xy')]
)
def test_the_json_part_of_a_body_comes_first(length: str | None, text: bytes, rest: bytes) -> None:
    found, binary = oip.cut_body(b'{"a": 1}xy', length)

    assert (found, bytes(binary)) == (text, rest)


def test_a_body_is_json_and_what_follows() -> None:
    found, rest = oip.split_body(b'{"a": 1}xy', "8")

    assert (found, bytes(rest)) == ({"a": 1}, b"xy")
    assert oip.cut_body(b"[]", "2") == (b"[]", memoryview(b""))


@pytest.mark.parametrize("length", ["3", "-1", "", "x", "1.0", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_a_length_that_the_body_does_not_have(length: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"Inference-Header-Content-Length is .* body's 2 bytes"):
        oip.cut_body(b"[]", length)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{\n"a" 1}', r"not JSON: Expecting .* at line 2, column 5\."),
        (b'["\xff"]', r"not UTF-8 \(byte 2\)"),
        (b"[-Infinity]", 'not JSON: -Infinity is not part of JSON; write "-Infinity" as a text'),
        (b"[" + 5000 * b"9" + b"]", "the body is not JSON: "),  # Python's own limit of digits
    ],
)
def test_where_a_body_stops_to_be_json(text: bytes, said: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=said):
        oip.parse_json(text)
