"""tf.contrib.text: pairs of neighbouring words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

text = tf.contrib.text
WORDS = [b"the", b"quick", b"brown", b"fox", b"jumps"]


def _run(*pair: Any) -> list[tuple[bytes, bytes]]:
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        tokens, labels = session.run(list(pair))
    return list(zip(tokens.tolist(), labels.tolist(), strict=True))


def test_pairs_are_those_within_the_window_in_order() -> None:
    with tf.Graph().as_default():
        found = _run(*text.skip_gram_sample(WORDS, min_skips=1, max_skips=1, start=1, limit=3))

    assert found == [(b"quick", b"brown"), (b"brown", b"quick"), (b"brown", b"fox"), (b"fox", b"brown")]


def test_windows_are_drawn_between_the_bounds() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        found = _run(*text.skip_gram_sample(WORDS, 0, 4, emit_self_as_target=True))

    assert all((word, word) in found for word in WORDS)
    assert len(WORDS) < len(found) < len(WORDS) ** 2
    with tf.Graph().as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="min_skips must be <= max_skips"):
        _run(*text.skip_gram_sample(WORDS, 2, tf.placeholder_with_default(1, [])))


def test_rare_words_of_a_file_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "words.csv"
    file.write_text("the,900\nquick,5\nbrown,1\nfox,4\n")
    with tf.Graph().as_default():
        found = _run(
            *text.skip_gram_sample_with_text_vocab(WORDS, str(file), vocab_min_count=4, min_skips=1, max_skips=1)
        )

    assert found == [(b"the", b"quick"), (b"quick", b"the"), (b"quick", b"fox"), (b"fox", b"quick")]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="only has 2 columns"):
        text.skip_gram_sample_with_text_vocab(WORDS, str(file), vocab_freq_index=2)
    with pytest.raises(ValueError, match="useless without a vocab_freq_table"):
        text.skip_gram_sample(WORDS, vocab_min_count=1)
