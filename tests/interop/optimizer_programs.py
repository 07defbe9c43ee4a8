"""Training programs for the optimizers' oracle, the same for TensorFlow 1.15 and for us: the module is an argument.

`python optimizer_programs.py FOLDER` runs them under TensorFlow, waits for a line, goes on from our checkpoints and
prints JSON; test_optimizers_oracle.py imports the functions for our side. Checkpoints are FOLDER/<side>/<case>/model.
Must parse under Python 3.7.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

STEPS, SAVED_AT = 200, 100
KINDS = ("dense", "sparse", "partitioned")


def optimizers(tf: Any) -> dict[str, Any]:
    """Name → a function of the global step that makes the optimizer."""
    t = tf.train
    return {
        "GradientDescent": lambda step: t.GradientDescentOptimizer(0.1),
        "Momentum": lambda step: t.MomentumOptimizer(0.05, 0.9),
        "Nesterov": lambda step: t.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
        "Adagrad": lambda step: t.AdagradOptimizer(0.1),
        "AdagradDA": lambda step: t.AdagradDAOptimizer(0.2, step, l1_regularization_strength=0.001),
        "Adadelta": lambda step: t.AdadeltaOptimizer(1.0),
        "Adam": lambda step: t.AdamOptimizer(0.01),
        "RMSProp": lambda step: t.RMSPropOptimizer(0.01, momentum=0.5),
        "CenteredRMSProp": lambda step: t.RMSPropOptimizer(0.01, decay=0.95, epsilon=1e-4, centered=True),
        "Ftrl": lambda step: t.FtrlOptimizer(0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
        "FtrlShrinkage": lambda step: t.FtrlOptimizer(
            0.1, learning_rate_power=-0.6, l2_shrinkage_regularization_strength=0.01
        ),
        "ProximalGradientDescent": lambda step: t.ProximalGradientDescentOptimizer(
            0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01
        ),
        "ProximalAdagrad": lambda step: t.ProximalAdagradOptimizer(
            0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01
        ),
        "Schedule": lambda step: t.GradientDescentOptimizer(t.exponential_decay(0.2, step, 20, 0.9)),
    }


def batches(kind: str) -> list[Any]:
    rng = np.random.RandomState(11)
    xs = []
    for _ in range(STEPS):
        x = rng.randn(16, 6).astype(np.float32) if kind == "dense" else rng.randint(0, 30, (16, 3))
        xs.append((x, rng.randint(0, 4, 16)))
    return xs


class Program:
    """One graph: a model, an optimizer, a saver. Open a session, then `train` in it."""

    def __init__(self, tf: Any, optimizer: str, kind: str, use_resource: bool) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(7)
            step = tf.train.get_or_create_global_step()
            self.y = tf.placeholder(tf.int64, [None])
            with tf.variable_scope("model", use_resource=use_resource):
                if kind == "dense":
                    self.x = features = tf.placeholder(tf.float32, [None, 6])
                else:
                    self.x = tf.placeholder(tf.int64, [None, 3])
                    cut = tf.fixed_size_partitioner(3) if kind == "partitioned" else None
                    table = tf.get_variable("table", [30, 5], partitioner=cut)
                    rows = tf.nn.embedding_lookup(table, self.x, partition_strategy="div")
                    features = tf.reshape(rows, [-1, 15])
                hidden = features
                for layer, (rows_, columns) in enumerate([(6 if kind == "dense" else 15, 8), (8, 4)]):
                    w = tf.get_variable(f"w{layer}", [rows_, columns])
                    b = tf.get_variable(f"b{layer}", [columns], initializer=tf.zeros_initializer())
                    hidden = tf.matmul(hidden, w) + b
                    if not layer:
                        hidden = tf.tanh(hidden)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=hidden)
                self.loss = tf.reduce_mean(losses)
            made = optimizers(tf)[optimizer](step)
            self.train_op = made.minimize(self.loss, global_step=step)
            self.saver = tf.train.Saver()
            self.init = tf.global_variables_initializer()
            self.names = sorted(v.op.name for v in tf.global_variables())
        self._tf = tf

    def open(self) -> Any:
        return self._tf.Session(graph=self.graph)

    def train(self, session: Any, data: list[Any]) -> list[float]:
        return [float(session.run([self.loss, self.train_op], {self.x: x, self.y: y})[0]) for x, y in data]


#: Both halves of a comparison use one graph.
_made: dict[tuple[str, str, bool], Program] = {}


def program_of(tf: Any, case: tuple[str, str, bool]) -> Program:
    if case not in _made:
        _made[case] = Program(tf, *case)
    return _made[case]


def cases() -> list[tuple[str, str, bool]]:
    every = [(name, kind, resource) for name in optimizers_names() for kind in KINDS for resource in (False, True)]
    # partitions go through the same updates as whole tables: a few are enough
    keep = {"Adam", "Adagrad", "Ftrl", "Momentum"}
    return [case for case in every if case[1] != "partitioned" or case[0] in keep]


def optimizers_names() -> list[str]:
    class Names:
        train = None

    return list(optimizers(Names))


def key(case: tuple[str, str, bool]) -> str:
    return f"{case[0]}-{case[1]}-{'resource' if case[2] else 'reference'}"


def curves(tf: Any, folder: str, side: str) -> dict[str, Any]:
    """Case → losses of all steps and the variables' names; saves each case in the middle."""
    found = {}
    for case in cases():
        program, data = program_of(tf, case), batches(case[1])
        with program.open() as session:
            session.run(program.init)
            losses = program.train(session, data[:SAVED_AT])
            path = os.path.join(folder, side, key(case))
            os.makedirs(path, exist_ok=True)
            program.saver.save(session, os.path.join(path, "model"), write_meta_graph=False)
            losses += program.train(session, data[SAVED_AT:])
        found[key(case)] = {"losses": losses, "names": program.names}
    return found


