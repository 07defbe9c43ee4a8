"""Exports of contrib's session_bundle between Tenfold and TensorFlow 1.15, both ways: variables, asset, signatures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

import tenfold
from tenfold.contrib.session_bundle import bundle_shim, exporter, session_bundle
from tenfold_protos import manifest_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .tensorflow_processes import Forks

#: One program for both: exports y = 2 x + 1 with a file, in a folder and a format of checkpoints.
EXPORT = """
def export(tf, exporter, folder, version, sharded):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.device("/cpu:0"):
            weight, bias = tf.Variable(2.0, name="weight"), tf.Variable(1.0, name="bias")
        y = tf.add(weight * x, bias, name="y")
        with open(folder + "/hello.txt", "w") as file:
            file.write("some words")
        path = tf.constant(folder + "/hello.txt", name="path")
        text = tf.Variable("", trainable=False, collections=[], name="text")
        init_op = tf.group(tf.assign(text, tf.read_file(path)), name="init_op")
        session.run(tf.global_variables_initializer())
        made = exporter.Exporter(tf.train.Saver([weight, bias], write_version=version, sharded=sharded))
        made.init(
            session.graph.as_graph_def(), init_op=init_op, clear_devices=True, assets_collection=[path],
            default_graph_signature=exporter.regression_signature(x, y),
            named_graph_signatures={"inputs": exporter.generic_signature({"x": x}),
                                    "outputs": exporter.generic_signature({"y": y})})
        return made.export(folder + "/export", tf.constant(3), session).decode()

def load(load_it, manifest, path, tf):
    session, definition = load_it(path)
    signatures = manifest.Signatures()
    assert definition.collection_def["serving_signatures"].any_list.value[0].Unpack(signatures)
    named = signatures.named_signatures
    y = named["outputs"].generic_signature.map["y"].tensor_name
    with session:
        values = session.run([y, "text:0"], {named["inputs"].generic_signature.map["x"].tensor_name: [0.0, 3.0]})
    return values[0].tolist(), values[1].decode(), signatures.default_signature.regression_signature.input.tensor_name
"""
THEIRS = """
import json, sys
import tensorflow as tf
from tensorflow.contrib.session_bundle import bundle_shim, exporter, manifest_pb2, session_bundle
tf.logging.set_verbosity(tf.logging.ERROR)
what, folder = sys.argv[1:3]
if what == "export":
    print(json.dumps(export(tf, exporter, folder, int(sys.argv[3]), sys.argv[4] == "True")))
else:
    found = load(session_bundle.load_session_bundle_from_path, manifest_pb2, folder, tf)
    tf.reset_default_graph()
    session, definition = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(folder)
    print(json.dumps([found, sorted(definition.signature_def)]))
"""
WHAT = ([1.0, 7.0], "some words", "x:0")
KEYS = ["serving_default", "serving_default_from_named"]
FORMATS = [(1, False), (1, True), (2, False), (2, True)]


@pytest.fixture
def program() -> Iterator[Any]:
    """Our half of the program; what it loads becomes the default graph."""
    tenfold.reset_default_graph()
    functions: dict[str, Any] = {}
    exec(EXPORT, functions)
    yield functions
    tenfold.reset_default_graph()


@pytest.mark.parametrize(("version", "sharded"), FORMATS)
def test_tensorflow_loads_what_we_export(
    program: Any, forks: dict[str, Forks], tmp_path: Path, version: int, sharded: bool
) -> None:
    path = program["export"](tenfold, exporter, os.fspath(tmp_path), version, sharded)

    found, keys = forks["1.15"].ask(EXPORT + THEIRS, "load", path)

    assert tuple(found) == WHAT
    assert keys == KEYS


@pytest.mark.parametrize(("version", "sharded"), FORMATS)
def test_what_tensorflow_exports_is_loaded(
    program: Any, forks: dict[str, Forks], tmp_path: Path, version: int, sharded: bool
) -> None:
    path = forks["1.15"].ask(EXPORT + THEIRS, "export", os.fspath(tmp_path), str(version), str(sharded))

    assert program["load"](session_bundle.load_session_bundle_from_path, manifest_pb2, path, tenfold) == WHAT
    tenfold.reset_default_graph()
    session, definition = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(path)
    session.close()
    assert sorted(definition.signature_def) == KEYS
