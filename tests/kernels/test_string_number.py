"""Numbers to strings and back: what C's printf and TensorFlow's parsers say, at the ends of every type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu.string_number import numbers_of, parser

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS = (np.float16, np.float32, np.float64)


def told(value: bytes, kind: Any) -> Any:
    """The number, or that there is none: by the parser of one, and by that of many alone and among others."""
    try:
        one = parser(kind)(value)
        assert type(one) is kind
    except ValueError:
        one = None
    for row in ([value], [value, value], [b"1", value], [value, b"7"]):
        try:
            many = numbers_of(row, kind)
        except ValueError:
            assert one is None, row
        else:
            assert many.dtype == kind
            assert one is not None, row
            assert many[row.index(value)] == one or math.isnan(one)
    return one


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_up_to_both_ends(kind: Any) -> None:
    limits = np.iinfo(kind)
    for number in (limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1):
        assert told(b"%d" % number, kind) == number
        assert told(b" \t%d\n" % number, kind) == number
        assert told(b"%021d" % number, kind) == number
    for number in (limits.min - 1, limits.max + 1, 10 * limits.max, 10**40):
        assert told(b"%d" % number, kind) is None
    assert told(b"+17", kind) == 17
    assert told(b"-17", kind) == (-17 if limits.min else None)
    assert told(b"-0", kind) == (0 if limits.min else None)
    assert told(b"0" * 60 + b"9", kind) == 9


@pytest.mark.parametrize(
    "text", [b"", b" ", b"+", b"1 2", b"--1", b"1.0", b"0x10", b"1e2", b"one", b"1_0", b"\x00", b"7x"]
)
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32])
def test_what_is_no_integer(text: bytes, kind: Any) -> None:
    assert told(text, kind) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"0", 0), (b"-0.5", -0.5), (b"+2.5", 2.5), (b".25", 0.25), (b"3.", 3), (b" 1e3\r", 1000), (b"1E-2", 0.01),
        (b"\v-1.5e+1\f", -15), (b"inf", math.inf), (b"-Infinity", -math.inf), (b"+INF", math.inf), (b"0x10", 16),
        (b"-0XfF", -255), (b"1e999", math.inf), (b"1" * 29, float("1" * 29)), (b"0." + b"3" * 40, 1 / 3),
        (b"0x" + b"1" * 32, float(int("1" * 32, 16))),
    ],
)  # fmt: skip
def test_floats(text: bytes, number: float) -> None:
    for kind in FLOATS:
        with np.errstate(over="ignore"):
            assert told(text, kind) == kind(number)


def test_what_is_no_number_is_one_in_floats() -> None:
    assert math.isnan(told(b"NaN", np.float32))
    assert math.isnan(told(b" -nan ", np.float64))


@pytest.mark.parametrize(
    "text",
    [b"", b".", b"e5", b"1e", b"1e+", b"--1", b"1..2", b"infin", b"1 2", b"0x", b"0x" + b"1" * 33, b"1_0", b"1f"],
)
def test_what_is_no_float(text: bytes) -> None:
    for kind in FLOATS:
        assert told(text, kind) is None


def test_many_are_read_as_each_alone() -> None:
    for kind in (*INTEGERS, *FLOATS):
        assert numbers_of([b"12", b"+7", b"3"], kind).tolist() == [12, 7, 3]
    assert numbers_of([b"1.5", b"-2", b"1e1"], np.float32).tolist() == [1.5, -2, 10]
    assert numbers_of([b"-128", b"127"], np.int8).tolist() == [-128, 127]
    for wrong in ([b"-129", b"0"], [b"0", b"128"], [b"1,2", b"3"], [b"1", b""]):
        with pytest.raises(ValueError, match=r".*"):
            numbers_of(wrong, np.int8)
    assert numbers_of([b"16777217"], np.float32).tolist() == [16777216]
    assert numbers_of([b"9" * 18, b"-" + b"9" * 18], np.int64).tolist() == [10**18 - 1, 1 - 10**18]


def test_the_op_names_the_string_that_is_no_number(ops: Any) -> None:
    assert ops.run("StringToNumber", [[[b"1", b"-3"]]], out_type=dtypes.int32).tolist() == [[1, -3]]
    with pytest.raises(errors.InvalidArgumentError, match=r"^StringToNumberOp could not correctly convert string: 3x$"):
        ops.run("StringToNumber", [[b"1", b"3x"]], out_type=dtypes.int32)


def numbers(*values: Any, kind: Any = np.float32) -> Any:
    return np.array(values, kind)


AS_STRING: list[tuple[Any, dict[str, Any], list[bytes]]] = [
    (numbers(1.5, -2), {}, [b"1.500000", b"-2.000000"]),
    (numbers(1.5, -2), {"precision": 0}, [b"2", b"-2"]),
    (numbers(1.25), {"precision": 1, "width": 6}, [b"   1.2"]),
    (numbers(1.5), {"width": 0}, [b"1.500000"]),
    (numbers(1.5), {"width": 10, "fill": b"-"}, [b"1.500000  "]),
    (numbers(1.5, -1.5), {"width": 10, "fill": b"0"}, [b"001.500000", b"-01.500000"]),
    (numbers(1.5, -1.5), {"fill": b"+", "precision": 1}, [b"+1.5", b"-1.5"]),
    (numbers(1.5, -1.5), {"fill": b" ", "precision": 1}, [b" 1.5", b"-1.5"]),
    (numbers(1234.5), {"scientific": True, "precision": 2}, [b"1.23e+03"]),
    (numbers(1234.5, 1e-9), {"shortest": True}, [b"1234.5", b"1e-09"]),
    (numbers(1), {"shortest": True, "fill": b"#"}, [b"1.00000"]),
    (numbers(np.inf, -np.inf, np.nan), {"width": 6, "fill": b"0"}, [b"   inf", b"  -inf", b"   nan"]),
    (numbers(np.inf, np.nan), {}, [b"inf", b"nan"]),
    (numbers(np.inf), {"fill": b"+"}, [b"+inf"]),
    (numbers(1 - 2.5j, kind=np.complex64), {"precision": 1}, [b"(1.0,-2.5)"]),
    (numbers(1 + 2j, kind=np.complex128), {"scientific": True, "precision": 0, "width": 7}, [b"(  1e+00,  2e+00)"]),
    (numbers(5, -6, kind=np.int64), {"width": 4}, [b"   5", b"  -6"]),
    (numbers(5, -6, kind=np.int8), {"width": 4, "fill": b"0"}, [b"0005", b"-006"]),
    (numbers(5, -6, kind=np.int16), {"fill": b"+"}, [b"+5", b"-6"]),
    (numbers(5, kind=np.int32), {"fill": b" "}, [b" 5"]),
    (numbers(5, kind=np.int32), {"fill": b"-", "width": 3}, [b"5  "]),
    (numbers(5, kind=np.uint8), {"fill": b"+"}, [b"5"]),
    (numbers(5, kind=np.uint32), {"fill": b" "}, [b"5"]),
    (numbers(2**64 - 1, kind=np.uint64), {}, [b"18446744073709551615"]),
    (numbers(True, False, kind=bool), {}, [b"true", b"false"]),
    (numbers(b"ab", b"", kind=object), {}, [b"ab", b""]),
    (numbers(b"ab", kind=object), {"width": 0}, [b"ab"]),
    (numbers(b"ab", kind=object), {"width": 1}, [b"ab"]),
    (numbers(b"ab", kind=object), {"width": 4}, [b"  ab"]),
    (numbers(b"ab", kind=object), {"width": 4, "fill": b"-"}, [b"ab  "]),
    (numbers(b"ab", kind=object), {"width": 4, "fill": b"+"}, [b"  ab"]),
    (numbers(b"abcd", kind=object), {"width": 5, "precision": 2}, [b"   ab"]),
]


@pytest.mark.parametrize(("values", "attrs", "expected"), AS_STRING, ids=range(len(AS_STRING)))
def test_as_printf_writes(ops: Any, values: Any, attrs: dict[str, Any], expected: list[bytes]) -> None:
    assert ops.run("AsString", [values], **attrs).tolist() == expected


@pytest.mark.parametrize(
    ("values", "attrs", "text"),
    [
        (
            numbers(1, kind=np.int32),
            {"scientific": True},
            "^scientific and shortest format not supported for datatype int32",
        ),
        (numbers(1, kind=np.int32), {"shortest": True}, "^scientific and shortest format not supported for datatype"),
        (numbers(True, kind=bool), {"shortest": True}, "^scientific and shortest format not supported.*bool"),
        (numbers(1, kind=np.int64), {"precision": 0}, "^precision not supported for datatype int64"),
        (numbers(True, kind=bool), {"precision": 3}, "^precision not supported for datatype bool"),
        (numbers(1.0), {"fill": b"00"}, "^Fill string must be one or fewer characters"),
        (numbers(1.0), {"fill": b"x"}, '^Fill argument not supported: "x"'),
        (numbers(1.0), {"scientific": True, "shortest": True}, "^Cannot select both scientific and shortest notation"),
        (numbers(1.0), {"width": (1 << 20) + 1}, "^AsString's width is 1048577; it can be 1048576 at most"),
        (numbers(1.0), {"precision": (1 << 20) + 1}, "^AsString's precision is 1048577; it can be 1048576 at most"),
    ],
)
def test_what_is_refused(ops: Any, values: Any, attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("AsString", [values], **attrs)


def test_the_widest_is_written(ops: Any) -> None:
    assert len(ops.run("AsString", [numbers(1, kind=np.int32)], width=1 << 20)[0]) == 1 << 20


@pytest.mark.parametrize(
    ("values", "attrs"),
    [
        (np.zeros(1 << 20, np.float32), {"width": 1 << 19, "precision": 1 << 19}),
        (np.zeros(1 << 20, np.complex64), {"width": 1 << 19}),
    ],
)
def test_what_would_take_too_much_memory_is_refused_first(
    ops: Any, monkeypatch: pytest.MonkeyPatch, values: Any, attrs: dict[str, Any]
) -> None:
    """Width and precision add up, and a complex number has two of each: the bytes are asked for before any is made."""
    from tenfold_kernels.cpu import string_number

    asked: list[Any] = []

    def refuse(shape: Any, kind: Any) -> None:
        asked.append(math.prod(shape))
        raise errors.ResourceExhaustedError(None, None, "too much")

    monkeypatch.setattr(string_number, "allow", refuse)
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("AsString", [values], **attrs)
    assert asked == [1 << 40]
