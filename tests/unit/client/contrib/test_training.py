"""tf.contrib.training: hyperparameters, buckets, and evaluating checkpoints as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

training = tf.contrib.training


def test_hparams_keep_their_types() -> None:
    hparams = training.HParams(rate=0.1, layers=[3, 4], name="a", on=True)

    hparams.parse("rate=1,layers=[5,6,7],on=false").parse_json('{"name": "b"}')

    assert hparams.values() == {"rate": 1.0, "layers": [5, 6, 7], "name": "b", "on": False}
    again = training.HParams.from_proto(hparams.to_proto())
    assert again.values() == hparams.values()
    assert "rate" in again
    assert again.get("absent", 7) == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate=x", "Could not parse hparam 'rate' of type 'float' with value 'x'"),
        ("other=1", "Unknown hyperparameter type for other"),
        ("rate=1,rate=2", "Multiple assignments to variable 'rate'"),
        ("layers=1", "Must pass a list for multi-valued parameter: layers"),
        ("rate", "Malformed hyperparameter value: rate"),
    ],
)
def test_hparams_name_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        training.HParams(rate=0.1, layers=[3]).parse(text)


def test_buckets_hold_sequences_of_about_one_length() -> None:
    with tf.Graph().as_default():
        length = tf.train.slice_input_producer([tf.constant([1, 7, 2, 8])], num_epochs=1, shuffle=False)[0]
        lengths, batch = training.bucket_by_sequence_length(
            length, [tf.ones([length], tf.int32)], batch_size=2, bucket_boundaries=[5], dynamic_pad=True
        )
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(coord=coord)
            found = [sess.run([lengths, batch]) for _ in range(2)]
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=10)

    by_length = sorted((sorted(lengths.tolist()), batch.shape) for lengths, batch in found)
    assert by_length == [([1, 2], (2, 2)), ([7, 8], (2, 8))]


def test_a_checkpoint_is_evaluated_and_the_loop_ends(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.get_or_create_global_step()
        tf.get_variable("w", initializer=2.0)
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, str(tmp_path / "model"), global_step=1)
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        weight = tf.get_variable("w", initializer=0.0)
        value, update = tf.contrib.metrics.streaming_mean(weight)
        hook = training.StopAfterNEvalsHook(3)
        found = training.evaluate_repeatedly(
            str(tmp_path), eval_ops=update, final_ops=value, hooks=[hook], max_number_of_evaluations=1,
            eval_interval_secs=0, timeout=10,
        )  # fmt: skip
        steps = training.get_or_create_eval_step()

    assert found == 2.0
    assert steps.op.name == "eval_step"


def test_gradients_are_clipped_and_scaled() -> None:
    with tf.Graph().as_default():
        var = tf.get_variable("v", initializer=[3.0, 4.0])
        loss = tf.reduce_sum(var * [30.0, 40.0])

        def transform(pairs: Any) -> Any:
            return training.multiply_gradients(training.clip_gradient_norms(pairs, 5.0), {"v": 2.0})

        train = training.create_train_op(loss, tf.train.GradientDescentOptimizer(1.0), transform_grads_fn=transform)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            np.testing.assert_allclose(sess.run(var), [-3.0, -4.0], rtol=1e-6)


def test_what_is_left_out_says_why() -> None:
    with pytest.raises(AttributeError, match="batches of sequences with saved states"):
        _ = training.batch_sequences_with_states
