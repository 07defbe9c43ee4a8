"""tf.train.warm_start with vocabularies that changed, and the two ops behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.train.warm_starting import VocabInfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def written(path: Path, *words: str) -> str:
    path.write_text("".join(f"{word}\n" for word in words))
    return str(path)


@pytest.fixture
def old(tmp_path: Path) -> tuple[str, str]:
    """(checkpoint of the variable `w` with the rows OLD, its vocabulary)."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("w", initializer=OLD)
        session.run(variable.initializer)
        checkpoint = tf.train.Saver().save(session, str(tmp_path / "old"))
    return checkpoint, written(tmp_path / "old.txt", "apple", "banana", "guava", "orange")


def started(*variables: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(variables))


def test_rows_are_found_by_their_words(tmp_path: Path, old: tuple[str, str]) -> None:
    checkpoint, vocabulary = old
    new = written(tmp_path / "new.txt", "orange", "kiwi", "apple")
    w = tf.get_variable("w", shape=[4, 2])
    info = VocabInfo(new, 3, 1, vocabulary, backup_initializer=tf.ones_initializer())
    tf.train.warm_start(checkpoint, var_name_to_vocab_info={"w": info})
    (value,) = started(w)
    assert value.tolist() == [[6, 7], [1, 1], [0, 1], [1, 1]]


def test_columns_are_found_by_their_words(tmp_path: Path, old: tuple[str, str]) -> None:
    classes = written(tmp_path / "old_classes.txt", "good", "bad")
    new = written(tmp_path / "classes.txt", "bad", "worse", "good")
    w = tf.get_variable("other", shape=[4, 3])
    tf.train.warm_start(
        old[0],
        var_name_to_vocab_info={"other": VocabInfo(new, 3, 0, classes, axis=1)},
        var_name_to_prev_var_name={"other": "w"},
    )
    (value,) = started(w)
    assert value.tolist() == [[1, 0, 0], [3, 0, 2], [5, 0, 4], [7, 0, 6]]


def test_parts_start_from_their_own_words(tmp_path: Path, old: tuple[str, str]) -> None:
    new = written(tmp_path / "new.txt", "guava", "banana", "kiwi", "apple")
    w = tf.get_variable("w", shape=[5, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.train.warm_start(old[0], var_name_to_vocab_info={"w": VocabInfo(new, 4, 1, old[1])})
    assert np.concatenate(started(*w)).tolist() == [[4, 5], [2, 3], [0, 0], [0, 1], [0, 0]]


def test_only_the_first_words_of_the_old_vocabulary_count(tmp_path: Path, old: tuple[str, str]) -> None:
    new = written(tmp_path / "new.txt", "orange", "apple")
    w = tf.get_variable("w", shape=[2, 2])
    tf.train.warm_start(old[0], None, {"w": VocabInfo(new, 2, 0, old[1], old_vocab_size=2)})
    assert started(w)[0].tolist() == [[0, 0], [0, 1]]


def test_names_that_match_nothing_are_refused(old: tuple[str, str]) -> None:
    tf.get_variable("w", shape=[4, 2])
    with pytest.raises(ValueError, match="var_name_to_vocab_info that were not used"):
        tf.train.warm_start(old[0], var_name_to_vocab_info={"v": VocabInfo("a", 1, 0, "b")})
    with pytest.raises(ValueError, match="only supported values for the axis"):
        VocabInfo("a", 1, 0, "b", axis=2)


def test_a_vocabulary_that_is_too_short_is_refused(tmp_path: Path, old: tuple[str, str]) -> None:
    found = tf.raw_ops.GenerateVocabRemapping(
        new_vocab_file=written(tmp_path / "new.txt", "a"), old_vocab_file=old[1], new_vocab_offset=0, num_new_vocab=2
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="expected at least 2 but got 1"):
        session.run(found)


@pytest.mark.parametrize(
    ("rows", "values", "message"),
    [
        ([0, 0], [], "more than one new entry"),
        ([0, 9], [], "there is no row 9"),
        ([0, -1], [1.0], "contained 1 elements, but 2 values"),
        ([0], [], "instead of being equal to 2"),
    ],
)
def test_remappings_that_do_not_fit_are_refused(
    old: tuple[str, str], rows: list[int], values: list[float], message: str
) -> None:
    op = tf.raw_ops.LoadAndRemapMatrix(
        ckpt_path=old[0],
        old_tensor_name="w",
        row_remapping=tf.placeholder_with_default(np.array(rows, np.int64), None),
        col_remapping=np.zeros(0, np.int64),
        initializing_values=np.array(values, np.float32),
        num_rows=2,
        num_cols=2,
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(op)


def test_few_rows_at_a_time_give_the_same(old: tuple[str, str]) -> None:
    op = tf.raw_ops.LoadAndRemapMatrix(
        ckpt_path=old[0],
        old_tensor_name="w",
        row_remapping=np.array([3, 0, 2], np.int64),
        col_remapping=np.zeros(0, np.int64),
        initializing_values=np.zeros(0, np.float32),
        num_rows=3,
        num_cols=2,
        max_rows_in_memory=1,
    )
    with tf.Session() as session:
        assert session.run(op).tolist() == OLD[[3, 0, 2]].tolist()
