"""`tf.contrib.text`: pairs of words that stand near each other, as word2vec learns them.

A pair is a token and a label within its window, whose size is drawn for each token. Made of public ops, in the order of
TensorFlow's kernel. Follows TensorFlow 1.15's contrib/text/python/ops/skip_gram_ops.py.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

import tenfold as tf
from tenfold.contrib import lookup

__all__ = ["skip_gram_sample", "skip_gram_sample_with_text_vocab"]


def skip_gram_sample(
    input_tensor: Any,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    vocab_freq_table: Any = None,
    vocab_min_count: Any = None,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """(tokens, labels), [pairs] each, of the `limit` tokens of a list [n] from `start` on; -1 for all.

    A window reaches `min_skips` to `max_skips` tokens to both sides. `vocab_freq_table` leaves out tokens that are not
    in it or rarer than `vocab_min_count`; `vocab_subsampling` leaves out frequent ones at random, by their share of
    `corpus_size`. With `batch_size` the pairs come by queue in batches. Raises ValueError for a figure without its
    table, for one of `vocab_subsampling` and `corpus_size` alone; when run, InvalidArgumentError for wrong windows.
    """
    if vocab_freq_table is None and not (vocab_min_count is None and vocab_subsampling is None and corpus_size is None):
        raise ValueError(
            f"vocab_freq_table is not provided, but vocab_min_count={vocab_min_count}, vocab_subsampling="
            f"{vocab_subsampling}, or corpus_size={corpus_size} is not None. These settings are useless without a "
            "vocab_freq_table."
        )
    if (vocab_subsampling is None) != (corpus_size is None):
        raise ValueError(
            f"vocab_subsampling is {vocab_subsampling} while corpus_size is {corpus_size} - both must be provided in "
            "order for subsampling to work."
        )
    with tf.name_scope(name, "skip_gram_sample", [input_tensor, min_skips, max_skips, start, limit]):
        tokens = tf.convert_to_tensor(input_tensor)
        if vocab_freq_table is not None:
            tokens = _kept(tokens, vocab_freq_table, vocab_min_count, vocab_subsampling, corpus_size, seed)
        pairs = _pairs(tokens, min_skips, max_skips, start, limit, emit_self_as_target, seed)
        if batch_size is not None and batch_size > 0:
            capacity = batch_capacity if batch_capacity is not None and batch_capacity > 0 else 100 * batch_size
            batch = tf.train.batch(list(pairs), batch_size, capacity=capacity, enqueue_many=True)
            return batch[0], batch[1]
        return pairs


def _pairs(
    tokens: Any, min_skips: Any, max_skips: Any, start: Any, limit: Any, with_itself: Any, seed: int | None
) -> tuple[Any, Any]:
    low, high, start, limit = (
        tf.convert_to_tensor(each, tf.int32, name=what)
        for each, what in (
            (min_skips, "min_skips"), (max_skips, "max_skips"), (start, "start"), (limit, "limit")
        )
    )  # fmt: skip
    checks = [
        tf.assert_non_negative(low, message="Both min_skips and max_skips must be >= 0."),
        tf.assert_less_equal(low, high, message="min_skips must be <= max_skips."),
    ]
    with tf.control_dependencies(checks):
        size = tf.size(tokens)
        end = tf.where(limit < 0, size, tf.minimum(start + limit, size))
        places = tf.range(start, end)
    sizes = tf.random_uniform(tf.shape(places), low, high + 1, dtype=tf.int32, seed=seed)
    distances = tf.range(-high, high + 1)
    labels = tf.expand_dims(places, 1) + tf.expand_dims(distances, 0)
    inside = (labels >= start) & (labels < end)
    near = tf.abs(tf.expand_dims(distances, 0)) <= tf.expand_dims(sizes, 1)
    wanted = inside & near & (tf.not_equal(distances, 0) | tf.convert_to_tensor(with_itself, tf.bool))
    found = tf.where(wanted)
    token_places = tf.gather(places, found[:, 0])
    return tf.gather(tokens, token_places), tf.gather(tokens, tf.gather_nd(labels, found))


def _kept(
    tokens: Any, table: Any, min_count: Any, subsampling: float | None, corpus_size: Any, seed: int | None
) -> Any:
    if not hasattr(table, "default_value") or not hasattr(table, "lookup"):
        raise ValueError(
            "vocab_freq_table must be a subclass of InitializableLookupTableBase (such as HashTable) instead of type "
            f"{type(table)}."
        )
    with tf.name_scope("filter_vocab"):
        frequency = table.lookup(tokens)
        mask = tf.not_equal(frequency, table.default_value)
        if min_count is not None:
            mask = mask & tf.greater_equal(frequency, tf.cast(min_count, frequency.dtype))
        tokens, frequency = tf.boolean_mask(tokens, mask), tf.boolean_mask(frequency, mask)
    if not subsampling:
        return tokens
    if not 0 <= subsampling <= 1:
        raise ValueError(f"Invalid vocab_subsampling={subsampling} - it should be within range [0, 1].")
    with tf.name_scope("subsample_vocab"):
        frequency = tf.cast(frequency, tf.float64)
        usual = tf.cast(subsampling, tf.float64) * tf.cast(corpus_size, tf.float64)
        keep = (tf.sqrt(frequency / usual) + 1.0) * (usual / frequency)
        drawn = tf.random_uniform(tf.shape(frequency), dtype=tf.float64, seed=seed)
        return tf.boolean_mask(tokens, tf.less_equal(drawn, keep))


def skip_gram_sample_with_text_vocab(
    input_tensor: Any,
    vocab_freq_file: str,
    vocab_token_index: int = 0,
    vocab_token_dtype: Any = tf.string,
    vocab_freq_index: int = 1,
    vocab_freq_dtype: Any = tf.float64,
    vocab_delimiter: str = ",",
    vocab_min_count: Any = 0,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`skip_gram_sample` with the frequencies of a file of words, one a line, in columns.

    `corpus_size` is by default the sum of the frequencies. Raises ValueError for columns that are not there or the
    same, a negative frequency, a `corpus_size` below the sum.
    """
    if vocab_token_index < 0 or vocab_freq_index < 0:
        raise ValueError(
            f"vocab_token_index={vocab_token_index} and vocab_freq_index={vocab_freq_index} must both be >= 0."
        )
    if vocab_token_index == vocab_freq_index:
        raise ValueError(
            f"vocab_token_index and vocab_freq_index should be different, but are both {vocab_token_index}."
        )
    frequencies = _frequencies(
        vocab_freq_file, vocab_delimiter, vocab_token_index, vocab_freq_index, tf.as_dtype(vocab_freq_dtype)
    )
    total = float(np.sum(frequencies))
    if not corpus_size:
        corpus_size = total
    elif total - corpus_size > 1e-6:
        raise ValueError(
            f"`corpus_size`={corpus_size} must be greater than or equal to the sum of all the frequency counts "
            f"({total}) of `vocab_freq_file` ({vocab_freq_file})."
        )
    initializer = lookup.TextFileInitializer(
        vocab_freq_file,
        vocab_token_dtype,
        vocab_token_index,
        vocab_freq_dtype,
        vocab_freq_index,
        len(frequencies),
        vocab_delimiter,
    )
    return skip_gram_sample(
        input_tensor,
        min_skips,
        max_skips,
        start,
        limit,
        emit_self_as_target,
        lookup.HashTable(initializer, default_value=-1),
        vocab_min_count,
        vocab_subsampling,
        None if vocab_subsampling is None else corpus_size,
        batch_size,
        batch_capacity,
        seed,
        name,
    )


def _frequencies(path: str, delimiter: str, token_column: int, frequency_column: int, dtype: Any) -> list[Any]:
    frequencies = []
    with tf.gfile.GFile(path, mode="r") as file:
        for row in csv.reader(file, delimiter=delimiter):
            if token_column >= len(row) or frequency_column >= len(row):
                raise ValueError(
                    f"Row in vocab file only has {len(row)} columns, so vocab_token_index={token_column} or "
                    f"vocab_freq_index={frequency_column} is out of bounds. Row content: {row}"
                )
            frequency = dtype.as_numpy_dtype(row[frequency_column])
            if frequency < 0:
                raise ValueError(f"Row in vocab file has negative frequency of {frequency}. Row content: {row}")
            frequencies.append(frequency)
    return frequencies
