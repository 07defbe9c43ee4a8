"""SavedModels between Tenfold and TensorFlow 2.21 and 1.15, both ways: variables, a table with its file, functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf

from . import tensorflow_processes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Saves, through the first argument's folder, a model of TensorFlow's own: y = x · weight, and the id of a word.
SAVE = """
import json, sys
import tensorflow
tf = getattr(tensorflow.compat, "v1", tensorflow)
tf.disable_v2_behavior() if hasattr(tf, "disable_v2_behavior") else None
folder = sys.argv[1]
with open(folder + "/words.txt", "w") as file:
    file.write("zero\\none\\ntwo\\n")
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    words = tf.placeholder(tf.string, [None], name="words")
    for resource in (False, True):
        tf.get_variable("weight%d" % resource, initializer=[[1.0], [2.0]], use_resource=resource)
    y = tf.matmul(x, tf.add_n(tf.global_variables()))
    path = tf.constant(folder + "/words.txt")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
    table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
    ids = table.lookup(words)
    session.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(session, folder + "/export", {"x": x, "words": words}, {"y": y, "ids": ids},
                               legacy_init_op=tf.tables_initializer())
print(json.dumps(True))
"""

#: Saves an object of TensorFlow 2: a method that calls another, variables, and a table that reads a file.
SAVE_OBJECT = """
import json, sys
import tensorflow as tf
folder = sys.argv[1]
with open(folder + "/words.txt", "w") as file:
    file.write("zero\\none\\ntwo\\n")

class Model(tf.Module):
    def __init__(self):
        super().__init__()
        self.weight = tf.Variable([[2.0], [4.0]])
        self.table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            folder + "/words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), -1)

    @tf.function
    def product(self, x):
        return tf.cond(tf.reduce_sum(x) > 1e6, lambda: x[:, :1], lambda: tf.matmul(x, self.weight))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x"),
                                  tf.TensorSpec([None], tf.string, name="words")])
    def serve(self, x, words):
        return {"y": self.product(x), "ids": self.table.lookup(words)}

model = Model()
tf.saved_model.save(model, folder + "/export", signatures=model.serve)
print(json.dumps(True))
"""

#: Loads a model of ours with the v1 loader, and with TensorFlow 2's where there is one.
LOAD = """
import json, sys
import tensorflow
v1 = getattr(tensorflow.compat, "v1", tensorflow)
folder, out = sys.argv[1], []
with v1.Graph().as_default(), v1.Session() as session:
    graph = v1.saved_model.load(session, ["serve"], folder)
    s = graph.signature_def["serving_default"]
    y, ids = session.run([s.outputs["y"].name, s.outputs["ids"].name],
                         {s.inputs["x"].name: [[1.0, 2.0]], s.inputs["words"].name: ["two", "none"]})
    out.append([y.tolist(), ids.tolist()])
if tensorflow.__version__.startswith("2"):
    serve = tensorflow.saved_model.load(folder).signatures["serving_default"]
    found = serve(x=tensorflow.constant([[1.0, 2.0]]), words=tensorflow.constant(["two", "none"]))
    out.append([found["y"].numpy().tolist(), found["ids"].numpy().tolist()])
print(json.dumps(out))
"""
EXPECTED = [[[10.0]], [2, -1]]


def loaded_here(folder: str) -> list[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        graph = tf.saved_model.load(session, ["serve"], folder)
        signature = graph.signature_def["serving_default"]
        feeds = {signature.inputs["x"].name: [[1.0, 2.0]], signature.inputs["words"].name: ["two", "none"]}
        return [each.tolist() for each in session.run([signature.outputs[n].name for n in ("y", "ids")], feeds)]


def saved_here(folder: Path, as_text: bool) -> str:
    (folder / "words.txt").write_text("zero\none\ntwo\n")
    with tf.Graph().as_default(), tf.Session() as session:
        x, words = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.string, [None])
        for resource in (False, True):
            tf.get_variable(f"weight{resource:d}", initializer=[[1.0], [2.0]], use_resource=resource)
        y = tf.matmul(x, tf.add_n(tf.global_variables()))
        ids = tf.contrib.lookup.index_table_from_file(str(folder / "words.txt")).lookup(words)
        session.run(tf.global_variables_initializer())
        signature = tf.saved_model.predict_signature_def({"x": x, "words": words}, {"y": y, "ids": ids})
        builder = tf.saved_model.Builder(str(folder / "export"))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.tables_initializer(),
            strip_default_attrs=True,
        )
        builder.save(as_text)
    (folder / "words.txt").unlink()
    return str(folder / "export")


@pytest.mark.parametrize("as_text", [False, True])
def test_tensorflow_loads_ours(ask_tensorflow: Callable[..., Any], tmp_path: Path, as_text: bool) -> None:
    export_dir = saved_here(tmp_path, as_text)

    assert ask_tensorflow(LOAD, export_dir) == [EXPECTED, EXPECTED]


@pytest.mark.thorough
def test_tensorflow_1_15_loads_ours(tmp_path: Path) -> None:
    python = tensorflow_processes.interpreter("1.15")

    assert tensorflow_processes.printed_json(python, "-c", LOAD, saved_here(tmp_path, False)) == [EXPECTED]


@pytest.mark.parametrize("script", [SAVE, SAVE_OBJECT], ids=["graph", "object"])
def test_we_load_tensorflows(ask_tensorflow: Callable[..., Any], tmp_path: Path, script: str) -> None:
    ask_tensorflow(script, str(tmp_path))
    (tmp_path / "words.txt").unlink()

    assert loaded_here(str(tmp_path / "export")) == EXPECTED


def test_we_load_tensorflow_1_15s(tmp_path: Path) -> None:
    tensorflow_processes.printed_json(tensorflow_processes.interpreter("1.15"), "-c", SAVE, str(tmp_path))
    (tmp_path / "words.txt").unlink()

    assert loaded_here(str(tmp_path / "export")) == EXPECTED
