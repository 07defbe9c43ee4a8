"""The steps of a served graph that take in increments: variables of all kinds, at once or not at all."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.train.incremental_saver import SUB_INCR_CKPT_DIR, _get_incremental_saver
from tenfold_control_api.serving.follow_graph import FollowSteps, add_follow_nodes
from tenfold_core import saved_model
from tenfold_protos import saver_pb2

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef

KNOWN = np.arange(40)


def program(parts: int) -> tuple[Any, Any, Any]:
    """(ids, loss, outputs by name) of tables and variables of all kinds, in so many parts."""
    divide = tf.fixed_size_partitioner(parts) if parts else None
    ids = tf.placeholder(tf.int64, [None], name="ids")
    option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(2), evict_option=tf.GlobalStepEvict(3))
    rare = tf.get_embedding_variable("rare", 3, initializer=tf.ones_initializer(), partitioner=divide, ev_option=option)
    half = tf.get_embedding_variable(
        "half", 2, key_dtype=tf.int32, value_dtype=tf.bfloat16, initializer=tf.ones_initializer(), partitioner=divide
    )
    wide = tf.get_variable("wide", [40, 3], initializer=tf.zeros_initializer(), partitioner=divide)
    resource = tf.get_variable("resource", [40, 3], initializer=tf.zeros_initializer(), use_resource=True)
    bias = tf.get_variable("bias", [3], initializer=tf.zeros_initializer())
    step = tf.train.get_or_create_global_step()
    halves = tf.cast(tf.nn.embedding_lookup(half, tf.cast(ids, tf.int32)), tf.float32)
    outputs = {
        "rare": tf.nn.embedding_lookup(rare, ids),
        "half": halves,
        "wide": tf.nn.embedding_lookup(wide, ids, "div"),
        "resource": tf.nn.embedding_lookup(resource, ids),
        "bias": tf.identity(bias),
        "step": tf.identity(step),
    }
    loss = tf.reduce_sum(outputs["rare"] * 0.5 + outputs["wide"] + outputs["resource"] + bias) + tf.reduce_sum(halves)
    return ids, loss, outputs


class Training:
    """Saves; and knows what each state is."""

    def __init__(self, folder: Path, parts: int, *, by_rows: bool) -> None:
        self._folder = str(folder)
        folder.mkdir()
        with tf.Graph().as_default() as graph:
            self._ids, loss, _ = program(parts)
            optimizer = tf.train.GradientDescentOptimizer(0.25)
            self._train = optimizer.minimize(loss, global_step=tf.train.get_global_step())
            self._saver = tf.train.Saver(incremental_save_restore=True, incremental_include_normal_var=by_rows)
            self._other = tf.train.Saver()
            made = _get_incremental_saver(True, self._saver)
            assert made is not None
            self._increments = made
            self.session = tf.Session(graph=graph)
            self.session.run(tf.global_variables_initializer())

    def train(self, first: int) -> None:
        self.session.run(self._train, {self._ids: np.arange(first, first + 6)})

    def whole(self) -> str:
        return self._save("model")

    def copy(self, number: int) -> str:
        """A whole checkpoint that no increment follows."""
        return self._save(f"copy-{number}")

    def _save(self, name: str) -> str:
        saver = self._saver if name == "model" else self._other
        saved = saver.save(self.session, os.path.join(self._folder, name), write_state=name == "model")
        assert saved is not None
        return saved

    def increment(self, number: int) -> str:
        path = os.path.join(self._folder, SUB_INCR_CKPT_DIR, "increment")
        saved = self._increments.incremental_save(self.session, path, global_step=number)
        assert saved is not None
        return saved


@functools.cache
def exported(parts: int) -> tuple[MetaGraphDef, FollowSteps, tf.Graph]:
    """A SavedModel of the program, with the steps that take in increments."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default(), tf.Session() as session:
        ids, _, outputs = program(parts)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, f"{folder}/model", inputs={"ids": ids}, outputs=outputs)
        graph = saved_model.graph_with_tags(saved_model.read(f"{folder}/model"), ["serve"])
    for node in graph.graph_def.node:
        if node.op.startswith("KvResourceGather"):
            node.attr["is_inference"].b = True
    steps = add_follow_nodes(graph.graph_def, graph.saver_def)
    with tf.Graph().as_default() as made:
        tf.import_graph_def(graph.graph_def, name="")
    return graph, steps, made


