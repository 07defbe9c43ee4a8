"""One program of layers, losses, metrics, products and early spellings, run as it is under TensorFlow 1.15 and here.

`layers_program.py tensorflow|tenfold` prints JSON: the graph of the layers node by node, and named values with
gradients. test_layers_oracle.py compares the two. Python 3.7, because TensorFlow 1.15 runs on nothing newer.
"""

import importlib
import json
import sys

import numpy as np

tf = importlib.import_module(sys.argv[1])
RNG = np.random.RandomState(3)


def layers_graph():
    """Every layer with the options that change its nodes; returns [name, type, inputs, control inputs] of all."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4])
        layer = tf.layers.Dense(3)
        layer(x)
        layer(x)
        tf.layers.dense(x, 3, name="foo")
        tf.layers.dense(x, 3, name="foo", reuse=True)
        with tf.variable_scope("a"):
            tf.layers.dense(x, 3)
            tf.layers.dense(x, 3, kernel_regularizer=lambda w: tf.nn.l2_loss(w), activation=tf.nn.relu)
        with tf.variable_scope("a", reuse=True):
            tf.layers.dense(x, 3, kernel_regularizer=lambda w: tf.nn.l2_loss(w))
        image = tf.placeholder(tf.float32, [None, 8, 8, 3])
        conv = tf.layers.conv2d(image, 4, 3, padding="same", activation=tf.nn.relu)
        norm = tf.layers.batch_normalization(conv, training=True)
        tf.layers.batch_normalization(conv, training=True, fused=False)
        tf.layers.batch_normalization(conv, training=False, fused=False)
        tf.layers.batch_normalization(x, training=True)
        pool = tf.layers.average_pooling2d(tf.layers.max_pooling2d(norm, 2, 2), 2, 2)
        flat = tf.layers.flatten(pool)
        tf.layers.dropout(flat, 0.5, training=True)
        tf.layers.conv2d_transpose(conv, 2, 3, strides=2)
        tf.layers.separable_conv2d(conv, 4, 3)
        tf.layers.conv3d_transpose(image[:, None], 2, 3, strides=2)
        line = tf.layers.conv1d(image[:, 0], 4, 3)
        tf.layers.conv3d(image[:, None], 4, 1)
        tf.layers.max_pooling1d(line, 2, 2)
        tf.layers.dense(image, 5)
        tf.layers.conv2d(image, 4, 3, dilation_rate=2)
        tf.layers.conv1d(image[:, 0], 4, 3, padding="causal")
        training = tf.placeholder(tf.bool)
        tf.layers.batch_normalization(conv, training=training)
        tf.layers.dropout(flat, 0.5, training=training)
        return [
            [op.name, op.type, [t.name for t in op.inputs], sorted(c.name for c in op.control_inputs)]
            for op in graph.get_operations()
        ]


def constant(*shape):
    """An initializer with the same values under both."""
    return tf.constant_initializer(RNG.standard_normal(shape).astype("float32"))


def training_values():
    """Three steps of a small network with every kind of layer: losses, gradients, moving averages."""
    with tf.Graph().as_default():
        x, labels = tf.placeholder(tf.float32, [None, 6, 6, 2]), tf.placeholder(tf.int32, [None])
        h = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu, kernel_initializer=constant(3, 3, 2, 4))
        h = tf.layers.batch_normalization(h, training=True)
        h = tf.layers.separable_conv2d(
            h, 3, 2, depthwise_initializer=constant(2, 2, 4, 1), pointwise_initializer=constant(1, 1, 4, 3)
        )
        h = tf.layers.conv2d_transpose(h, 2, 2, kernel_initializer=constant(2, 2, 2, 3))
        h = tf.layers.max_pooling2d(h, 2, 2)
        h = tf.layers.dense(tf.layers.flatten(h), 5, tf.nn.elu, kernel_initializer=constant(18, 5))
        h = tf.layers.batch_normalization(h, training=True, renorm=False)
        logits = tf.layers.dense(
            h, 3, kernel_initializer=constant(5, 3), kernel_regularizer=tf.contrib.layers.l2_regularizer(0.1)
        )
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        loss = tf.losses.get_total_loss()
        grads = tf.gradients(loss, tf.trainable_variables())
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        averages = [v for v in tf.global_variables() if "moving" in v.name]
        values = []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                feeds = {x: RNG.standard_normal((4, 6, 6, 2)), labels: RNG.randint(0, 3, 4)}
                values.append(session.run([loss, grads], feeds))
                session.run(step, feeds)
                values.append(session.run(averages))
        return values


def loss_values():
    """Each loss with scalar and column weights and each reduction, and its gradient."""
    values = {}
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.constant(RNG.uniform(0.1, 0.9, (4, 3)).astype("float32"))
        p = tf.constant(RNG.uniform(0.1, 0.9, (4, 3)).astype("float32"))
        column = tf.constant([[1.0], [0.0], [2.0], [0.5]])
        kinds = tf.losses.Reduction
        for name in (
            "absolute_difference",
            "mean_squared_error",
            "huber_loss",
            "log_loss",
            "hinge_loss",
            "sigmoid_cross_entropy",
            "softmax_cross_entropy",
        ):
            weights = column[:, 0] if name == "softmax_cross_entropy" else column
            for kind in (kinds.SUM, kinds.MEAN, kinds.SUM_OVER_BATCH_SIZE, kinds.SUM_BY_NONZERO_WEIGHTS, kinds.NONE):
                loss = getattr(tf.losses, name)(y, p, weights, reduction=kind)
                values[name + " " + kind] = session.run([loss, tf.gradients(loss, p)[0]])
            values[name] = session.run(getattr(tf.losses, name)(y, p))
        values["pairwise"] = session.run(tf.losses.mean_pairwise_squared_error(y, p, column))
        values["cosine"] = session.run(tf.losses.cosine_distance(y, p, axis=1))
        values["smooth"] = session.run(tf.losses.softmax_cross_entropy(y, p, label_smoothing=0.2))
        values["number of losses"] = len(tf.losses.get_losses())
    return values


def metric_values():
    """Each metric over three batches, with and without weights: update and value."""
    m, cases = tf.metrics, {}
    with tf.Graph().as_default():
        classes, scores = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, 5])
        p, w, b = (tf.placeholder(t, [None]) for t in (tf.float32, tf.float32, tf.int64))
        pairs = tf.placeholder(tf.int64, [None, 2])
        truth = tf.cast(classes > 2, tf.int64)
        best = tf.argmax(scores, 1)
        for tag, weights in (("", None), (" weighted", w)):
            cases["accuracy" + tag] = m.accuracy(classes, best, weights)
            cases["mean" + tag] = m.mean(p, weights)
            cases["iou" + tag] = m.mean_iou(classes, best, 5, weights)
            for name in ("mean_absolute_error", "mean_squared_error", "root_mean_squared_error"):
                cases[name + tag] = getattr(m, name)(tf.cast(truth, tf.float32), p, weights)
            for name in (
                "true_positives",
                "false_positives",
                "true_negatives",
                "false_negatives",
                "precision",
                "recall",
            ):
                cases[name + tag] = getattr(m, name)(truth, b, weights)
                cases[name + " at" + tag] = getattr(m, name + "_at_thresholds")(truth, p, [0.2, 0.5, 0.8], weights)
            for curve in ("ROC", "PR"):
                for method in ("trapezoidal", "careful_interpolation", "minoring", "majoring"):
                    cases[curve + method + tag] = m.auc(truth, p, weights, curve=curve, summation_method=method)
            cases["sensitivity" + tag] = m.sensitivity_at_specificity(truth, p, 0.5, weights)
            cases["specificity" + tag] = m.specificity_at_sensitivity(truth, p, 0.5, weights)
            cases["precision@2" + tag] = m.precision_at_k(classes, scores, 2, weights=weights)
            cases["recall@2" + tag] = m.recall_at_k(classes, scores, 2, weights=weights)
            cases["average@3" + tag] = m.average_precision_at_k(pairs, scores, 3, weights=weights)
            cases["below" + tag] = m.percentage_below(p, 0.4, weights)
        values = {"variables": len(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))}
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            for batch in range(3):
                two = np.stack([RNG.randint(0, 5, 8), RNG.randint(0, 5, 8)], 1)
                feeds = {
                    classes: RNG.randint(0, 5, 8),
                    p: RNG.rand(8),
                    scores: RNG.rand(8, 5),
                    w: RNG.rand(8),
                    b: RNG.randint(0, 2, 8),
                    pairs: two,
                }
                # All updates in one step, then all values: each set of fetches is planned anew.
                updates = session.run({name: case[1] for name, case in cases.items()}, feeds)
                results = session.run({name: case[0] for name, case in cases.items()})
                values["batch " + str(batch)] = [[name, updates[name], results[name]] for name in sorted(cases)]
    return values


def function_values():
    """Functions of tf, tf.nn, tf.linalg, tf.image, … on fixed inputs."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(RNG.standard_normal((2, 6, 6, 3)).astype("float32"))
        w = tf.constant(RNG.standard_normal((3, 3, 3, 4)).astype("float32"))
        square = tf.constant(RNG.standard_normal((3, 3)) + 3 * np.eye(3))
        image = tf.constant(RNG.uniform(0, 1, (5, 6, 3)).astype("float32"))
        cases = {
            "atrous": tf.nn.atrous_conv2d(x, w, 2, "SAME"),
            "dilated": tf.nn.convolution(x, w, "VALID", dilation_rate=[2, 1]),
            "conv1d": tf.nn.conv1d(x[0], w[0], 2, "SAME"),
            "pool": tf.nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]),
            "argmax pool": list(tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")),
            "weighted moments": list(tf.nn.weighted_moments(x, [0, 1], tf.abs(x[:, :, :, :1]))),
            "statistics": list(tf.nn.sufficient_statistics(x, [0, 1, 2]))[:3],
            "crelu": tf.nn.crelu(x), "swish": tf.nn.swish(x),
            "poisson": tf.nn.log_poisson_loss(tf.abs(x), x, compute_full_loss=True),
            "sort": tf.sort([3, 1, 2]), "argsort": tf.argsort([[3.0, 1.0, 2.0]], direction="DESCENDING"),
            "searchsorted": tf.searchsorted([[1, 3, 5]], [[0, 3, 6]], side="right"),
            "repeat": tf.repeat([[1, 2], [3, 4]], [1, 2], axis=0),
            "repeat, ranks unknown": [
                tf.repeat(tf.placeholder_with_default(data, None), tf.placeholder_with_default(counts, None), axis)
                for data in ([[1, 2], [3, 4]], [[5, 6], [7, 8]])
                for axis, counts in ((0, [1, 2]), (1, [0, 2]), (0, 2), (None, 2), (0, [-1, 2]))
            ],
            "repeat a scalar": tf.repeat(3, 4),
            "eye": tf.eye(3, num_columns=2, batch_shape=[2]), "norm": tf.norm(x, axis=[1, 2], ord=1),
            "norm 3": tf.norm(x, 3, axis=1), "pinv": tf.linalg.pinv(square), "logdet": tf.linalg.logdet(
                tf.matmul(square, square, transpose_b=True)),
            "lstsq": tf.matrix_solve_ls(square, square + 1), "rank": tf.linalg.matrix_rank(square),
            "bincount": tf.bincount([1, 2, 2], minlength=5), "weighted": tf.bincount([1, 1, 2], [0.5, 1.0, 2.0]),
            "confusion": tf.confusion_matrix([0, 1, 2], [0, 2, 2]),
            "histogram": tf.histogram_fixed_width([0.0, 1.0, 5.0], [0.0, 5.0], 5),
            "bins": tf.histogram_fixed_width_bins([-1.0, 1.0, 5.0], [0.0, 5.0], 5),
            "segments": tf.unsorted_segment_mean([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 0, 1], 2),
            "root": tf.unsorted_segment_sqrt_n([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0, 0, 1], 2),
            "roll": tf.roll([1, 2, 3], 1, 0), "batch gather": tf.batch_gather([[1, 2], [3, 4]], [[1], [0]]),
            "lbeta": tf.lbeta([1.0, 2.0, 3.0]), "polyval": tf.math.polyval([1.0, 2.0, 3.0], 2.0),
            "einsum": tf.einsum("bhwc,cd->bdwh", x, tf.cast(square, tf.float32)),
            "einsum implicit": tf.einsum("ij,jk", square, square),
            "tensordot": tf.tensordot(square, square, [[0], [1]]),
            "scatter": tf.tensor_scatter_nd_add([1, 2, 3], [[1]], [5]),
            "to batch": tf.space_to_batch(x, [[0, 0], [0, 0]], 2), "depth": tf.space_to_depth(x, 2),
            "patches": tf.extract_image_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
            "rfft": tf.real(tf.spectral.rfft(x[0, 0, :, 0], [8])), "irfft": tf.spectral.irfft(
                tf.spectral.rfft(x[0, 0, :, 0])),
            "stateless": tf.random.stateless_normal([3], [1, 2]), "bright": tf.image.adjust_brightness(image, 0.1),
            "contrast": tf.image.adjust_contrast(image, 2.0), "grey": tf.image.rgb_to_grayscale(image),
            "standard": tf.image.per_image_standardization(image), "flip": tf.image.flip_left_right(image),
            "rot90": tf.image.rot90(image, 3), "resize": tf.image.resize_images(image, [3, 4]),
            "crop or pad": tf.image.resize_image_with_crop_or_pad(image, 3, 8),
            "central": tf.image.central_crop(image, 0.5), "variation": tf.image.total_variation(image),
            "as uint8": tf.image.convert_image_dtype(image, tf.uint8), "hue": tf.image.adjust_hue(image, 0.2),
            "saturation": tf.image.adjust_saturation(image, 0.5), "split": tf.string_split(["a b", "c"]).values,
            "format": tf.strings.format("x = {}", tf.constant([1, 2])), "angle": tf.angle(tf.complex(1.0, 1.0)),
        }  # fmt: skip
        return session.run(cases)


def plain(value):
    """Arrays as lists, bytes as text, tuples as lists, for JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    array = np.asarray(value)
    return plain(array.tolist()) if array.dtype.kind in "OS" else array.tolist()


print(
    json.dumps(
        plain(
            {
                "graph": layers_graph(),
                "training": training_values(),
                "losses": loss_values(),
                "metrics": metric_values(),
                "functions": function_values(),
            }
        )
    )
)
