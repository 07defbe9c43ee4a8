"""tf.data programs for a TensorFlow client, 2.21 or 1.15: each runs in its own process and on the server it is given.

Run by TensorFlow's interpreter: `dataset_programs.py TARGET FOLDER` prints {"cases": …, "differing": …} as JSON. With
`outcomes` as TARGET it prints what each gives in this process; so it is run by Tenfold's client, too.
"""

import json
import os
import re
import sys

import numpy as np
import tensorflow as installed

tf = installed.compat.v1 if hasattr(installed, "compat") and hasattr(installed.compat, "v1") else installed
if int(tf.__version__.split(".")[0]) > 1:
    tf.disable_v2_behavior()
DATA = tf.data.Dataset
FOLDER = sys.argv[2]
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def one_shot(dataset):
    return tf.data.make_one_shot_iterator(dataset).get_next()


def initialized(session, dataset):
    iterator = tf.data.make_initializable_iterator(dataset)
    session.run(iterator.initializer)
    return iterator.get_next()


def drained(session, element, most=60):
    """What the element gives, step after step, and how that ended."""
    out = []
    try:
        for _ in range(most):
            out.append(session.run(element))
    except tf.errors.OpError as error:
        text = error.message.split("\n\t [[")[0].strip().splitlines()[-1]
        out.append([type(error).__name__, re.sub(r" *\[\[.*", "", text)])
    return out


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return repr(np.asarray(value).tolist())


@case
def training_input(s):
    x = np.arange(40, dtype=np.float32).reshape(10, 4)
    y = np.arange(10)
    data = DATA.from_tensor_slices((x, y)).shuffle(6, seed=3).repeat(2).map(lambda a, b: (a * 2, b + 1)).batch(4)
    return drained(s, one_shot(data))


@case
def shuffles_are_tensorflows(s):
    tf.set_random_seed(7)
    once = DATA.range(20).shuffle(5, seed=11, reshuffle_each_iteration=False).repeat(3).batch(20)
    anew = DATA.range(20).shuffle(64, seed=5).repeat(3).batch(20)
    inner = DATA.range(6).repeat(3).shuffle(4, seed=1).batch(18)
    return [drained(s, initialized(s, data)) for data in (once, anew, inner)]


@case
def placeholders(s):
    x = tf.placeholder(tf.float32, [None, 2])
    iterator = tf.data.make_initializable_iterator(DATA.from_tensor_slices(x).batch(2, drop_remainder=True))
    element = iterator.get_next()
    out = drained(s, element)
    for rows in (2, 5):
        s.run(iterator.initializer, {x: np.arange(rows * 2).reshape(rows, 2)})
        out += drained(s, element)
    return out


@case
def feedable(s):
    first = tf.data.make_one_shot_iterator(DATA.range(3))
    second = tf.data.make_initializable_iterator(DATA.range(10, 14))
    handle = tf.placeholder(tf.string, [])
    element = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
    handles = s.run([first.string_handle(), second.string_handle()])
    s.run(second.initializer)
    return [s.run(element, {handle: handles[i]}) for i in (0, 1, 1, 0)]


@case
def reinitializable(s):
    iterator = tf.data.Iterator.from_structure(tf.int64, [])
    element = iterator.get_next()
    out = []
    for data in (DATA.range(2), DATA.range(5, 8)):
        s.run(iterator.make_initializer(data))
        out += drained(s, element)
    return out


@case
def pieces(s):
    data = DATA.range(30).skip(2).take(20).filter(lambda v: tf.equal(v % 3, 0)).concatenate(DATA.range(3))
    both = DATA.zip((data, DATA.range(100, 200)))
    return drained(s, one_shot(both.prefetch(2)))


@case
def nested(s):
    flat = DATA.range(1, 4).flat_map(lambda n: DATA.range(n).map(lambda v: v * 10 + n))
    mixed = DATA.range(1, 5).interleave(lambda n: DATA.from_tensors(n).repeat(n), cycle_length=2, block_length=2)
    return drained(s, one_shot(flat)) + drained(s, one_shot(mixed))


@case
def padded(s):
    data = DATA.range(1, 6).map(lambda n: (tf.fill([n], n), tf.strings.as_string(n)))
    padded = data.padded_batch(2, padded_shapes=([None], []), padding_values=(np.int64(-1), "?"))
    return drained(s, one_shot(padded))