def continued(tf: Any, folder: str, side: str) -> dict[str, list[float]]:
    """Case → losses of the second half, from the other side's checkpoint."""
    found = {}
    for case in cases():
        program, data = program_of(tf, case), batches(case[1])
        with program.open() as session:
            program.saver.restore(session, os.path.join(folder, side, key(case), "model"))
            found[key(case)] = program.train(session, data[SAVED_AT:])
    return found


def schedules(tf: Any) -> dict[str, Any]:
    """Each schedule's rate at steps 0 to 24."""
    t = tf.train
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(3)
        step = tf.placeholder(tf.int64, [])
        rates = {
            "exponential": t.exponential_decay(0.1, step, 7, 0.8),
            "staircase": t.exponential_decay(0.1, step, 7, 0.8, staircase=True),
            "piecewise": t.piecewise_constant(step, [3, 9], [0.5, 0.25, 0.125]),
            "polynomial": t.polynomial_decay(0.1, step, 10, 0.01, power=1.5),
            "cycle": t.polynomial_decay(0.1, step, 10, 0.01, cycle=True),
            "natural": t.natural_exp_decay(0.1, step, 7, 0.3),
            "natural_staircase": t.natural_exp_decay(0.1, step, 7, 0.3, staircase=True),
            "inverse": t.inverse_time_decay(0.1, step, 7, 0.3),
            "inverse_staircase": t.inverse_time_decay(0.1, step, 7, 0.3, staircase=True),
            "cosine": t.cosine_decay(0.1, step, 12, alpha=0.1),
            "restarts": t.cosine_decay_restarts(0.1, step, 4, t_mul=1.5, m_mul=0.8, alpha=0.1),
            "even_restarts": t.cosine_decay_restarts(0.1, step, 4, t_mul=1.0, m_mul=0.8),
            "linear_cosine": t.linear_cosine_decay(0.1, step, 12, num_periods=1.5, alpha=0.1),
        }
        found = [session.run(rates, {step: i}) for i in range(25)]
    return {name: [float(row[name]) for row in found] for name in rates}


def averages(tf: Any) -> dict[str, Any]:
    """Moving averages of a variable and of a tensor over six steps, plain, with num_updates, and debiased."""
    found = {}
    for name, arguments in (("plain", {}), ("updates", {"num_updates": True}), ("debiased", {"zero_debias": True})):
        with tf.Graph().as_default(), tf.Session() as session:
            step = tf.train.get_or_create_global_step()
            variable = tf.Variable([1.0, -2.0], name="v")
            given = dict(arguments, num_updates=step) if "num_updates" in arguments else arguments
            average = tf.train.ExponentialMovingAverage(0.9, **given)
            change = tf.group(variable.assign_add([0.5, 0.25]), tf.assign_add(step, 1))
            with tf.control_dependencies([change]):
                # read after the change: else either side may see the value before it
                tensor = tf.multiply(variable.read_value(), 3.0, name="t")
                update = average.apply([variable, tensor])
            session.run(tf.global_variables_initializer())
            rows = []
            for _ in range(6):
                session.run(update)
                rows.append([x.tolist() for x in session.run([average.average(variable), average.average(tensor)])])
            found[name] = {
                "values": rows,
                "names": sorted(v.op.name for v in tf.global_variables()),
                "restore": {k: v.op.name for k, v in average.variables_to_restore().items()},
            }
    return found


