"""Writing a SavedModel and loading it again: variables, assets, init ops, signatures, tags, scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.saved_model import assets, builder_impl, loader_impl
from tenfold_core import saved_model as files

if TYPE_CHECKING:
    from pathlib import Path


def saved(folder: Path, **arguments: Any) -> str:
    """A model with y = 3 x at `folder`, tagged "serve", signature "serving_default"."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        weight = tf.get_variable("weight", initializer=3.0)
        y = tf.multiply(x, weight, name="y")
        session.run(tf.global_variables_initializer())
        signature = tf.saved_model.predict_signature_def({"x": x}, {"y": y})
        builder = tf.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, **arguments)
        builder.save()
    return str(folder)


@pytest.mark.parametrize("scope", [None, "scope"])
def test_a_loaded_model_computes_as_the_saved_one(tmp_path: Path, scope: str | None) -> None:
    export_dir = saved(tmp_path / "export")
    assert sorted(path.name for path in (tmp_path / "export" / "variables").iterdir()) == [
        "variables.data-00000-of-00001",
        "variables.index",
    ]

    with tf.Graph().as_default(), tf.Session() as session:
        graph = tf.saved_model.load(session, ["serve"], export_dir, import_scope=scope)
        signature = graph.signature_def["serving_default"]
        x, y = (
            tf.saved_model.get_tensor_from_tensor_info(info, import_scope=scope)
            for info in (signature.inputs["x"], signature.outputs["y"])
        )

        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [3.0, 6.0]
        assert x.name == (f"{scope}/x:0" if scope else "x:0")
        assert tf.saved_model.is_valid_signature(signature)


def test_assets_and_the_main_op_come_with_the_model(tmp_path: Path) -> None:
    for folder, words in (("a", "one\ntwo\n"), ("b", "three\n"), ("c", "one\ntwo\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.txt").write_text(words)
    with tf.Graph().as_default(), tf.Session() as session:
        keys = tf.placeholder(tf.string, [None], name="keys")
        tables = [
            tf.contrib.lookup.index_table_from_file(str(tmp_path / folder / "words.txt")) for folder in ("a", "b", "c")
        ]
        found = [table.lookup(keys) for table in tables]
        tf.saved_model.simple_save(
            session,
            str(tmp_path / "export"),
            {"keys": keys},
            {f"ids{index}": ids for index, ids in enumerate(found)},
            legacy_init_op=tf.tables_initializer(),
        )
    for folder in ("a", "b", "c"):
        (tmp_path / folder / "words.txt").unlink()
    # the second of one name has another one, the third is the first
    assert sorted(path.name for path in (tmp_path / "export" / "assets").iterdir()) == ["words.txt", "words.txt_1"]

    with tf.Graph().as_default(), tf.Session() as session:
        graph = tf.saved_model.loader.load(session, [tf.saved_model.tag_constants.SERVING], str(tmp_path / "export"))
        outputs = graph.signature_def["serving_default"].outputs
        ids = session.run([outputs[f"ids{index}"].name for index in range(3)], {"keys:0": ["two", "three"]})

    assert [each.tolist() for each in ids] == [[1, -1], [-1, 0], [1, -1]]


def test_further_graphs_share_the_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=7)
        session.run(tf.global_variables_initializer())
        builder = builder_impl.SavedModelBuilder(str(tmp_path / "export"))
        with pytest.raises(AssertionError, match="has not been saved yet"):
            builder.add_meta_graph(["early"])
        builder.add_meta_graph_and_variables(session, ["train"])
        with pytest.raises(AssertionError, match="has already been saved"):
            builder.add_meta_graph_and_variables(session, ["again"])
    with tf.Graph().as_default():
        tf.identity(tf.get_variable("v", initializer=0) + 1, name="next")
        builder.add_meta_graph(["serve", "gpu"])
        builder.save(as_text=True)

    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["gpu", "serve"], str(tmp_path / "export"))
        assert session.run("next:0") == 8
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(RuntimeError, match="available_tags"):
        tf.saved_model.load(session, ["serve"], str(tmp_path / "export"))