@case
def captured(s):
    v = tf.Variable(10.0, name="v")
    s.run(v.initializer)
    data = DATA.range(3).map(lambda n: tf.cast(n, tf.float32) + v)
    return drained(s, initialized(s, data))


@case
def cached(s):
    element = initialized(s, DATA.range(4).map(lambda n: n * n).cache().repeat(2).shuffle(3, seed=2))
    return drained(s, element)


@case
def generated(s):
    data = DATA.range(2).map(lambda n: tf.py_func(lambda k: np.float32(k) / 2, [n], tf.float32))
    return [data is not None]


@case
def conditional_function(s):
    data = DATA.range(6).map(lambda n: tf.cond(tf.equal(n % 2, 0), lambda: n * 100, lambda: -n))
    looped = DATA.range(4).map(
        lambda n: tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + i), [np.int64(0), n])[1]
    )
    return drained(s, one_shot(data)) + drained(s, one_shot(looped))


@case
def errors_and_after(s):
    element = initialized(s, DATA.from_tensor_slices([1.0, 0.0, 4.0]).map(lambda v: tf.check_numerics(1.0 / v, "bad")))
    out = []
    for _ in range(4):
        try:
            out.append(s.run(element))
        except tf.errors.OpError as error:
            out.append(type(error).__name__)
    return out


@case
def batches_of_unequal(s):
    element = initialized(s, DATA.range(1, 4).map(lambda n: tf.fill([n], n)).batch(2))
    return [drained(s, element, 1)[0][0]]


@case
def files(s):
    data = DATA.from_tensor_slices([os.path.join(FOLDER, "a.txt"), os.path.join(FOLDER, "b.txt")])
    lines = tf.data.TextLineDataset([os.path.join(FOLDER, "a.txt"), os.path.join(FOLDER, "b.txt")])
    fixed = tf.data.FixedLengthRecordDataset(os.path.join(FOLDER, "fixed.bin"), 4, header_bytes=2, footer_bytes=1)
    each = data.flat_map(lambda name: tf.data.TextLineDataset(name).skip(1))
    return [drained(s, initialized(s, d)) for d in (lines, fixed, each)]


@case
def records(s):
    def parse(text):
        features = {"x": tf.FixedLenFeature([2], tf.float32), "y": tf.FixedLenFeature([], tf.int64)}
        return tf.parse_single_example(text, features)

    data = tf.data.TFRecordDataset(os.path.join(FOLDER, "examples.tfrecord")).map(parse, num_parallel_calls=2)
    element = initialized(s, data.batch(2).prefetch(1))
    return drained(s, (element["x"], element["y"]))


@case
def missing_file(s):
    element = initialized(s, tf.data.TextLineDataset(os.path.join(FOLDER, "none.txt")))
    return [drained(s, element)[0][0]]


@case
def a_model_trains(s):
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(32, 1)
    data = DATA.from_tensor_slices((x, 3 * x + 1)).shuffle(32, seed=1).repeat().batch(8)
    a, b = one_shot(data)
    w, c = tf.Variable([[0.0]], name="w"), tf.Variable([0.0], name="c")
    loss = tf.reduce_mean(tf.square(tf.matmul(a, w) + c - b))
    step = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    s.run(tf.global_variables_initializer())
    for _ in range(40):
        s.run(step)
    return [np.round(s.run([w, c])[0], 3), [round(float(v), 3) for v in s.run(c)]]


@case
def tensors_stay_under_handles(s):
    kept = tf.get_session_handle(tf.constant([1.5, 2.5]) * 2)
    handle = s.run(kept)
    holder, tensor = tf.get_session_tensor(handle.handle, tf.float32)
    holder_again, deleter = tf.delete_session_tensor(handle.handle)
    out = [s.run(tensor, {holder: handle.handle}), handle.eval()]
    s.run(deleter, {holder_again: handle.handle})
    try:
        s.run(tensor, {holder: handle.handle})
    except tf.errors.OpError as error:
        out.append(type(error).__name__)
    return out


