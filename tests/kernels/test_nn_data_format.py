"""Dimension numbers and sizes from one layout to another, worked out by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors

NUMBERS, SIZES = "DataFormatDimMap", "DataFormatVecPermute"
TO_LAST: dict[str, Any] = {"src_format": b"NCHW", "dst_format": b"NHWC"}
DEEP: dict[str, Any] = {"src_format": b"NDHWC", "dst_format": b"NCDHW"}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_numbers_and_sizes_in_another_layout(ops: Any, dtype: Any) -> None:
    for op, attrs, given, expected in (
        (NUMBERS, {}, [0, 1, 2, 3, -1, -2, -3, -4], [0, 2, 3, 1, 1, 3, 2, 0]),
        (NUMBERS, TO_LAST, [0, 1, 2, 3, -1, -4], [0, 3, 1, 2, 2, 0]),
        (NUMBERS, DEEP, [0, 1, 2, 3, 4, -1, -5], [0, 2, 3, 4, 1, 1, 0]),
        (NUMBERS, {}, 3, 1),
        (NUMBERS, {}, [[1], [-1]], [[2], [1]]),
        (NUMBERS, {}, [], []),
        (SIZES, {}, [10, 11, 12, 13], [10, 13, 11, 12]),
        (SIZES, TO_LAST, [10, 11, 12, 13], [10, 12, 13, 11]),
        (SIZES, {}, [10, 11], [10, 11]),
        (SIZES, {"src_format": b"HWNC", "dst_format": b"NCWH"}, [10, 11], [11, 10]),
        (SIZES, {}, [[1, 2], [3, 4], [5, 6], [7, 8]], [[1, 2], [7, 8], [3, 4], [5, 6]]),
        (SIZES, TO_LAST, [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (SIZES, DEEP, [10, 11, 12, 13, 14], [10, 14, 11, 12, 13]),
        (SIZES, {"src_format": b"NDHWC", "dst_format": b"NCWHD"}, [10, 11, 12], [12, 11, 10]),
    ):
        found = ops.run(op, [np.array(given, dtype)], **attrs)
        assert found.tolist() == expected, (op, attrs, given)
        assert found.dtype == dtype


def test_what_is_refused_in_which_words(ops: Any) -> None:
    other = {"src_format": b"NHWC", "dst_format": b"NCHD"}
    permutations = "Destination and source formats must be permutations of each other: NHWC and NCHD"
    vector = "input must be a vector or 2D tensor, but got shape "
    for op, attrs, given, text in (
        (NUMBERS, other, [0], permutations),
        (SIZES, other, [0], permutations),
        (NUMBERS, {"src_format": b"NHWC", "dst_format": b"NCH"}, [0], permutations[:-1]),
        (NUMBERS, {}, [0, 4], "Each dimension must lie in [-4, 4), got [0, 4]"),
        (NUMBERS, {}, [-5, 0], "Each dimension must lie in [-4, 4), got [-5, 0]"),
        (NUMBERS, DEEP, 5, "Each dimension must lie in [-5, 5), got [5]"),
        (SIZES, {}, 1, vector + "[]"),
        (SIZES, {}, np.ones((2, 2, 1)), vector + "[2,2,1]"),
        (SIZES, {}, np.ones((4, 1)), "Second dimension of 2D input must be of size 2, but got shape [4,1]"),
        (SIZES, {}, np.ones((4, 3)), "Second dimension of 2D input must be of size 2, but got shape [4,3]"),
        *(
            (SIZES, {}, np.ones(count), f"1D input must be of size 2 or 4, but got shape [{count}]")
            for count in (0, 1, 3, 5)
        ),
        (SIZES, DEEP, np.ones(4), "1D input must be of size 3 or 5, but got shape [4]"),
        (SIZES, {}, np.ones((3, 2)), "1D input must be of size 2 or 4, but got shape [3,2]"),
    ):
        with pytest.raises(errors.InvalidArgumentError) as refused:
            ops.run(op, [np.array(given, np.int32)], **attrs)
        assert refused.value.message == text, (op, attrs)
