"""EditDistance against known pairs of words, Fingerprint against FarmHash's numbers; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.op_values import refused
from support.room import assert_wants
from tenfold_kernels.hashes import fingerprint64

METHOD = np.array(b"farmhash64", object)


def texts(*values: Any) -> np.ndarray:
    return np.array(values, object)


def sparse(rows: dict[tuple[int, ...], str], shape: tuple[int, ...]) -> list[np.ndarray]:
    """A sequence of letters at each place."""
    indices = [[*place, i] for place, word in rows.items() for i in range(len(word))]
    letters = [ord(letter) for word in rows.values() for letter in word]
    return [
        np.array(indices, np.int64).reshape(-1, len(shape)), np.array(letters, np.int32), np.array(shape, np.int64)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("guess", "truth", "distance"),
    [
        ("", "", 0), ("a", "", 1), ("", "ab", 2), ("a", "a", 0), ("a", "b", 1), ("kitten", "sitting", 3),
        ("sunday", "saturday", 3), ("abc", "bc", 1), ("bc", "abc", 1), ("abc", "ab", 1), ("abcd", "badc", 3),
        ("flaw", "lawn", 2), ("aa", "aaaa", 2), ("xyz", "abcdefg", 7),
    ],
)  # fmt: skip
def test_distances_of_words(ops: Any, guess: str, truth: str, distance: int) -> None:
    pair = [*sparse({(0,): guess}, (1, 9)), *sparse({(0,): truth}, (1, 9))]

    assert ops.run("EditDistance", pair, normalize=False).tolist() == [distance]

    share = distance / len(truth) if truth else np.inf if guess else 0
    assert ops.run("EditDistance", pair).tolist() == [np.float32(share)]
    assert ops.run("EditDistance", pair, normalize=True).tolist() == [np.float32(share)]


def test_sequences_are_matched_by_their_places(ops: Any) -> None:
    guesses = sparse({(0, 1): "ab", (1, 0): "xyz"}, (2, 2, 3))
    truths = sparse({(0, 0): "a", (0, 1): "abc", (2, 0): "q"}, (3, 1, 4))
    truths[2][1] = 2
    found = ops.run("EditDistance", [*guesses, *truths], normalize=False)
    assert found.tolist() == [[1, 1], [3, 0], [1, 0]]
    words = [np.int64([[0, 0], [0, 1]]), texts(b"one", b"two"), np.int64([1, 2])]
    others = [np.int64([[0, 0], [0, 1]]), texts(b"one", b"too"), np.int64([1, 2])]
    assert ops.run("EditDistance", [*words, *others]).tolist() == [0.5]


def test_sequences_that_do_not_go_together(ops: Any) -> None:
    good, text = sparse({(0,): "ab"}, (1, 2)), "Expected hypothesis.shape[0] == truth.shape[0], and at least two"
    flat = [np.int64([[0]]), np.int32([1]), np.int64([2])]
    matrix = [good[0], good[1], np.int64([[1, 2]])]
    for one, other in ((good, flat), (flat, good), (flat, flat), (matrix, matrix), (matrix, good), (good, matrix)):
        refused(ops, "EditDistance", [*one, *other], text)
    beyond = [np.int64([[0, 2]]), np.int32([1]), np.int64([1, 2])]
    refused(ops, "EditDistance", [*beyond, *good], "indices[0] = [0,2] is out of bounds: need 0 <= index < [1,2]")
    refused(ops, "EditDistance", [*good, *beyond], "indices[0] = [0,2] is out of bounds: need 0 <= index < [1,2]")


def test_what_distances_take_is_asked_for(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [*sparse({(0, 0): "a"}, (5, 7, 2)), *sparse({(0, 0): "a"}, (5, 7, 2))]
    assert_wants(monkeypatch, 5 * 7 * 4, lambda: ops.run("EditDistance", pair))


def hashed(*values: bytes) -> list[list[int]]:
    return [list(fingerprint64(value).to_bytes(8, "little")) for value in values]


def test_fingerprints_are_of_a_rows_bytes(ops: Any) -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 2, 2)
    assert ops.run("Fingerprint", [x, METHOD]).tolist() == hashed(*(row.tobytes() for row in x))
    assert ops.run("Fingerprint", [x[:, ::-1], METHOD]).tolist() == hashed(*(row[::-1].tobytes() for row in x))
    assert ops.run("Fingerprint", [x[:, 0, 0], METHOD]).tolist() == hashed(*(row.tobytes() for row in x[:, 0, 0]))
    assert ops.run("Fingerprint", [np.zeros((2, 0)), METHOD]).tolist() == hashed(b"", b"")
    assert ops.run("Fingerprint", [np.zeros((0, 3)), METHOD]).shape == (0, 8)


def test_fingerprints_of_texts(ops: Any) -> None:
    words = [b"a", b"", b"long enough to be hashed in another way" * 3]
    assert ops.run("Fingerprint", [texts(*words), METHOD]).tolist() == hashed(*words)
    assert ops.run("Fingerprint", [texts(*words)[:, None], METHOD]).tolist() == hashed(*words)
    pairs = texts([b"a", b"b"], [b"ab", b""])
    both = [b"".join(fingerprint64(word).to_bytes(8, "little") for word in row) for row in pairs.tolist()]
    assert ops.run("Fingerprint", [pairs, METHOD]).tolist() == hashed(*both)
    assert ops.run("Fingerprint", [np.empty((2, 0), object), METHOD]).tolist() == hashed(b"", b"")


@pytest.mark.parametrize(
    ("data", "method", "text"),
    [
        (np.ones(2), texts(b"farmhash64"), "`method` should be a scalar string: [1]"),
        (np.ones(2), np.array(b"md5\xff", object), "Unsupported fingerprint method: md5\ufffd"),
        (np.ones(()), METHOD, "`data` should have at least one dimension: []"),
    ],
)
def test_what_has_no_fingerprint(ops: Any, data: Any, method: Any, text: str) -> None:
    refused(ops, "Fingerprint", [data, method], text)