@case
def a_staging_map(s):
    from tensorflow.python.ops import data_flow_ops

    out = []
    for ordered in (False, True):
        area = data_flow_ops.MapStagingArea([tf.float32, tf.int32], shapes=[[2], []], ordered=ordered, capacity=3)
        key, half = tf.placeholder(tf.int64, []), tf.placeholder(tf.int32, [])
        put = area.put(key, [tf.fill([2], tf.cast(key, tf.float32)), half], [0, 1])
        first, second = area.put(key, [tf.constant([5.0, 6.0])], [0]), area.put(key, [half], [1])
        for number in (7, 3):
            s.run(put, {key: number, half: number * 10})
        out += s.run([area.size(), area.incomplete_size()])
        s.run(first, {key: 1})
        out += s.run([area.size(), area.incomplete_size()])
        s.run(second, {key: 1, half: 9})
        out += [s.run(area.peek(key, [0, 1]), {key: 1}), s.run(area.get(key), {key: 1})]
        out.append(s.run(area.get())[0] if ordered else None)
        s.run(area.clear())
        out.append(s.run(area.size()))
    return out


def experimental(name):
    return getattr(tf.data.experimental, name)


@case
def groups_and_reducers(s):
    data = DATA.range(20)
    windows = data.apply(experimental("group_by_window")(lambda n: n % 3, lambda k, w: w.batch(4), window_size=4))
    reducer = experimental("Reducer")(lambda k: np.int64(0), lambda state, n: state + n, lambda state: state * 10)
    sums = data.apply(experimental("group_by_reducer")(lambda n: n % 4, reducer))
    return drained(s, initialized(s, windows)) + drained(s, initialized(s, sums))


@case
def states_and_ends(s):
    scanned = DATA.range(6).apply(experimental("scan")(np.int64(1), lambda state, n: (state + n, state * n)))
    taken = DATA.range(9).apply(experimental("take_while")(lambda n: n < 4))
    total = DATA.range(5).reduce(np.int64(0), lambda state, n: state + n)
    single = experimental("get_single_element")(DATA.range(10).skip(3).take(1))
    return [drained(s, initialized(s, scanned)), drained(s, initialized(s, taken)), s.run([total, single])]


@case
def choices(s):
    zeros, ones, twos = (DATA.from_tensors(np.int64(n)).repeat(4) for n in range(3))
    chosen = experimental("choose_from_datasets")([zeros, ones, twos], DATA.range(3).repeat(3))
    sampled = experimental("sample_from_datasets")([zeros.repeat(), ones.repeat()], [0.3, 0.7], seed=5).take(20)
    unique = DATA.from_tensor_slices([1, 37, 2, 37, 2, 1]).apply(experimental("unique")())
    return [
        drained(s, initialized(s, chosen)),
        len(drained(s, initialized(s, sampled))),
        drained(s, initialized(s, unique)),
    ]


@case
def batches_apart(s):
    apart = DATA.range(7).batch(3).apply(experimental("unbatch")())
    sparse = DATA.range(1, 5).map(lambda n: tf.fill([n], n)).apply(experimental("dense_to_sparse_batch")(2, [6]))
    ignored = DATA.from_tensor_slices([1.0, 0.0, 4.0]).map(lambda v: tf.check_numerics(1.0 / v, "bad"))
    both = DATA.range(10).apply(experimental("map_and_batch")(lambda n: n * n, 4, num_parallel_calls=2))
    # in another order than that of 1.15, which draws both epochs from one sequence of numbers
    repeated = initialized(s, DATA.range(5).apply(experimental("shuffle_and_repeat")(3, 2, seed=9)).batch(5))
    epochs = [sorted(s.run(repeated)) for _ in range(2)]
    return epochs + [
        drained(s, initialized(s, data))
        for data in (apart, sparse, ignored.apply(experimental("ignore_errors")()), both)
    ]


@case
def interleaved(s):
    def inner(n):
        return DATA.range(10 * n, 10 * n + n)

    legacy = DATA.range(1, 6).apply(experimental("parallel_interleave")(inner, cycle_length=2, block_length=2))
    new = DATA.range(1, 6).interleave(inner, cycle_length=3, block_length=1, num_parallel_calls=2)
    mapped = DATA.range(30).map(lambda n: n * 2, num_parallel_calls=4)
    return [drained(s, initialized(s, data)) for data in (legacy, new, mapped)]


