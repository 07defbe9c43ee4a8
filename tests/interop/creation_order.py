"""Reads and updates that nothing orders, on a ps and a worker: `python creation_order.py LIBRARY TARGET`.

Prints the values that are left. Run by Tenfold's interpreter and by TensorFlow's; test_creation_order.py starts it.
"""

import json
import sys

if sys.argv[1] == "tenfold":
    import tenfold as tf
else:
    import tensorflow

    tf = tensorflow.compat.v1
    tf.disable_v2_behavior()

P, W = "/job:ps/task:0", "/job:worker/task:0"


def reads_before_updates(session_of):
    """The worker multiplies both variables, which its step changes then."""
    with tf.device(P):
        v = tf.Variable(tf.ones([3]), use_resource=False)
        r = tf.Variable(tf.ones([3]), use_resource=True)
    with tf.device(W):
        y = tf.matmul(tf.reshape(v, [1, 3]), tf.reshape(r, [3, 1]))
        up = tf.group(v.assign_add(y[0] * tf.ones([3])), r.assign_sub(tf.ones([3])))
    with session_of() as session:
        session.run(tf.global_variables_initializer())
        session.run(up)
        return [session.run(v).tolist(), session.run(r).tolist()]


def several_reads(session_of):
    """Two of them, one of which the worker takes in another step's graph."""
    with tf.device(P):
        r = tf.Variable([1.0, 2.0], use_resource=True)
        doubled = r.read_value() * 2.0
    with tf.device(W):
        seen = r.read_value() + 1.0
        up = r.assign_add([10.0, 10.0])
    with session_of() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run([doubled, seen, tf.group(up)])[:2] for _ in range(3)]
        return [[value.tolist() for value in values] for values in found]


def main():
    found = {}
    for program in (reads_before_updates, several_reads):
        runs = []
        for _ in range(4):
            with tf.Graph().as_default():
                config = tf.ConfigProto(isolate_session_state=True)
                runs.append(program(lambda: tf.Session(sys.argv[2], config=config)))  # noqa: B023 - called at once
        found[program.__name__] = runs
    print(json.dumps(found))


main()
