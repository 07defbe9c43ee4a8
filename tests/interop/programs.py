"""What TensorFlow's own client does against servers of ours; run by TensorFlow's interpreters, 1.4 to 2.21.

`python programs.py OUT NAME=ARGUMENT,ARGUMENT… …` runs each named program in turn and writes one JSON object to the
file OUT, or prints it for "-": name → what the program returned, or {"failed": traceback}. Kept to the Python of the
oldest wheel (3.6). test_client_matrix.py starts it and judges.
"""

import json
import os
import sys
import threading
import traceback

import numpy as np
import tensorflow

if hasattr(tensorflow, "compat") and hasattr(tensorflow.compat, "v1"):
    tf = tensorflow.compat.v1
    if tensorflow.__version__.startswith("2."):
        tf.disable_v2_behavior()
        tf.disable_control_flow_v2()
else:
    tf = tensorflow

OLDEST = tf.__version__.startswith("1.4")

#: Milliseconds that any call to a server may take.
PATIENCE_MS = 60000


def config(**more):
    return tf.ConfigProto(operation_timeout_in_ms=PATIENCE_MS, **more)


def session(target):
    # 1.4 has no isolated sessions; the programs use different names
    return tf.Session(target, config=config(**({} if OLDEST else {"isolate_session_state": True})))


def hello(target):
    with session(target) as sess:
        greeting = sess.run(tf.constant("Hello, distributed TensorFlow!"))
        devices = sorted(d.name for d in sess.list_devices() if "XLA" not in d.name)
        total = sess.run(tf.constant(40) + tf.constant(2))
        return {"greeting": greeting.decode(), "devices": devices, "total": int(total)}


#: dtype name → a value of it as a feed.
FEEDS = {
    "float32": np.array([[1.5, -0.0], [np.inf, 3e-45]], np.float32),
    "float64": np.array([1e300, -2.5]),
    "float16": np.array([1.5, 65504.0], np.float16),
    "int8": np.array([-128, 127], np.int8),
    "int16": np.array([-32768, 32767], np.int16),
    "int32": np.array([-(2**31), 2**31 - 1], np.int32),
    "int64": np.array([-(2**63), 2**63 - 1], np.int64),
    "uint8": np.array([0, 255], np.uint8),
    "uint16": np.array([0, 65535], np.uint16),
    "bool": np.array([[True], [False]]),
    "complex64": np.array([1 + 2j, -3j], np.complex64),
    "complex128": np.array([1 + 2j, -3j], np.complex128),
}


def feeds_and_fetches(target):
    wrong = []
    with session(target) as sess:
        for name in sorted(FEEDS):
            value = FEEDS[name]
            given = tf.placeholder(getattr(tf, name), shape=value.shape)
            empty = tf.placeholder(getattr(tf, name), shape=[None, 3])
            got, constant, nothing = sess.run(
                [tf.identity(given), tf.constant(value), tf.identity(empty)],
                {given: value, empty: np.zeros([0, 3], value.dtype)},
            )
            same = got.dtype == value.dtype and got.tobytes() == value.tobytes() and got.shape == value.shape
            if not (same and constant.tobytes() == value.tobytes() and nothing.shape == (0, 3)):
                wrong.append(name)
        words = np.array([[b"a", b""], [b"\x00\xff", b"w" * 70000]], dtype=object)
        given = tf.placeholder(tf.string)
        if sess.run(tf.identity(given), {given: words}).tolist() != words.tolist():
            wrong.append("string")
        scalar = sess.run(tf.constant(7.5))
        if not (np.isscalar(scalar) and scalar == 7.5):
            wrong.append("scalar")
        large = np.arange(25 * 1000 * 1000, dtype=np.float32)
        given = tf.placeholder(tf.float32, [None])
        back = sess.run(given + 1, {given: large})
        if not (back.nbytes == 100000000 and np.array_equal(back, large + 1)):
            wrong.append("100 MB")
        # any tensor may be fed, not only placeholders
        a = tf.constant(1.0)
        if sess.run(a * 2, {a: 21.0}) != 42.0:
            wrong.append("fed constant")
    return {"wrong": wrong}