@case
def tables(s):
    path = os.path.join(FOLDER, "table.csv")
    csv = experimental("CsvDataset")(path, [tf.int32, np.array(["none"]), tf.float32], header=True)
    import sqlite3

    database = os.path.join(FOLDER, "people.db")
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS people (name TEXT, age INTEGER)")
        connection.execute("DELETE FROM people")
        connection.execute("INSERT INTO people VALUES ('Ann', 30), ('Bob', 41)")
    rows = experimental("SqlDataset")("sqlite", database, "SELECT name, age FROM people", (tf.string, tf.int32))
    named = DATA.list_files(os.path.join(FOLDER, "*.txt"), shuffle=False)
    return [drained(s, initialized(s, data)) for data in (csv, rows, named)]


@case
def parsed_examples(s):
    features = {
        "x": tf.FixedLenFeature([2], tf.float32),
        "y": tf.FixedLenFeature([], tf.int64),
        "z": tf.VarLenFeature(tf.int64),
    }
    data = tf.data.TFRecordDataset(os.path.join(FOLDER, "examples.tfrecord")).batch(2)
    element = initialized(s, data.apply(experimental("parse_example_dataset")(features, num_parallel_calls=2)))
    return drained(s, (element["x"], element["y"], element["z"].values, element["z"].dense_shape))


@case
def saved_iterators(s):
    data = DATA.range(40).shuffle(7, seed=3).repeat(2).map(lambda n: n * 2).batch(3).prefetch(2)
    iterator = tf.data.make_initializable_iterator(data)
    element = iterator.get_next()
    saver = tf.train.Saver({"iterator": experimental("make_saveable_from_iterator")(iterator)})
    s.run(iterator.initializer)
    before = [s.run(element) for _ in range(5)]
    path = saver.save(s, os.path.join(FOLDER, "iterator"))
    expected = [s.run(element) for _ in range(4)]
    s.run(iterator.initializer)
    saver.restore(s, path)
    again = [s.run(element) for _ in range(4)]
    return [before, np.array_equal(expected, again)]


@case
def cached_in_a_file(s):
    path = os.path.join(FOLDER, f"cache-{len(os.listdir(FOLDER))}")
    return drained(s, initialized(s, DATA.range(4).map(lambda n: n * n).cache(path).repeat(3)))


def prepare():
    """The files that the programs read."""
    with open(os.path.join(FOLDER, "a.txt"), "wb") as out:
        out.write(b"one\ntwo\r\n\nfour")
    with open(os.path.join(FOLDER, "b.txt"), "wb") as out:
        out.write(b"five\nsix\n")
    with open(os.path.join(FOLDER, "table.csv"), "wb") as out:
        out.write(b'a,b,c\n1,"x, y",2.5\n3,,4\n')
    with open(os.path.join(FOLDER, "fixed.bin"), "wb") as out:
        out.write(b"HHabcdefghF")
    with tf.python_io.TFRecordWriter(os.path.join(FOLDER, "examples.tfrecord")) as writer:
        for n in range(3):
            example = tf.train.Example()
            example.features.feature["x"].float_list.value.extend([n, n + 0.5])
            example.features.feature["z"].int64_list.value.extend(range(n))
            example.features.feature["y"].int64_list.value.append(n)
            writer.write(example.SerializeToString())


def outcome(function, where):
    with tf.Graph().as_default(), tf.Session(where) as session:
        try:
            return plain(function(session))
        except tf.errors.OpError as error:
            return [type(error).__name__, error.message[:400]]


if __name__ == "__main__":
    prepare()
    only = sys.argv[3:] or list(CASES)
    if sys.argv[1] == "outcomes":
        # MapStagingArea is a client's class that only TensorFlow has.
        print(json.dumps({name: outcome(CASES[name], "") for name in only if name != "a_staging_map"}))
        sys.exit()
    differing = {}
    for name in only:
        ours, theirs = outcome(CASES[name], sys.argv[1]), outcome(CASES[name], "")
        if ours != theirs:
            differing[name] = {"ours": ours, "theirs": theirs}
    print(json.dumps({"cases": len(only), "differing": differing}))
