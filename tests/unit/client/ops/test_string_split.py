"""Strings become sparse tensors of their pieces, by the two functions that TensorFlow has for it."""

from __future__ import annotations

import pytest

import tenfold as tf


def pieces(parts: tf.SparseTensor) -> tuple[list[list[int]], list[bytes]]:
    with tf.Session() as session:
        value = session.run(parts)
    return value.indices.tolist(), value.values.tolist()


def test_any_character_of_a_delimiter_splits() -> None:
    assert pieces(tf.string_split(["a,b;c"], delimiter=",;")) == ([[0, 0], [0, 1], [0, 2]], [b"a", b"b", b"c"])


@pytest.mark.parametrize(
    ("sep", "given"), [(None, [b"a", b"b,", b"c"]), (", ", [b" a b", b"c"])], ids=["white space", "a separator"]
)
def test_a_whole_separator_splits(sep: str | None, given: list[bytes]) -> None:
    assert pieces(tf.strings.split([" a b, c"], sep=sep))[1] == given


def test_there_are_no_ragged_results() -> None:
    with pytest.raises(ValueError, match="no ragged tensors"):
        tf.strings.split(["a"], result_type="RaggedTensor")
