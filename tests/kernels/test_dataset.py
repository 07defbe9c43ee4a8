"""Datasets through an iterator's ops. The machines' own tests are tests/unit/kernels/resources/test_datasets.py."""

from __future__ import annotations

import pytest

import tenfold as tf

raw = tf.raw_ops


def test_an_iterator_gives_batches_until_the_end() -> None:
    one = {"output_types": [tf.int64], "output_shapes": [[]]}
    many = {"output_types": [tf.int64], "output_shapes": [[None]]}
    with tf.Graph().as_default(), tf.Session() as session:
        numbers = raw.RangeDataset(start=0, stop=5, step=1, **one)
        batches = raw.BatchDatasetV2(input_dataset=numbers, batch_size=2, drop_remainder=False, **many)
        iterator = raw.IteratorV2(shared_name="", container="", **many)
        (batch,) = raw.IteratorGetNext(iterator=iterator, **many)

        session.run(raw.MakeIterator(dataset=batches, iterator=iterator))

        assert [session.run(batch).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)


def test_an_iterator_without_a_dataset_says_so() -> None:
    types = {"output_types": [tf.int64], "output_shapes": [[]]}
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = raw.IteratorV2(shared_name="", container="", **types)

        with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
            session.run(raw.IteratorGetNext(iterator=iterator, **types))