def variables(target):
    results = {}
    for kind, resource in (("reference", False), ("resource", True)):
        with tf.Graph().as_default(), tf.variable_scope(kind, use_resource=resource):
            w = tf.get_variable("w", [2, 3], initializer=tf.constant_initializer(1.0))
            rows = tf.get_variable("rows", [5, 2], initializer=tf.zeros_initializer())
            step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
            add = tf.assign_add(w, tf.ones([2, 3]))
            count = tf.assign_add(step, tf.constant(1, tf.int64))
            # the way to add rows that every version has for both kinds
            slices = tf.IndexedSlices(-tf.ones([3, 2]), tf.constant([1, 1, 4]), tf.constant([5, 2]))
            scatter = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(slices, rows)])
            missing = tf.report_uninitialized_variables()
            with session(target) as sess:
                before = sorted(name.decode() for name in sess.run(missing))
                sess.run(tf.global_variables_initializer())
                for _ in range(3):
                    sess.run([add.op, count.op, scatter])
                results[kind] = {
                    "before": before,
                    "after": sess.run(missing).tolist(),
                    "w": sess.run(w).tolist(),
                    "rows": sess.run(rows).tolist(),
                    "step": int(sess.run(step)),
                }
    return results


def errors(target):
    """Error class, its message and the name of the operation that it blames, for each kind of mistake."""
    seen = {}

    def provoke(name, fetch, feed=None, options=None):
        try:
            with session(target) as sess:
                sess.run(fetch, feed, options=options)
            seen[name] = ["nothing was raised", "", ""]
        except tf.errors.OpError as error:
            seen[name] = [type(error).__name__, error.message, error.op.name if error.op is not None else ""]

    wanted = tf.placeholder(tf.float32, name="wanted")
    provoke("placeholder", tf.identity(wanted, name="use"))
    with tf.device("/job:ps"):
        fresh = tf.Variable(1.0, name="fresh", trainable=False).read_value()
    provoke("uninitialized", fresh)
    left, right = tf.placeholder(tf.float32, name="left"), tf.placeholder(tf.float32, name="right")
    feed = {left: np.ones([2, 3], np.float32), right: np.ones([2, 3], np.float32)}
    provoke("matmul", tf.matmul(left, right, name="product"), feed)
    provoke("assertion", tf.Assert(tf.constant(False), ["this is so:", tf.constant(7)], name="claim"))
    provoke("gather", tf.gather(tf.constant([1.0, 2.0]), tf.placeholder_with_default([5], [1]), name="pick"))
    with tf.device("/job:nobody/task:7"):
        far = tf.constant(1.0, name="far")
    provoke("placement", far)
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1, tf.float32, shapes=[[]], name="empty")
        element = queue.dequeue(name="take")
        provoke("deadline", element, None, tf.RunOptions(timeout_in_ms=200))
        with tf.control_dependencies([queue.close()]):
            late = queue.dequeue(name="late")
        provoke("out_of_range", late)
    with tf.Graph().as_default():
        infinite = tf.constant(1.0) / tf.placeholder_with_default(0.0, [])
        provoke("numerics", tf.check_numerics(infinite, "not a number", name="finite"))
    return seen