def test_the_builder_of_signatures_keeps_init_and_train_op_there(tmp_path: Path) -> None:
    (tmp_path / "asset").write_text("content")
    with tf.Graph().as_default(), tf.Session() as session:
        counter = tf.get_variable("counter", initializer=1)
        path = tf.constant(str(tmp_path / "asset"), name="path")
        tf.read_file(path, name="content")
        increment = tf.assign_add(counter, 1)
        session.run(tf.global_variables_initializer())
        builder = builder_impl._SavedModelBuilder(str(tmp_path / "export"))
        builder.add_meta_graph_and_variables(
            session, ["serve"], assets_list=[path], init_op=increment, train_op=tf.group(increment, name="train")
        )
        builder.save()

    with tf.Graph().as_default(), tf.Session() as session:
        loader = loader_impl.SavedModelLoader(str(tmp_path / "export"))
        graph = loader.load(session, ["serve"])
        assert session.run("counter:0") == 2
        session.run(loader_impl.get_train_op(graph))
        assert session.run("counter:0") == 3
        assert loader_impl.get_asset_tensors("/m", graph) == {"path:0": b"/m/assets/asset"}


def test_default_attributes_and_devices_are_left_out_on_demand(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/cpu:0"):
            tf.placeholder(tf.float32, name="x")
        builder = tf.saved_model.Builder(str(tmp_path / "export"))
        builder.add_meta_graph_and_variables(session, ["whole"])
        builder.add_meta_graph(["bare"], clear_devices=True, strip_default_attrs=True)
        builder.save()

    model = files.read(tmp_path / "export")
    whole, bare = (files.graph_with_tags(model, [tag]).graph_def.node[0] for tag in ("whole", "bare"))

    assert whole.device
    assert "shape" in whole.attr
    assert not bare.device
    assert "shape" not in bare.attr


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    export_dir = saved(tmp_path / "export")
    with pytest.raises(AssertionError, match="isn't empty"):
        tf.saved_model.Builder(export_dir)
    number = [0]

    def refused(error: type[Exception], match: str, **arguments: Any) -> None:
        number[0] += 1
        builder = tf.saved_model.Builder(str(tmp_path / str(number[0])))
        with pytest.raises(error, match=match):
            builder.add_meta_graph_and_variables(session, ["serve"], **arguments)

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, name="x")
        info = tf.saved_model.build_tensor_info(x)
        nameless, typeless = type(info)(dtype=info.dtype), type(info)(name="x:0")
        for bad, match in ((nameless, "'encoding' fields"), (typeless, "dtype field set")):
            signature = tf.saved_model.build_signature_def({"x": bad}, {"x": info}, "m")
            refused(AssertionError, match, signature_def_map={"s": signature})
        signature = tf.saved_model.build_signature_def({"x": info}, {"x": info}, "m")
        refused(KeyError, "reserved for initialization", signature_def_map={"__saved_model_init_op": signature})
        refused(KeyError, "reserved for the train op", signature_def_map={"__saved_model_train_op": signature})
        refused(TypeError, "must be of type constant", assets_collection=[x])
        refused(TypeError, "must be a Tensor", assets_collection=["file"])
        refused(TypeError, "dtype string", assets_collection=[tf.constant(1)])
        refused(TypeError, "must be a scalar", assets_collection=[tf.constant(["a", "b"])])
        refused(ValueError, "Invalid asset filepath", assets_collection=[tf.constant("")])
        refused(tf.errors.NotFoundError, "absent", assets_collection=[tf.constant("/absent")])
        refused(TypeError, "needs to be an Operation", main_op=tf.constant(1))
        tf.add_to_collection("legacy_init_op", tf.no_op())
        refused(ValueError, "already contains one or more main ops", main_op=tf.no_op())


def test_names_of_assets(tmp_path: Path) -> None:
    for folder, content in (("a", "1"), ("b", "2"), ("c", "1")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(content)
    a, b, c = (str(tmp_path / folder / "f") for folder in "abc")

    assert assets.filename_to_add(a, {}) == "f"
    assert assets.filename_to_add(a, {"f": a}) == "f"
    assert assets.filename_to_add(c, {"f": a}) == "f"
    assert assets.filename_to_add(b, {"f": a}) == "f_1"
    assert assets.filename_to_add(b, {"f": a, "f_1": b}) == "f_2"


def test_names_of_version_2_say_what_to_use() -> None:
    for name, instead in (("save", "simple_save"), ("load_v2", "load"), ("experimental", "Builder")):
        with pytest.raises(AttributeError, match=instead):
            getattr(tf.saved_model, name)
    with pytest.raises(AttributeError, match="nothing"):
        _ = tf.saved_model.nothing
    assert tf.saved_model.signature_constants.CLASSIFY_INPUTS == tf.saved_model.CLASSIFY_INPUTS
    assert all(hasattr(tf.saved_model, name) for name in dir(tf.saved_model))
