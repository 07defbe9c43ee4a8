"""The program of test_estimator_oracle.py: an estimator in a folder, for TensorFlow 1.15 and Tenfold alike.

The caller sets `tf` and `folder`, and runs parts of it.
"""

PROGRAM = """
import numpy as np

X = np.linspace(-1, 1, 16, dtype=np.float32)[:, None]

def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features["x"], 3, tf.nn.tanh, name="hidden", kernel_initializer=tf.ones_initializer())
    prediction = tf.layers.dense(hidden, 1, name="out", kernel_initializer=tf.ones_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": prediction})
    loss = tf.losses.mean_squared_error(labels, prediction)
    tf.summary.scalar("mean", tf.reduce_mean(prediction))
    optimizer = tf.train.AdamOptimizer(params["rate"])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step()),
        eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, prediction)})

def input_fn():
    return tf.estimator.inputs.numpy_input_fn({"x": X}, 2 * X + 1, 4, None, shuffle=False)()

def receiver_fn():
    return tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([1], tf.float32)})()

def estimator():
    config = tf.estimator.RunConfig(folder, tf_random_seed=1, save_summary_steps=5, log_step_count_steps=5)
    return tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.01})

def trained(steps):
    made = estimator()
    made.train(input_fn, steps=steps)
    return made

def numbers(metrics):
    return {name: float(value) for name, value in metrics.items()}

def served(export):
    example = tf.train.Example(features=tf.train.Features(
        feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5]))}))
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], export).signature_def["serving_default"]
        fed = {signature.inputs["examples"].name: [example.SerializeToString()]}
        return session.run(signature.outputs["y"].name, fed).item()

def tags(pattern):
    import glob
    found = set()
    for path in glob.glob(folder + pattern):
        for event in tf.train.summary_iterator(path):
            found.update(value.tag for value in event.summary.value)
    return sorted(found)
"""