def train(target, folder, steps, index=0, ps_tasks=1, started=None):
    """MonitoredTrainingSession with checkpoints: the chief starts at the newest one; `steps` more of this worker.

    `started` is an event that is set once there is a session.
    """
    chief, worker = int(index) == 0, "/job:worker/task:%s" % index
    with tf.device(tf.train.replica_device_setter(ps_tasks=int(ps_tasks), worker_device=worker)):
        x = tf.placeholder(tf.float32, [None, 8])
        y = tf.placeholder(tf.float32, [None, 1])
        hidden_w = tf.get_variable("hidden_w", initializer=np.linspace(-1, 1, 64).reshape(8, 8).astype(np.float32))
        out_w = tf.get_variable("out_w", initializer=np.linspace(-0.5, 0.5, 8).reshape(8, 1).astype(np.float32))
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, hidden_w)), out_w) - y))
        global_step = tf.train.get_or_create_global_step()
        update = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=global_step)
        tf.summary.scalar("loss", loss)
    generator = np.random.RandomState(0)
    inputs = generator.randn(64, 8).astype(np.float32)
    labels = np.sin(inputs.sum(1, keepdims=True)).astype(np.float32)
    feed = {x: inputs, y: labels}
    losses = []
    filters = ["/job:ps", worker]
    with tf.train.MonitoredTrainingSession(
        target, is_chief=chief, checkpoint_dir=folder, config=config(device_filters=filters), **_save_steps(10)
    ) as sess:
        if started is not None:
            started.set()
        # fed, because the first step of a session with a summary hook computes the summaries, too
        begin = int(sess.run(global_step, feed))
        for _ in range(int(steps)):
            value, _ = sess.run([loss, update], feed)
            losses.append(float(value))
        end = int(sess.run(global_step))
    result = {"begin": begin, "end": end, "losses": losses}
    if not chief:
        return result
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(folder))
    return {
        **result,
        "saved_step": int(reader.get_tensor("global_step")),
        "saved": sorted(reader.get_variable_to_shape_map()),
        "events": any("tfevents" in name for name in os.listdir(folder)),
    }


def train_together(folder, steps, *targets):
    """`train` at every target at once, each in a thread with a graph of its own; the first is the chief's."""
    results = [{"failed": "it did not end"}] * len(targets)
    started = threading.Event()

    def one(index):
        try:
            with tf.Graph().as_default():
                results[index] = train(targets[index], folder, steps, index, started=started)
        except Exception:
            results[index] = {"failed": traceback.format_exc()}
        finally:
            started.set()

    # Side by side only once the chief has initialized the variables: who finds none looks again 30 seconds later.
    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(len(targets))]
    threads[0].start()
    started.wait(PATIENCE_MS / 1000)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_MS / 1000)
    return results


def _save_steps(count):
    # 1.4 does not know the argument
    return {} if OLDEST else {"save_checkpoint_secs": None, "save_checkpoint_steps": count}


def sync(target, index, workers, steps):
    """One replica of synchronous training with SyncReplicasOptimizer."""
    index, workers, steps = int(index), int(workers), int(steps)
    worker = "/job:worker/task:%d" % index
    setter = tf.train.replica_device_setter(ps_device="/job:ps", worker_device=worker, ps_tasks=1)
    with tf.device(setter):
        w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
        rows = tf.get_variable("rows", [6, 2], initializer=tf.ones_initializer())
        global_step = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(w - 1.0)) + tf.reduce_sum(tf.gather(rows, [index, 5]))
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=workers, total_num_replicas=workers
        )
        update = optimizer.minimize(loss, global_step=global_step)
    hooks = [optimizer.make_session_run_hook(index == 0), tf.train.StopAtStepHook(last_step=steps)]
    filters = ["/job:ps", worker]
    with tf.train.MonitoredTrainingSession(
        target, is_chief=index == 0, hooks=hooks, config=config(device_filters=filters), stop_grace_period_secs=5
    ) as sess:
        while not sess.should_stop():
            sess.run(update)
    # a fetch beside the update may see the variables before it; after the end there is but one answer
    with tf.Session(target, config=config(device_filters=filters)) as sess:
        step, weights, table = sess.run([global_step, w, rows])
    return {"last": [int(step), weights.tolist(), table.tolist()]}


