"""What crossed features may take, and that the compiled way gives what the other one does; values: tests/interop."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels import hashes
from tenfold_kernels.cpu import sparse_cross

TEXT: dict[str, Any] = {
    "N": 0, "sparse_types": (), "dense_types": (dtypes.string,) * 2, "hashed_output": False, "num_buckets": 0,
    "hash_key": 1, "out_type": dtypes.string, "internal_type": dtypes.string,
}  # fmt: skip


def strings(count: int, length: int) -> np.ndarray[Any, Any]:
    out = np.empty((1, count), object)
    out[...] = b"x" * length
    return out


def test_texts_are_counted_before_they_are_made(ops: Any) -> None:
    """Ten million combinations are few; ten million with a text of 400 kB each are not."""
    few, many = strings(2, 3), strings(3000, 200_000)

    indices, texts, shape = ops.run("SparseCross", [few, few], **TEXT)
    assert (indices.tolist(), texts.tolist()) == ([[0, i] for i in range(4)], [b"xxx_X_xxx"] * 4)
    assert shape.tolist() == [1, 4]
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("SparseCross", [many, many], **TEXT)


def test_rows_in_order_and_out_of_order_are_hashed_alike(ops: Any) -> None:
    """The compiled way takes rows in their order, the other one all."""
    words = np.array([b"a", b"b", b"c", b"d" * 70, b""], object)
    indices, numbers = np.int64([[0, 0], [0, 1], [1, 0], [3, 0], [3, 2]]), np.int64([[-4], [5], [6], [2**62]])
    kinds: dict[str, Any] = {
        "N": 1, "sparse_types": (dtypes.string,), "dense_types": (dtypes.int64,), "hashed_output": True,
        "num_buckets": 1000, "hash_key": -3, "out_type": dtypes.int64, "internal_type": dtypes.int64,
    }  # fmt: skip
    shape, turned = np.int64([4, 3]), [0, 1, 3, 4, 2]

    places, crossed, size = ops.run("SparseCross", [indices, words, shape, numbers], **kinds)
    others = ops.run("SparseCross", [indices[turned], words[turned], shape, numbers], **kinds)

    assert places.tolist() == [[0, 0], [0, 1], [1, 0], [3, 0], [3, 1]]
    assert size.tolist() == [4, 2]
    for mine, other in zip((places, crossed, size), others, strict=True):
        assert mine.tolist() == other.tolist()
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[4\] = \[3,2\] is out of bounds"):
        ops.run("SparseCross", [indices, words, np.int64([4, 2]), numbers], **kinds)


def test_too_many_hashed_combinations_are_refused(ops: Any) -> None:
    many = np.zeros((1, 100), np.int64)
    kinds: dict[str, Any] = {
        "N": 0, "sparse_types": (), "dense_types": (dtypes.int64,) * 6, "hashed_output": True, "num_buckets": 10,
        "hash_key": 1, "out_type": dtypes.int64, "internal_type": dtypes.int64,
    }  # fmt: skip
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("SparseCross", [many] * 6, **kinds)
    kinds["dense_types"] = (dtypes.int64,) * 200
    with pytest.raises(errors.InvalidArgumentError, match="Encountered overflow"):
        ops.run("SparseCross", [many] * 200, **kinds)


# ---- what fits each other --------------------------------------------------------------------------------------------


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


def words(*values: bytes) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out


NUMBERS: dict[str, Any] = {**TEXT, "hashed_output": True, "out_type": dtypes.int64, "internal_type": dtypes.int64}
COLUMN = [longs([0, 0], [0, 1], [2, 0]), words(b"a", b"b", b"c"), longs(3, 2)]


@pytest.mark.parametrize(
    ("hashed", "kind", "text"),
    [
        (True, dtypes.string, "^SparseCross gives int64 with hashed_output=True$"),
        (False, dtypes.int64, "^SparseCross gives string with hashed_output=False$"),
    ],
)
def test_hashes_are_numbers_and_texts_are_texts(ops: Any, hashed: bool, kind: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseCross", [strings(1, 1)] * 2, **{**TEXT, "hashed_output": hashed, "out_type": kind})


@pytest.mark.parametrize("kinds", [TEXT, NUMBERS], ids=["texts", "numbers"])
@pytest.mark.parametrize(
    ("sparse", "dense", "text"),
    [
        ([longs([0], [1]), words(b"a", b"b"), longs(3)], [], r"^shape should imply a 2D tensor, but got shape \[3\]$"),
        (
            [np.zeros((0, 3), np.int64), words(), longs(3, 2, 1)],
            [],
            r"^shape should imply a 2D tensor, but got shape \[3,2,1\]$",
        ),
        ([], [words(b"a", b"b")], r"^Dense inputs should be a matrix but received shape \[2\]$"),
        ([], [words(b"a")[None, None]], r"^Dense inputs should be a matrix but received shape \[1,1,1\]$"),
        ([], [strings(1, 1), np.concatenate([strings(1, 1)] * 2)], r"^Expected batch size 1, got 2$"),
        (COLUMN, [strings(1, 1)], r"^Expected batch size 3, got 1$"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(ops: Any, kinds: Any, sparse: Any, dense: Any, text: str) -> None:
    attrs = {**kinds, "N": len(sparse) // 3, "sparse_types": (dtypes.string,) * (len(sparse) // 3),
             "dense_types": (dtypes.string,) * len(dense)}  # fmt: skip
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseCross", [*sparse, *dense], **attrs)


def test_a_missing_part_is_told(ops: Any) -> None:
    attrs = {**NUMBERS, "N": 2, "sparse_types": (dtypes.string,), "dense_types": ()}
    inputs = [COLUMN[0], COLUMN[0], COLUMN[1], COLUMN[2], COLUMN[2]]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Expected indices, values and shapes of 2 .* 5 tensors$"):
        ops.run("SparseCross", inputs, **attrs)


@pytest.mark.parametrize("kinds", [TEXT, NUMBERS], ids=["texts", "numbers"])
def test_no_columns_and_no_rows_have_no_combinations(ops: Any, kinds: Any) -> None:
    kind = object if kinds is TEXT else np.int64
    for inputs, types, rows in (([], (), 0), ([strings(1, 1)[:0]], (dtypes.string,), 0),
                                ([strings(1, 1)[:, :0]], (dtypes.string,), 1)):  # fmt: skip
        places, crossed, shape = ops.run("SparseCross", inputs, **{**kinds, "dense_types": types})
        assert (places.shape, crossed.shape, crossed.dtype, shape.tolist()) == ((0, 2), (0,), kind, [rows, 0])


def test_each_row_crosses_its_own_values(ops: Any) -> None:
    """In order: the last column's values change first. A row that lacks a column has none."""
    other = [longs([0, 0], [1, 0], [2, 0], [2, 1]), longs(7, 8, 9, -1), longs(3, 2)]
    attrs = {**TEXT, "N": 2, "sparse_types": (dtypes.string, dtypes.int64), "dense_types": (dtypes.string,)}
    inputs = [COLUMN[0], other[0], COLUMN[1], other[1], COLUMN[2], other[2], words(b"x", b"y", b"z")[:, None]]
    places, texts, shape = ops.run("SparseCross", inputs, **attrs)
    assert places.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1]]
    assert texts.tolist() == [b"a_X_7_X_x", b"b_X_7_X_x", b"c_X_9_X_z", b"c_X_-1_X_z"]
    assert shape.tolist() == [3, 2]


