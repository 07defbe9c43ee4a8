"""Models of tf.keras: layers between inputs and outputs, and subclasses; trained, evaluated and asked over arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

layers, l2 = tf.keras.layers, tf.keras.regularizers.l2


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def normal(seed: int) -> Any:
    return tf.keras.initializers.RandomNormal(seed=seed)


class Linear(layers.Layer):
    """As libraries of layers write theirs: with a weight, and with layers in a list."""

    def build(self, input_shape: Any) -> None:
        self.kernel = self.add_weight(
            "kernel", [int(input_shape[1][-1]), 1], initializer=normal(7), regularizer=l2(0.01)
        )
        self.inner = [layers.Dense(1, kernel_initializer=normal(8), kernel_regularizer=l2(0.02)) for _ in range(2)]
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        rows, numbers = inputs
        found = tf.reduce_sum(rows, axis=-1) + tf.matmul(numbers, self.kernel)
        return found + self.inner[0](numbers) - self.inner[1](numbers)


def two_towers() -> Any:
    """Of ids "a" and numbers "c"."""
    a, c = tf.keras.Input((1,), name="a", dtype="int32"), tf.keras.Input((1,), name="c")
    rows = layers.Embedding(20, 4, embeddings_initializer=normal(2), embeddings_regularizer=l2(1e-3))(a)
    hidden = layers.Concatenate()([layers.Flatten()(rows), c])
    hidden = layers.Dense(8, "relu", kernel_initializer=normal(5))(hidden)
    logits = layers.Add()([layers.Dense(1, use_bias=False, kernel_initializer=normal(6))(hidden), Linear()([rows, c])])
    return tf.keras.Model(inputs=[a, c], outputs=tf.sigmoid(logits))


def examples(count: int = 200) -> tuple[dict[str, Any], Any]:
    draw = np.random.default_rng(1)
    x = {"a": draw.integers(0, 20, count), "c": draw.random(count)}
    return x, (x["a"] % 2 ^ (x["c"] > 0.5)).astype(int)


def test_a_model_has_the_layers_between_its_inputs_and_its_outputs() -> None:
    tf.keras.layers.Dense(3)(tf.zeros([2, 2]))

    model = two_towers()

    names = [layer.name for layer in model.layers]
    assert names == ["a", "c", "embedding", "flatten", "concatenate", "dense_1", "dense_2", "linear", "add"]
    assert [weight.op.name for weight in model.weights] == [
        "embedding/embeddings",
        "dense_1/kernel",
        "dense_1/bias",
        "dense_2/kernel",
        "linear/kernel",
        *(f"linear/dense_{n}/{weight}" for n in (3, 4) for weight in ("kernel", "bias")),
    ]
    assert len(model.losses) == 4
    assert model.get_layer("linear").weights[0] is model.weights[4]
    assert tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES) == []


def test_fit_trains_as_steps_of_the_same_graph_do() -> None:
    """The loss of a step is the mean over its examples and what the layers add; metrics begin anew with each epoch."""
    x, y = examples(96)
    model = two_towers()
    model.compile(tf.keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["binary_crossentropy", "AUC"])
    label = tf.placeholder(tf.float32, [None, 1])
    with tf.Session() as session:
        history = model.fit(x, y, batch_size=32, epochs=3, verbose=0, shuffle=False)
        trained = model.get_weights()
        predicted = model.predict(x, batch_size=50)
    with tf.Session() as session:
        mean = tf.reduce_mean(tf.keras.losses.binary_crossentropy(label, model.outputs[0]))
        loss = mean + tf.add_n(model.losses)
        step = tf.train.AdamOptimizer(0.01, epsilon=1e-7).minimize(loss, var_list=model.trainable_weights)
        session.run(tf.global_variables_initializer())
        losses = []
        for _ in range(3):
            of_epoch = []
            for at in range(0, 96, 32):
                feeds = {tensor: x[name][at : at + 32, None] for name, tensor in zip("ac", model.inputs, strict=True)}
                of_epoch.append(session.run([loss, mean, step], {**feeds, label: y[at : at + 32, None]})[:2])
            losses.append(np.mean(of_epoch, 0))
        expected = session.run(model.weights)

    np.testing.assert_allclose(history.history["loss"], [loss for loss, _ in losses], rtol=1e-5)
    np.testing.assert_allclose(history.history["binary_crossentropy"], [mean for _, mean in losses], rtol=1e-5)
    for ours, theirs in zip(trained, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert predicted.shape == (96, 1)
    assert history.epoch == [0, 1, 2]
    assert history.history["auc"][2] > history.history["auc"][0]


def test_losses_are_those_of_tensorflow() -> None:
    """What TensorFlow 1.15 gave for this program, these seeds and this order of the examples."""
    x, y = examples()
    model = two_towers()
    model.compile(tf.keras.optimizers.Adam(learning_rate=0.01), "binary_crossentropy", metrics=["AUC"])
    with tf.Session():
        found = model.fit(x, y, batch_size=32, epochs=3, verbose=0, validation_split=0.2, shuffle=False).history
        assert model.metrics_names == ["loss", "auc"]
        evaluated = model.evaluate(x, y, batch_size=64, verbose=0)

    assert list(found) == ["loss", "auc", "val_loss", "val_auc"]
    np.testing.assert_allclose([*found["loss"], *found["val_loss"]], EXPECTED_LOSSES, atol=2e-6)
    np.testing.assert_allclose([*found["auc"], *found["val_auc"]], EXPECTED_AUCS, atol=2e-6)
    np.testing.assert_allclose(evaluated, EXPECTED_EVALUATION, atol=2e-6)


EXPECTED_LOSSES = [0.693117, 0.677707, 0.669089, 0.712091, 0.715898, 0.718515]
EXPECTED_AUCS = [0.452698, 0.584762, 0.638095, 0.45202, 0.486111, 0.558081]
EXPECTED_EVALUATION = [0.675353, 0.636121]


class Ours(tf.keras.Model):
    """A subclass makes its layers, and its inputs come with the first arrays."""

    def __init__(self) -> None:
        super().__init__(name="ours")
        self.hidden = layers.Dense(16, activation="tanh", kernel_initializer=normal(1))
        self.drop = layers.Dropout(0.5, seed=3)
        self.heads = {"y": layers.Dense(1, kernel_initializer=normal(2))}

    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.heads["y"](self.drop(self.hidden(inputs), training=training))


def test_a_subclass_learns_and_drops_only_while_it_trains() -> None:
    draw = np.random.default_rng(2)
    x = draw.normal(size=(256, 3)).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32)
    model = Ours()
    with pytest.raises(RuntimeError, match="compile your model"):
        model.fit(x, y)
    model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    with tf.Session():
        np.random.seed(3)
        before, after = model.evaluate(x, y, verbose=0), model.fit(x, y, epochs=20, verbose=0).history["loss"][-1]
        first, second = model.predict(x), model.predict(x)

    assert after < before / 3
    np.testing.assert_array_equal(first, second)
    assert [each.op.name for each in model.weights] == [
        *(f"ours/dense/{weight}" for weight in ("kernel", "bias")),
        *(f"ours/dense_1/{weight}" for weight in ("kernel", "bias")),
    ]


def test_a_model_gives_the_same_for_other_tensors_as_for_arrays() -> None:
    a, c = tf.keras.Input((3,)), tf.keras.Input((3,))
    inner = tf.keras.Model([a, c], layers.Dense(2)(layers.Multiply()([a, c])))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    again = inner([tf.constant(x), tf.constant(x)])
    with tf.Session() as session:
        predicted = inner.predict([x, x])

        np.testing.assert_array_equal(session.run(again), predicted)


def test_averages_of_batch_normalization_move_with_training() -> None:
    x = np.random.default_rng(4).normal(5, 2, (64, 2)).astype(np.float32)
    given = tf.keras.Input((2,))
    model = tf.keras.Model(given, layers.Dense(1)(layers.BatchNormalization(momentum=0.5)(given)))
    model.compile("sgd", "mse")
    with tf.Session() as session:
        model.predict(x)
        moving = [each for each in model.non_trainable_weights if "moving_mean" in each.op.name]
        still = session.run(moving[0])
        model.fit(x, x[:, 0], batch_size=64, epochs=3, verbose=0)
        moved = session.run(moving[0])

    np.testing.assert_array_equal(still, [0, 0])
    np.testing.assert_allclose(moved, x.mean(0) * 0.875, rtol=1e-4)


def test_weights_are_saved_and_set(tmp_path: Any) -> None:
    model = two_towers()
    saver = tf.train.Saver()
    x, _ = examples(10)
    with tf.Session() as session:
        expected = model.predict(x)
        kept = model.get_weights()
        path = saver.save(session, str(tmp_path / "model"))
    with tf.Session() as session:
        saver.restore(session, path)
        np.testing.assert_array_equal(model.predict(x), expected)
        model.set_weights([np.zeros_like(each) for each in kept])
        np.testing.assert_array_equal(model.predict(x), np.full((10, 1), 0.5, np.float32))
        with pytest.raises(ValueError, match="has 9 weights, and 1 were given"):
            model.set_weights(kept[:1])


def test_what_cannot_be_is_refused() -> None:
    a, b = tf.keras.Input((2,)), tf.keras.Input((2,))
    out = layers.Dense(1)(layers.Concatenate()([a, b]))
    with pytest.raises(ValueError, match="Graph disconnected"):
        tf.keras.Model(a, out)
    with pytest.raises(ValueError, match="both inputs and outputs"):
        tf.keras.Model(a)
    model = tf.keras.Model([a, b], tf.nn.relu(out))
    with pytest.raises(ValueError, match="was made by no layer"):
        model([a, b])
    with pytest.raises(ValueError, match="sample_weight_mode is not part of Tenfold"):
        model.compile("adam", "mse", sample_weight_mode="temporal")
    with pytest.raises(ValueError, match="Unknown loss function: nothing"):
        model.compile("adam", "nothing")
    model.compile("adam", "mse")
    with pytest.raises(ValueError, match="callbacks is not part of Tenfold"):
        model.fit([np.ones((2, 2))] * 2, np.ones(2), callbacks=[object()])
    with pytest.raises(ValueError, match="expects 2 input arrays, but got 1"):
        model.predict(np.ones((2, 2)))
    with pytest.raises(ValueError, match="No data provided for 'input_2'"):
        model.predict({"input_1": np.ones((2, 2))})
    with pytest.raises(ValueError, match="as many examples"):
        model.predict([np.ones((2, 2)), np.ones((3, 2))])
    with pytest.raises(ValueError, match="no masks"):
        layers.Embedding(3, 2, mask_zero=True)
    with pytest.raises(ValueError, match="Unknown optimizer: adamax"):
        tf.keras.optimizers.get("adamax")


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        ({}, [[0, 0, 1], [2, 3, 4]]),
        ({"maxlen": 2}, [[0, 1], [3, 4]]),
        ({"maxlen": 2, "padding": "post", "truncating": "post", "value": 9}, [[1, 9], [2, 3]]),
    ],
)
def test_sequences_are_padded(arguments: dict[str, Any], rows: list[list[int]]) -> None:
    found = tf.keras.preprocessing.sequence.pad_sequences([[1], [2, 3, 4]], **arguments)

    assert found.tolist() == rows
    assert found.dtype == np.int32
