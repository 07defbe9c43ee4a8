"""Reads reference variables of one task on another; run by TensorFlow's interpreters and by ours.

`python reference_reads.py LIBRARY TARGET READER FLOATS STEPS [ways=WAY,WAY…] [serve=CLUSTER]`: LIBRARY is tensorflow or
tenfold, READER the task that reads a variable of /job:ps/task:0. Prints JSON: way of reading → how many of STEPS had a
value that TensorFlow's rules do not allow. With serve=CLUSTER (JSON) the program is the reader's server and TARGET is
"". Kept to the Python of the oldest wheel (3.6). test_reference_reads.py starts it and judges.
"""

import importlib
import json
import sys

library = importlib.import_module(sys.argv[1])
tf = library
if sys.argv[1] == "tensorflow" and hasattr(library, "compat") and hasattr(library.compat, "v1"):
    tf = library.compat.v1
    if library.__version__.startswith("2."):
        tf.disable_v2_behavior()
        tf.disable_control_flow_v2()

PS = "/job:ps/task:0"


def ends(value):
    """The first element and the last, made where the value is."""
    flat = tf.reshape(value, [-1])
    return tf.stack([flat[0], flat[-1]])


def build(reader, floats):
    """Way of reading → (what is run, the values allowed for it when the variable is at n before the step)."""
    ways = {}

    def variable(name):
        with tf.device(PS):
            return tf.Variable(tf.zeros([floats]), name=name)

    def add(counter):
        with tf.device(PS):
            return tf.assign_add(counter, tf.ones([floats])).op

    def read(counter, after):
        with tf.device(reader), tf.control_dependencies(after):
            return ends(counter.read_value())

    v = variable("after_an_update")
    ways["after an update"] = [read(v, [add(v)])], lambda n: [{n + 1}]

    v = variable("before_and_after")
    with tf.device(reader):
        first = v.read_value()
        seen = ends(first)
    with tf.control_dependencies([seen]):
        update = add(v)
    ways["before and after"] = [seen, read(v, [update])], lambda n: [{n}, {n + 1}]

    v = variable("after_the_reader")
    with tf.device(reader), tf.control_dependencies([add(v)]):
        # made by the reader's own task once the update is done
        done = tf.constant(0.0) + 1.0
    ways["after the reader's own work"] = [read(v, [done])], lambda n: [{n + 1}]

    v = variable("by_data")
    with tf.device(PS):
        number = tf.assign_add(v, tf.ones([floats]))[0]
    with tf.device(reader):
        # its read waits for the number, which is a value and no control input
        both = tf.stack([number, number])
        after = read(v, [both])
    ways["after a value"] = [both, after], lambda n: [{n + 1}, {n + 1}]

    v = variable("any_time")
    with tf.device(reader):
        anyhow = ends(v.read_value())
    ways["at any time"] = [anyhow, add(v)], lambda n: [{n, n + 1}]

    v = variable("twice")
    one = add(v)
    between = read(v, [one])
    with tf.control_dependencies([between]):
        two = add(v)
    ways["between two updates"] = [between, read(v, [two])], lambda n: [{2 * n + 1}, {2 * n + 2}]

    v = variable("two_kinds")
    with tf.device(PS):
        predicate = tf.placeholder_with_default(True, [])
        with tf.device(reader), tf.control_dependencies([add(v)]):
            taken = tf.cond(predicate, lambda: v.read_value(), lambda: tf.zeros([floats]))
    with tf.device(reader):
        ways["in a branch"] = [ends(taken)], lambda n: [{n + 1}]
    return ways


def main(target, reader, floats, steps, config, chosen):
    ways = build(reader, floats)
    wrong = {}
    with tf.Session(target, config=config) as session:
        session.run(tf.global_variables_initializer())
        for name in chosen or sorted(ways):
            fetches, allowed = ways[name]
            bad = wrong[name] = []
            for step in range(steps):
                results, good = session.run(fetches), allowed(float(step))
                for number, allowed_now in enumerate(good):
                    got = [float(each) for each in results[number]]
                    if not set(got) <= allowed_now:
                        bad.append([step, got])
    return wrong


if __name__ == "__main__":
    target, reader, floats, steps = sys.argv[2:6]
    config = tf.ConfigProto(operation_timeout_in_ms=100000)
    options = dict(option.split("=", 1) for option in sys.argv[6:])
    chosen = options.get("ways", "").split(",") if "ways" in options else []
    if "serve" in options:
        job, index = reader[len("/job:") :].split("/task:")
        server = tf.train.Server(tf.train.ClusterSpec(json.loads(options["serve"])), job, int(index))
        target = server.target
    found = main(target, reader, int(floats), int(steps), config, chosen)
    print(json.dumps({name: {"wrong": len(bad), "first": bad[:3]} for name, bad in found.items()}))