def crossed(*numbers: int, key: int, buckets: int) -> int:
    for number in numbers:
        key = hashes.concatenated(key, number)
    return key % buckets


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "out of order"])
@pytest.mark.parametrize("buckets", [0, 97])
def test_hashes_of_two_columns(ops: Any, buckets: int, turned: bool) -> None:
    other = [longs([0, 0], [0, 1], [2, 0], [2, 1]), longs(7, 8, 9, -1), longs(3, 2)]
    first = [each[[2, 0, 1]] if turned and place < 2 else each for place, each in enumerate(COLUMN)]
    attrs = {**NUMBERS, "N": 2, "sparse_types": (dtypes.string, dtypes.int64), "dense_types": (),
             "num_buckets": buckets, "hash_key": -5}  # fmt: skip
    found = ops.run("SparseCross", [first[0], other[0], first[1], other[1], first[2], other[2]], **attrs)
    picked = [(text, number) for row in ([b"ab", [7, 8]], [b"c", [9, -1]]) for text in row[0] for number in row[1]]
    expected = [
        crossed(
            hashes.fingerprint64(bytes((text,))), number % (1 << 64),
            key=(1 << 64) - 5, buckets=buckets or (1 << 63) - 1,
        )
        for text, number in picked
    ]  # fmt: skip
    assert found[1].tolist() == expected
    assert found[0].tolist() == [[0, 0], [0, 1], [0, 2], [0, 3], [2, 0], [2, 1]]
    assert found[2].tolist() == [3, 4]