def sampled(tf: Any) -> dict[str, Any]:
    """Embeddings and the sampled losses, whole and in shards, with graph-level seeds only."""
    found: dict[str, Any] = {}
    for shards in (1, 3):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(21)
            cut = tf.fixed_size_partitioner(shards)
            w = tf.get_variable("w", [40, 4], partitioner=cut)
            b = tf.get_variable("b", [40], partitioner=cut, initializer=tf.random_uniform_initializer())
            x = tf.get_variable("x", [5, 4])
            labels = tf.constant([[3], [0], [17], [39], [3]], tf.int64)
            ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 2]], tf.constant([5, 9, -1, 39], tf.int64), [4, 3])
            weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 2]], [0.5, 2.0, 1.0, 3.0], [4, 3])
            losses = {
                "nce": tf.nn.nce_loss(w, b, labels, x, 8, 40, partition_strategy="div"),
                "nce_hits": tf.nn.nce_loss(w, b, labels, x, 8, 40, remove_accidental_hits=True),
                "softmax": tf.nn.sampled_softmax_loss(w, b, labels, x, 8, 40, partition_strategy="div"),
                "seeded": tf.nn.sampled_softmax_loss(w, b, labels, x, 8, 40, seed=5),
            }
            fetches = dict(losses)
            for name, loss in losses.items():
                fetches["slope_" + name] = tf.gradients(loss, x)[0]
            for combiner in ("sum", "mean", "sqrtn"):
                for given, kind in ((None, "plain"), (weights, "weighted")):
                    fetches[f"safe_{combiner}_{kind}"] = tf.nn.safe_embedding_lookup_sparse(
                        w, ids, given, combiner=combiner, default_id=None if given is None else 2
                    )
            fetches["clipped"] = tf.nn.embedding_lookup(w, [1, 39, 20], partition_strategy="div", max_norm=0.2)
            fetches["mod"] = tf.nn.embedding_lookup(list(w), [[1, 2], [20, 0]])
            fetches["learned"] = tf.nn.learned_unigram_candidate_sampler(labels, 1, 4, True, 40, seed=4)[0]
            fetches["uniform"] = tf.nn.uniform_candidate_sampler(labels, 1, 4, True, 40, seed=5)[0]
            fetches["fixed"] = tf.nn.fixed_unigram_candidate_sampler(
                tf.constant([[3], [0]], tf.int64), 1, 4, True, 5, unigrams=[1.0, 2.0, 1.0, 4.0, 1.0], seed=6
            )[0]
            session.run(tf.global_variables_initializer())
            for run in range(2):
                values = session.run(fetches)
                found[f"{shards} shards, run {run}"] = {k: np.asarray(v).tolist() for k, v in values.items()}
    return found


def clips(tf: Any) -> dict[str, Any]:
    """The clipping functions and their gradients."""
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.constant([[3.0, -4.0], [0.5, 0.0]])
        b = tf.constant([6.0, 8.0])
        rows = tf.IndexedSlices(a, tf.constant([0, 2]), tf.constant([3, 2]))
        both, norm = tf.clip_by_global_norm([a, None, rows], 2.0)
        infinite, _ = tf.clip_by_global_norm([a, tf.constant([float("inf")])], 2.0)
        fetches = {
            "value": tf.clip_by_value(a, -1.0, 2.0),
            "norm": tf.clip_by_norm(a, 2.0),
            "norm_axes": tf.clip_by_norm(a, 2.0, axes=[1]),
            "average": tf.clip_by_average_norm(b, 0.5),
            "global": [both[0], both[2].values, norm],
            "global_norm": tf.global_norm([a, b]),
            "infinite": tf.is_nan(infinite[0]),
            "slope_value": tf.gradients(tf.clip_by_value(a, -1.0, 2.0), a)[0],
            "slope_norm": tf.gradients(tf.clip_by_norm(a, 2.0), a)[0],
        }
        values = session.run(fetches)
    return {k: [np.asarray(x).tolist() for x in v] if isinstance(v, list) else v.tolist() for k, v in values.items()}


def values(tf: Any) -> dict[str, Any]:
    """What does not train."""
    return {"schedules": schedules(tf), "averages": averages(tf), "sampled": sampled(tf), "clips": clips(tf)}


def main() -> None:
    import tensorflow as tf

    folder = sys.argv[1]
    answer = {"values": values(tf), "curves": curves(tf, folder, "theirs")}
    # a line says that the other side's checkpoints are there
    sys.stdin.readline()
    answer["continued"] = continued(tf, folder, "ours")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
