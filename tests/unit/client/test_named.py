"""Functions that a table's rows make: they look as if each were written out."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import tenfold as tf
from tenfold.contrib.learn.graph_io import read_batch_examples, read_keyed_batch_examples
from tenfold.contrib.slim.nets import resnet_v1, resnet_v2
from tenfold.named import named

MADE = {
    "assert_less": (tf.assert_less, "x y data summarize message name", "Fails unless x < y everywhere."),
    "assert_negative": (tf.assert_negative, "x data summarize message name", "Fails unless x < 0 everywhere."),
    "reduce_prod": (
        tf.reduce_prod,
        "input_tensor axis keepdims name reduction_indices keep_dims",
        "The product.",
    ),
    "log_uniform_candidate_sampler": (
        tf.nn.log_uniform_candidate_sampler,
        "true_classes num_true num_sampled unique range_max seed name",
        "Classes with a log-uniform (Zipfian) distribution: for vocabularies sorted by falling frequency.",
    ),
    "streaming_auc": (
        tf.contrib.metrics.streaming_auc,
        "predictions labels weights num_thresholds metrics_collections updates_collections curve name",
        "`tf.metrics.auc`.",
    ),
    "sparse_recall_at_top_k": (
        tf.contrib.metrics.sparse_recall_at_top_k,
        "labels top_k_predictions class_id weights metrics_collections updates_collections name",
        "`tf.metrics.recall_at_top_k`.",
    ),
    "streaming_mean": (
        tf.contrib.metrics.streaming_mean,
        "values weights metrics_collections updates_collections name",
        "`tf.metrics.mean` with arguments in the order values, weights, metrics_collections, updates_collections, "
        "name.",
    ),
    "read_batch_examples": (
        read_batch_examples,
        " ".join(inspect.signature(read_keyed_batch_examples).parameters),
        "The examples of `read_keyed_batch_examples`.",
    ),
    "resnet_v2_block": (
        resnet_v2.resnet_v2_block,
        "scope base_depth num_units stride",
        "A block of bottleneck units, of which the last one strides.",
    ),
}


def test_a_function_gets_name_and_docstring_and_stays_itself() -> None:
    def made() -> int:
        return 3

    assert named(made, "three", "Three.") is made
    assert (made.__name__, made.__qualname__, made.__doc__, made()) == ("three", "three", "Three.", 3)


@pytest.mark.parametrize("name", MADE)
def test_what_a_row_made_has_the_name_arguments_and_docstring_of_its_own(name: str) -> None:
    function, arguments, doc = MADE[name]
    assert (function.__name__, function.__qualname__, function.__doc__) == (name, name, doc)
    assert list(inspect.signature(function).parameters) == arguments.split()


@pytest.mark.parametrize("function", [tf.assert_equal, tf.assert_positive, tf.reduce_any, resnet_v1.resnet_v1])
def test_it_can_be_pickled_and_complains_in_its_own_name(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(TypeError, match=rf"^{function.__name__}\(\) got an unexpected keyword argument 'colour'$"):
        function(1, 2, colour=3)