def loop_over_tasks(target, other):
    """A loop whose body spans two tasks, one inside another, and its gradient."""
    with tf.device("/job:worker/task:0"):
        limit = tf.placeholder(tf.int32, [])
        start = tf.constant(1.0)

        def body(i, x):
            with tf.device(other):
                y = x * 2.0
            with tf.device("/job:worker/task:0"):
                return i + 1, y + 1.0

        count, result = tf.while_loop(lambda i, x: i < limit, body, [0, start])
        gradient = tf.gradients(result, start)[0]

        def outer(i, total):
            inner = tf.while_loop(lambda j, t: j < 3, lambda j, t: (j + 1, _on(other, lambda: t + 1.0)), [0, total])[1]
            return i + 1, inner

        nested = tf.while_loop(lambda i, t: i < 4, outer, [0, tf.constant(0.0)])[1]
    with session(target) as sess:
        answers = [sess.run([count, result, gradient], {limit: n}) for n in (0, 1, 10)]
        return {"answers": [[float(v) for v in each] for each in answers], "nested": float(sess.run(nested))}


def functions(target, other):
    """Functions of the graph's library, and their gradients: some the client gives, others it asks the server for."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32)
    def blend(x, y):
        return tf.exp(x) * y + x

    @function.Defun(tf.float32, tf.float32)
    def hundredfold(x, dy):
        return dy * 100.0

    @function.Defun(tf.float32, grad_func=hundredfold)
    def cube(x):
        return x * x * x

    @function.Defun(
        tf.float32, python_grad_func=lambda _, dy: dy * 7.0, shape_func=lambda op: [op.inputs[0].get_shape()]
    )
    def square(x):
        return x * x

    @function.Defun(tf.float32)
    def nested(x):
        return cube(x) + blend(x, x)

    x, y = tf.constant(2.0), tf.placeholder_with_default(3.0, [])
    with tf.device(other):
        values = [blend(x, y), cube(x), square(x), nested(x)]
    slopes = [tf.gradients(value, x)[0] for value in values] + [tf.gradients(values[0], y)[0]]
    with session(target) as sess:
        found, steep = sess.run([values, slopes])
    return {
        "values": [float(v) for v in found],
        "slopes": [float(v) for v in steep],
        "shape": square(tf.zeros([3])).get_shape().as_list(),
    }


def _on(device, make):
    with tf.device(device):
        return make()


def branches(target, other):
    """tf.cond with a side that runs on another task; in both modes of control flow where there are two."""
    answers = {}
    modes = ["v1"] + (["v2"] if hasattr(tf, "enable_control_flow_v2") else [])
    for mode in modes:
        if mode == "v2":
            tf.enable_control_flow_v2()
        try:
            with tf.Graph().as_default():
                which = tf.placeholder(tf.bool, [])
                x = tf.constant(3.0)
                value = tf.cond(which, lambda: _on(other, lambda: x * 2.0), lambda: x - 1.0)
                slope = tf.gradients(value, x)[0]
                loop = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * x), [0, tf.constant(1.0)])[1]
                curve = tf.gradients(loop, x)[0]
                with session(target) as sess:
                    answers[mode] = [
                        [float(v) for v in sess.run([value, slope, loop, curve], {which: side})]
                        for side in (True, False)
                    ]
        finally:
            if mode == "v2":
                tf.disable_control_flow_v2()
    return answers


def recurrent(target):
    """The loop of dynamic_rnn by hand, over TensorArrays, with its gradient; trained a few steps."""
    steps, batch, inputs, units = 7, 3, 4, 5
    generator = np.random.RandomState(1)
    x = tf.constant(generator.randn(steps, batch, inputs).astype(np.float32))
    lengths = tf.constant([7, 3, 5])
    w = tf.get_variable("w", initializer=(0.3 * generator.randn(inputs + units, units)).astype(np.float32))
    series = tf.TensorArray(tf.float32, steps, element_shape=[batch, inputs]).unstack(x)

    def body(time, state, outputs):
        new = tf.tanh(tf.matmul(tf.concat([series.read(time), state], 1), w))
        going = tf.tile(tf.expand_dims(time < lengths, 1), [1, units])
        state = tf.where(going, new, state)
        return time + 1, state, outputs.write(time, state)

    outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, units])
    _, state, outputs = tf.while_loop(
        lambda time, *_: time < steps, body, [0, tf.zeros([batch, units]), outputs], parallel_iterations=4
    )
    loss = tf.reduce_mean(tf.square(outputs.stack())) + tf.reduce_sum(state)
    gradient = tf.gradients(loss, w)[0]
    update = tf.assign_sub(w, 0.05 * gradient)
    with session(target) as sess:
        sess.run(tf.global_variables_initializer())
        first = sess.run(gradient)
        losses = [float(sess.run([loss, update])[0]) for _ in range(5)]
        return {"gradient": first.tolist(), "losses": losses}


def dynamic_rnn(target):
    """tf.nn.dynamic_rnn itself, where the wheel has it without another package."""
    generator = np.random.RandomState(2)
    x = tf.constant(generator.randn(3, 6, 4).astype(np.float32))
    cell = tf.nn.rnn_cell.BasicLSTMCell(5)
    initializer = tf.constant_initializer(0.1)
    with tf.variable_scope("rnn", initializer=initializer):
        outputs, _ = tf.nn.dynamic_rnn(cell, x, sequence_length=[6, 2, 4], dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs))
    gradients = tf.gradients(loss, tf.trainable_variables())
    with session(target) as sess:
        sess.run(tf.global_variables_initializer())
        value, slopes = sess.run([loss, gradients])
        return {"loss": float(value), "slopes": [float(np.abs(g).sum()) for g in slopes]}


def pipeline(target, folder):
    """Files → lines → parsed examples → shuffled batches, by queue runners; every line exactly once, then the end."""
    names = []
    for number in range(3):
        name = os.path.join(folder, "part%d.csv" % number)
        with open(name, "w") as out:
            for line in range(40):
                out.write("%d,%g\n" % (40 * number + line, line / 2.0))
        names.append(name)
    files = tf.train.string_input_producer(names, num_epochs=1, shuffle=True, seed=3)
    _, line = tf.TextLineReader().read(files)
    number, value = tf.decode_csv(line, [[0], [0.0]])
    numbers, values = tf.train.shuffle_batch([number, value], 8, capacity=50, min_after_dequeue=16, seed=4)
    before = threading.active_count()
    seen = []
    with session(target) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while not coordinator.should_stop():
                n, v = sess.run([numbers, values])
                seen.extend(zip(n.tolist(), v.tolist()))
        except tf.errors.OutOfRangeError as error:
            message = error.message
        finally:
            coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=30)
    wrong = [pair for pair in seen if pair[1] != (pair[0] % 40) / 2.0]
    return {
        "numbers": sorted(n for n, _ in seen),
        "shuffled": [n for n, _ in seen] != sorted(n for n, _ in seen),
        "wrong": wrong,
        "message": message,
        "threads_left": threading.active_count() - before,
    }


def latency(target, steps):
    """Median and 99th percentile of a trivial step, in microseconds."""
    import time

    with session(target) as sess:
        fetch = tf.constant(1.0)
        sess.run(fetch)
        times = []
        for _ in range(int(steps)):
            begin = time.perf_counter()
            sess.run(fetch)
            times.append(1e6 * (time.perf_counter() - begin))
    return {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}


PROGRAMS = {
    each.__name__: each
    for each in (
        hello,
        feeds_and_fetches,
        variables,
        errors,
        train,
        train_together,
        sync,
        loop_over_tasks,
        branches,
        functions,
        recurrent,
        dynamic_rnn,
        pipeline,
        latency,
    )
}


def main(out, *calls):
    answers = {"version": tensorflow.__version__}
    for call in calls:
        name, _, arguments = call.partition("=")
        try:
            with tf.Graph().as_default():
                answers[name] = PROGRAMS[name](*arguments.split(","))
        except Exception:
            answers[name] = {"failed": traceback.format_exc()}
    if out == "-":
        print(json.dumps(answers))
        return
    with open(out, "w") as file:
        json.dump(answers, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