def test_memory_is_asked_for_by_every_way(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(sparse_cross, "allow", lambda dims, dtype: asked.append((tuple(dims), np.dtype(dtype))))
    texts = words(b"a", b"bb")[None], words(b"ccc", b"", b"d")[None]
    ops.run("SparseCross", list(texts), **TEXT | {"dense_types": (dtypes.string,) * 2})
    # six combinations: each text of the first three times, of the second twice, and six times the joint
    assert asked == [((6, 2), np.int64), ((3 * 3 + 2 * 4 + 6 * 3,), np.uint8)]
    asked.clear()
    ops.run("SparseCross", list(texts), **NUMBERS | {"dense_types": (dtypes.string,) * 2})
    assert asked == [((6, 2), np.int64)]


def test_how_many_bytes_texts_have() -> None:
    columns = [[b"a", b"bb"], [b"ccc"], [b"", b"d", b"ee"]]
    joined = [b"-+".join(picked) for picked in itertools.product(*columns)]
    assert sparse_cross._text_size(columns, 2) == sum(map(len, joined))


# ---- with a separator, and with a strong hash ------------------------------------------------------------------------


def test_the_separator_is_one_text(ops: Any) -> None:
    attrs = {"N": 0, "sparse_types": (), "dense_types": (dtypes.string,)}
    with pytest.raises(errors.InvalidArgumentError, match=r"^Input separator should be a scalar\. Received: \[1\]$"):
        ops.run("SparseCrossV2", [strings(1, 1), words(b"-")], **attrs)


@pytest.mark.parametrize(
    ("buckets", "strong", "salt"),
    [
        (longs(9), np.array(True), longs(1, 2)),
        (longs(9)[0], np.array([True]), longs(1, 2)),
        (longs(9)[0], np.array(True), longs(1)),
        (longs(9)[0], np.array(True), longs(1, 2, 3)),
        (longs(9)[0], np.array(True), longs([1, 2])),
    ],
)
def test_what_says_how_to_hash_has_its_shapes(ops: Any, buckets: Any, strong: Any, salt: Any) -> None:
    attrs = {"N": 0, "sparse_types": (), "dense_types": (dtypes.string,)}
    with pytest.raises(errors.InvalidArgumentError, match=r"^num_buckets and strong_hash should be scalars, and salt"):
        ops.run("SparseCrossHashed", [strings(1, 1), np.array(buckets, np.int64), strong, salt], **attrs)


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("buckets", [-1, 0, 1, 1000])
def test_hashes_by_a_key(ops: Any, buckets: int, strong: bool) -> None:
    """Numbers of a sparse feature are hashed as their first four bytes; dense ones only by the strong hash."""
    attrs = {"N": 1, "sparse_types": (dtypes.int64,), "dense_types": (dtypes.int64, dtypes.string)}
    number, other = (3 << 32) | 70000, -2
    inputs = [longs([0, 0]), longs(number), longs(1, 1), longs([other]), words(b"w")[None]]
    how = [np.array(buckets, np.int64), np.array(strong), longs(-7, 5)]

    def hashed(text: bytes) -> int:
        return hashes.siphash(((1 << 64) - 7, 5), text) if strong else hashes.fingerprint64(text)

    _, found, _ = ops.run("SparseCrossHashed", [*inputs, *how], **attrs)
    parts = [
        hashed((70000).to_bytes(4, "little")),
        hashed(b"\xfe\xff\xff\xff") if strong else (1 << 64) - 2,
        hashed(b"w"),
    ]
    assert found.tolist() == [crossed(*parts[1:], key=parts[0], buckets=buckets if buckets > 0 else (1 << 63) - 1)]
