"""Random graphs whose steps are fed more than they need, over every way in; the answers are those of one local session.

Trainers feed `keep_prob` or labels to each step, whether the step needs them or not. tests/cluster, tests/control and
tests/interop bring the sessions; `tf` is Tenfold or TensorFlow, so the file keeps to the Python of TensorFlow's wheels.
"""

import functools
import random

import numpy as np

#: How often each step is run: what a session prepared in its first run, the later ones take another way to.
TIMES = 3


class Step:
    """One run signature: names of what is fetched and run, and for each run what is fed."""

    def __init__(self, fetches, targets, feeds):
        self.fetches, self.targets, self.feeds = fetches, targets, feeds

    @property
    def fed(self):
        """The names, in an order that is the same in every run."""
        return sorted(self.feeds[0])


class Program:
    """A graph with nodes on `devices`, some of which each step needs. The same for the same seed, but for places."""

    def __init__(self, tf, seed, devices):
        self.tf, self.draw, self.graph = tf, random.Random(seed), tf.Graph()
        self.devices = devices
        self.inputs, self.values, self.targets = [], [], []
        with self.graph.as_default():
            self._build()
        self.steps = [self._step() for _ in range(5)]

    def _place(self):
        # drawn for each graph alike, so that a graph on one device has the same nodes
        number = self.draw.randrange(1 << 16)
        return self.tf.device(self.devices[number % len(self.devices)])

    def _build(self):
        tf = self.tf
        for number in range(3):
            with self._place():
                self.inputs.append(tf.placeholder(tf.float32, [3], name=f"x{number}"))
        with self._place():
            sparse = tf.sparse_placeholder(tf.float32, [3], name="sparse")
            dense = tf.sparse_add(tf.zeros([3]), sparse)
        self.sparse = [sparse.indices.name, sparse.values.name]
        self.values = [*self.inputs, dense]
        with self._place():
            v = tf.Variable([1.0, 2.0, 3.0], name="v", use_resource=False)
        with self._place():
            r = tf.Variable([4.0, 5.0, 6.0], name="r", use_resource=True)
        self.init = tf.global_variables_initializer().name
        self.values += [tf.identity(v, name="read_v"), tf.identity(r, name="read_r")]
        with self._place():
            queue = tf.FIFOQueue(9, [tf.float32], [[3]], name="queue")
            with tf.control_dependencies([queue.enqueue([v.initialized_value() * 0.5])]):
                self.values.append(queue.dequeue(name="dequeued"))
        for number in range(12):
            op = self.draw.choice([tf.add, tf.multiply, tf.maximum, tf.subtract])
            with self._place():
                self.values.append(op(*self.draw.sample(self.values, 2), name=f"n{number}"))
        for number in range(2):
            with self._place():
                self.targets.append(tf.group(*self.draw.sample(self.values, 2), name=f"target{number}"))

    def _step(self):
        draw, inner = self.draw, self.values[len(self.inputs) :]
        fetches = draw.sample(inner, draw.randint(0, 3))
        targets = draw.sample(self.targets, draw.randint(0 if fetches else 1, 1))
        # a computed value may be fed, too, and then what it was computed from is needed no more
        fed = [*self.inputs, *(value for value in draw.sample(inner, 2) if value not in fetches)]
        draw.shuffle(fed)
        feeds = []
        for _ in range(TIMES):
            step = {value.name: np.array([draw.randint(-4, 4) for _ in range(3)], np.float32) for value in fed}
            step[self.sparse[0]] = np.array([[draw.randint(0, 2)]], np.int64)
            step[self.sparse[1]] = np.array([draw.randint(-4, 4)], np.float32)
            feeds.append(step)
        return Step([value.name for value in fetches], [op.name for op in targets], feeds)

    def answers(self, run):
        """`run(step, feeds)` gives a step's fetched values; what all runs of all steps gave."""
        runs = [run(step, feeds) for step in self.steps for feeds in step.feeds]
        return [[np.asarray(value).tolist() for value in values] for values in runs]

    def at(self, target, **options):
        """The answers of an ordinary session at `target`."""
        with self.tf.Session(target, graph=self.graph, **options) as session:
            session.run(self.init)
            return self.answers(lambda step, feeds: session.run([step.fetches, step.targets], feeds)[0])


@functools.lru_cache(maxsize=None)  # noqa: UP033 - the older Pythons of TensorFlow's wheels have no other
def expected(tf, seed):
    """The answers of one local session."""
    return Program(tf, seed, [None]).at("")
