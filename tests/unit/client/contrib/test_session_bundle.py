"""`tf.contrib.session_bundle`: what is exported is loaded again, with signatures, assets and init op; what is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.contrib.session_bundle import bundle_shim, constants, exporter, gc, session_bundle
from tenfold_protos import manifest_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

V1, V2 = tf.train.SaverDef.V1, tf.train.SaverDef.V2


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    """What is loaded becomes the default graph, so the tests begin with one of their own."""
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def export(
    folder: Path,
    *,
    version: Any = V2,
    sharded: bool = False,
    init: dict[str, Any] | None = None,
    keep: Any = None,
    steps: tuple[int, ...] = (7,),
) -> bytes:
    """A model y = 2 x + 1, and a file that a constant names, whose text is kept by the init op."""
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.device("/cpu:0"):
        weight = tf.Variable(2.0, name="weight")
        bias = tf.Variable(1.0, name="bias")
    y = tf.add(weight * x, bias, name="y")
    asset = folder / "hello.txt"
    asset.write_text("some words")
    name = tf.constant(os.fspath(asset), name="path")
    text = tf.Variable("", trainable=False, collections=[], name="text")
    init_op = tf.group(tf.assign(text, tf.read_file(name)), name="init_op")
    named = {"inputs": exporter.generic_signature({"x": x}), "outputs": exporter.generic_signature({"y": y})}
    arguments: dict[str, Any] = {
        "init_op": init_op,
        "default_graph_signature": exporter.regression_signature(x, y),
        "named_graph_signatures": named,
        "assets_collection": [name],
        **(init or {}),
    }
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made = exporter.Exporter(tf.train.Saver([weight, bias], write_version=version, sharded=sharded))
        made.init(tf.get_default_graph().as_graph_def(), **arguments)
        for step in steps:
            path = made.export(os.fspath(folder / "export"), tf.constant(step), session, exports_to_keep=keep)
    return path


def signatures_of(definition: Any) -> Any:
    found = manifest_pb2.Signatures()
    assert definition.collection_def[constants.SIGNATURES_KEY].any_list.value[0].Unpack(found)
    return found


@pytest.mark.parametrize(("version", "sharded"), [(V1, False), (V1, True), (V2, False), (V2, True)])
def test_an_export_is_loaded(tmp_path: Path, version: Any, sharded: bool) -> None:
    path = export(tmp_path, version=version, sharded=sharded)
    assert path == os.fsencode(tmp_path / "export" / "00000007")

    session, definition = session_bundle.load_session_bundle_from_path(os.fsdecode(path))

    with session:
        assert session.run("y:0", {"x:0": [0, 3]}).tolist() == [1, 7]
        assert session.run("text:0") == b"some words"
    named = signatures_of(definition).named_signatures
    assert named["inputs"].generic_signature.map["x"].tensor_name == "x:0"
    assert named["outputs"].generic_signature.map["y"].tensor_name == "y:0"
    assert sorted(os.listdir(tmp_path / "export")) == ["00000007"]


def test_a_file_has_tensorflows_names_of_what_is_packed(tmp_path: Path) -> None:
    """… so that TensorFlow unpacks it, and memory has ours."""
    path = os.path.join(os.fsdecode(export(tmp_path)), constants.META_GRAPH_DEF_FILENAME)

    data = Path(path).read_bytes()

    for name in (b"tensorflow.serving.Signatures", b"tensorflow.serving.AssetFile", b"tensorflow.GraphDef"):
        assert b"type.googleapis.com/" + name in data
    assert b"type.googleapis.com/tenfold" not in data
    with tf.Graph().as_default():
        tf.train.import_meta_graph(path)
        (packed,) = tf.get_collection(constants.SIGNATURES_KEY)
        assert packed.Unpack(manifest_pb2.Signatures())


def test_a_meta_graph_in_text_keeps_what_is_packed(tmp_path: Path) -> None:
    export(tmp_path)
    path = os.fspath(tmp_path / "graph.pbtxt")

    tf.train.export_meta_graph(path, as_text=True)

    with tf.Graph().as_default():
        tf.train.import_meta_graph(path)
        (packed,) = tf.get_collection(constants.SIGNATURES_KEY)
        assert packed.Unpack(manifest_pb2.Signatures())


def test_the_older_exports_are_not_kept(tmp_path: Path) -> None:
    export(tmp_path, steps=(1, 20, 3, 100), keep=gc.largest_export_versions(2))

    assert sorted(os.listdir(tmp_path / "export")) == ["00000020", "00000100"]


def test_another_graph_is_served_without_devices(tmp_path: Path) -> None:
    path = os.fsdecode(export(tmp_path, init={"clear_devices": True}))

    session, definition = session_bundle.load_session_bundle_from_path(path)

    session.close()
    assert {node.device for node in definition.graph_def.node} == {""}


def test_what_exporter_refuses(tmp_path: Path) -> None:
    export(tmp_path)
    saver = tf.train.Saver()
    made = exporter.Exporter(saver)
    with pytest.raises(RuntimeError, match="init must be called first"):
        made.export(os.fspath(tmp_path), tf.constant(1))
    with pytest.raises(TypeError, match="init_op needs to be an Operation"):
        exporter.Exporter(saver).init(init_op=tf.constant(1))
    made.init()
    with pytest.raises(RuntimeError, match="only once"):
        made.init()
    for wrong, words in (
        ("a", "not a Tensor"),
        (tf.placeholder(tf.string), "Only constants"),
        (tf.constant(1), "string"),
    ):
        with pytest.raises(TypeError, match=words):
            exporter.Exporter(saver).init(assets_collection=[wrong])
    with pytest.raises(TypeError, match="scalar"):
        exporter.Exporter(saver).init(assets_collection=[tf.constant(["a", "b"])])
    with pytest.raises(ValueError, match="invalid asset filepath"):
        exporter.Exporter(saver).init(assets_collection=[tf.constant("")])


def test_an_export_is_never_written_over(tmp_path: Path) -> None:
    export(tmp_path)
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match=r"Duplicate export dir: .*00000007"):
        export(tmp_path)


def test_a_folder_without_an_export(tmp_path: Path) -> None:
    assert not session_bundle.maybe_session_bundle_dir(os.fspath(tmp_path))
    with pytest.raises(RuntimeError, match=r"Expected meta graph file missing .*export\.meta"):
        session_bundle.load_session_bundle_from_path(os.fspath(tmp_path))
    with pytest.raises(RuntimeError, match="SessionBundle or SavedModelBundle not found at specified export location"):
        bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(os.fspath(tmp_path))


@pytest.mark.parametrize("key", [constants.GRAPH_KEY, constants.INIT_OP_KEY])
def test_an_export_with_two_of_what_there_is_one(tmp_path: Path, key: str) -> None:
    path = os.fsdecode(export(tmp_path))
    definition = tf.MetaGraphDef.FromString(Path(path, "export.meta").read_bytes())
    kind = (
        definition.collection_def[key].any_list
        if key == constants.GRAPH_KEY
        else definition.collection_def[key].node_list
    )
    kind.value.append(kind.value[0])

    with pytest.raises(RuntimeError, match="Expected exactly one serving"):
        session_bundle.load_session_bundle_from_path(path, meta_graph_def=definition)


def test_a_model_without_variables(tmp_path: Path) -> None:
    tf.add(tf.placeholder(tf.float32, name="x"), 1.0, name="y")
    tf.train.export_meta_graph(os.fspath(tmp_path / "export.meta"))

    session, _ = session_bundle.load_session_bundle_from_path(os.fspath(tmp_path))

    with session:
        assert session.run("y:0", {"x:0": 5.0}) == 6


def test_an_export_as_a_saved_model(tmp_path: Path) -> None:
    path = os.fsdecode(export(tmp_path))

    session, definition = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(path)

    with session:
        default, named = (
            definition.signature_def["serving_default"],
            definition.signature_def["serving_default_from_named"],
        )
        assert default.method_name == "tensorflow/serving/regress"
        assert (default.inputs["inputs"].name, default.outputs["outputs"].name) == ("x:0", "y:0")
        assert named.method_name == "tensorflow/serving/predict"
        assert session.run(named.outputs["y"].name, {named.inputs["x"].name: [3]}) == [7]


def test_a_classifier_as_a_saved_model(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, name="examples")
    signature = exporter.classification_signature(x, classes_tensor=x, scores_tensor=x)
    path = export(tmp_path, init={"default_graph_signature": signature, "named_graph_signatures": {}})

    session, definition = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(os.fsdecode(path))

    session.close()
    (key,) = definition.signature_def
    found = definition.signature_def[key]
    assert key == "serving_default"
    assert found.method_name == "tensorflow/serving/classify"
    assert {**{k: v.name for k, v in found.inputs.items()}, **{k: v.name for k, v in found.outputs.items()}} == {
        "inputs": "examples:0", "classes": "examples:0", "scores": "examples:0",
    }  # fmt: skip


def test_named_signatures_of_another_kind(tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32)
    signature = exporter.regression_signature(x, x)
    path = export(tmp_path, init={"named_graph_signatures": {"inputs": signature, "outputs": signature}})

    with pytest.raises(RuntimeError, match="only be up-converted if they are generic"):
        bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(os.fsdecode(path))


def test_a_saved_model_is_loaded_too(tmp_path: Path) -> None:
    folder = os.fspath(tmp_path / "model")
    with tf.Session() as session:
        x = tf.placeholder(tf.float32, name="x")
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": tf.negative(x, name="y")})
    tf.reset_default_graph()

    session, _ = bundle_shim.load_session_bundle_or_saved_model_bundle_from_path(folder, ["serve"])

    with session:
        assert session.run("y:0", {"x:0": 3.0}) == -3


PATHS = [gc.Path(f"/e/{version}", version) for version in (0, 1, 3, 10, 11, 12)] + [gc.Path("/e/other", None)]


@pytest.mark.parametrize(
    ("kept", "versions"),
    [
        (gc.largest_export_versions(2), [11, 12]),
        (gc.one_of_every_n_export_versions(3), [0 + 3, 12]),
        (gc.mod_export_version(3), [0, 3, 12]),
        (gc.union(gc.largest_export_versions(1), gc.mod_export_version(10)), [0, 10, 12]),
        (gc.negation(gc.mod_export_version(1)), [None]),
    ],
)
def test_filters(kept: Any, versions: list[int | None]) -> None:
    assert sorted((path.export_version for path in kept(PATHS)), key=str) == sorted(versions, key=str)


def test_paths_are_what_the_parser_makes_of_them(tmp_path: Path) -> None:
    for name in ("1", "2", "three"):
        (tmp_path / name).mkdir()

    def parser(path: gc.Path) -> gc.Path | None:
        name = os.path.basename(path.path)
        return path._replace(export_version=int(name)) if name.isdigit() else None

    assert [path.export_version for path in gc.get_paths(os.fspath(tmp_path), parser)] == [1, 2]