class Served:
    """An exported graph in a session, restored from a whole checkpoint."""

    def __init__(self, parts: int, whole: str) -> None:
        graph, self.steps, made = exported(parts)
        signature = graph.signature_def["serving_default"]
        self._outputs = {name: info.name for name, info in signature.outputs.items()}
        self._ids = signature.inputs["ids"].name
        self.session = tf.Session(graph=made)
        self.session.run(graph.saver_def.restore_op_name, {graph.saver_def.filename_tensor_name: whole})

    def read(self, prefix: str) -> None:
        self.session.run(self.steps.read, {self.steps.prefix: prefix})

    def put(self) -> None:
        self.session.run(self.steps.put)

    def state(self) -> dict[str, list[Any]]:
        found = self.session.run(self._outputs, {self._ids: KNOWN})
        return {name: value.tolist() for name, value in found.items()}

    def rows(self) -> int:
        return sum(int(shape[0]) for shape in self.session.run(list(self.steps.shapes)))


@pytest.mark.parametrize(
    ("parts", "by_rows"),
    [
        ((2, 3), True),
        ((0, 0), False),
        *(
            pytest.param(parts, by_rows, marks=pytest.mark.thorough)
            for parts, by_rows in itertools.product([(2, 1), (0, 0), (1, 2), (2, 3)], [False, True])
            if (parts, by_rows) not in (((2, 3), True), ((0, 0), False))
        ),
    ],
)
def test_increments_are_taken_in(tmp_path: Path, parts: tuple[int, int], by_rows: bool) -> None:
    training = Training(tmp_path / "training", parts[0], by_rows=by_rows)
    with training.session:
        for first in (0, 3, 0):
            training.train(first)
        whole = training.whole()
        served = Served(parts[1], whole)
        with served.session:
            for number, first in ((2, 5), (3, 20), (4, 20), (5, 21), (6, 22), (7, 23)):
                training.train(first)
                before = served.state()
                served.read(training.increment(number))
                assert served.state() == before, "to read changes nothing"
                served.put()
                fresh = Served(parts[1], training.copy(number))
                with fresh.session:
                    assert served.state() == fresh.state() != before
                    assert served.rows() == fresh.rows() > 0, "lookups have added none"


@pytest.mark.parametrize("damage", ["index", "data"])
def test_an_increment_that_cannot_be_read_changes_nothing(tmp_path: Path, damage: str) -> None:
    training = Training(tmp_path / "training", 2, by_rows=False)
    with training.session:
        training.train(0)
        served = Served(1, training.whole())
        with served.session:
            training.train(0)
            prefix = training.increment(2)
            name = f"{prefix}.index" if damage == "index" else f"{prefix}.data-00000-of-00001"
            with open(name, "rb") as file:
                whole = file.read()
            with open(name, "wb") as file:
                file.write(whole[: len(whole) // 2])
            before = served.state()
            with pytest.raises((tf.errors.DataLossError, tf.errors.NotFoundError)):
                served.read(prefix)
            assert served.state() == before
            with open(name, "wb") as file:
                file.write(whole)
            served.read(prefix)
            served.put()
            assert served.state() != before, "and nothing of the other one was left behind"


def graph_of(make: Callable[[], Any]) -> GraphDef:
    with tf.Graph().as_default() as graph:
        make()
    return graph.as_graph_def()


def test_what_cannot_follow_says_why() -> None:
    nothing = graph_of(lambda: tf.no_op(name="restore"))
    with pytest.raises(ValueError, match="restores no variables"):
        add_follow_nodes(nothing, saver_pb2.SaverDef())
    with pytest.raises(ValueError, match="restores nothing by RestoreV2"):
        add_follow_nodes(nothing, saver_pb2.SaverDef(restore_op_name="restore"))
    with pytest.raises(ValueError, match="has no node 'other'"):
        add_follow_nodes(nothing, saver_pb2.SaverDef(restore_op_name="other"))

    def computed() -> None:
        names = tf.strings.join([tf.constant(["w"]), tf.constant(["x"])])
        value = tf.raw_ops.RestoreV2(prefix="p", tensor_names=names, shape_and_slices=[""], dtypes=[tf.float32])[0]
        tf.group(tf.assign(tf.get_variable("w", []), value), name="restore")

    with pytest.raises(ValueError, match="looks for values are computed"):
        add_follow_nodes(graph_of(computed), saver_pb2.SaverDef(restore_op_name="restore"))


def test_nodes_of_a_graph_that_has_such_names() -> None:
    def taken() -> None:
        value = tf.raw_ops.RestoreV2(prefix="p", tensor_names=["w"], shape_and_slices=[""], dtypes=[tf.float32])[0]
        tf.group(tf.assign(tf.get_variable("w", []), value), name="restore")
        tf.no_op(name="follow_training/read")

    graph = graph_of(taken)
    steps = add_follow_nodes(graph, saver_pb2.SaverDef(restore_op_name="restore"))
    assert steps == FollowSteps(
        "follow_training_/prefix:0", "follow_training_/read", "follow_training_/put/restore", ()
    )
    names = [node.name for node in graph.node]
    assert len(names) == len(set(names))
