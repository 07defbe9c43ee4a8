"""The files of a SavedModel, as messages: text and binary, tags, assets of both kinds, the init op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors, saved_model
from tenfold_protos import meta_graph_pb2, saved_model_pb2

if TYPE_CHECKING:
    from pathlib import Path


def model_of(*tag_sets: tuple[str, ...]) -> saved_model_pb2.SavedModel:
    model = saved_model_pb2.SavedModel(saved_model_schema_version=saved_model.SCHEMA_VERSION)
    for tags in tag_sets:
        model.meta_graphs.add().meta_info_def.tags.extend(tags)
    return model


def asset(tensor: str, filename: str) -> meta_graph_pb2.AssetFileDef:
    definition = meta_graph_pb2.AssetFileDef(filename=filename)
    definition.tensor_info.name = tensor
    return definition


@pytest.mark.parametrize("as_text", [False, True])
def test_a_model_is_read_as_it_was_written(tmp_path: Path, as_text: bool) -> None:
    model = model_of(("serve",))
    packed = model.meta_graphs[0].collection_def[saved_model.ASSETS_KEY].any_list.value.add()
    packed.Pack(asset("file:0", "vocabulary"))

    path = saved_model.write(str(tmp_path / "export"), model, as_text)

    assert saved_model.read(tmp_path / "export") == model
    if as_text:
        text = (tmp_path / "export" / "saved_model.pbtxt").read_text()
        assert "[type.googleapis.com/tensorflow.AssetFileDef]" in text
        assert 'filename: "vocabulary"' in text
    else:
        assert path.endswith("saved_model.pb")
        assert b"type.googleapis.com/tensorflow.AssetFileDef" in (tmp_path / "export" / "saved_model.pb").read_bytes()


def test_what_is_no_model_says_so(tmp_path: Path) -> None:
    assert not saved_model.is_saved_model(tmp_path)
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        saved_model.read(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"no message")
    assert saved_model.is_saved_model(tmp_path)
    with pytest.raises(OSError, match="Cannot parse file"):
        saved_model.read(tmp_path)
    (tmp_path / "saved_model.pb").rename(tmp_path / "saved_model.pbtxt")
    with pytest.raises(OSError, match="Cannot parse file"):
        saved_model.read(tmp_path)


@pytest.mark.parametrize("name", ["saved_model.pb", "saved_model.pbtxt"])
def test_a_folder_is_no_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(errors.FailedPreconditionError, match=f"{name}; Is a directory"):
        saved_model.read(tmp_path)


def test_assets_that_are_damaged_name_the_model() -> None:
    graph = meta_graph_pb2.MetaGraphDef()
    graph.collection_def[saved_model.ASSETS_KEY].any_list.value.add(value=b"\x0a\xff")

    with pytest.raises(OSError, match="Cannot parse the collection saved_model_assets of the SavedModel at /m: "):
        saved_model.asset_paths("/m", graph)


def test_a_graph_is_found_by_exactly_its_tags() -> None:
    model = model_of(("serve",), ("serve", "gpu"))

    assert saved_model.graph_with_tags(model, ["gpu", "serve"]) == model.meta_graphs[1]
    assert saved_model.graph_with_tags(model, "serve") == model.meta_graphs[0]
    with pytest.raises(RuntimeError, match="available_tags"):
        saved_model.graph_with_tags(model, ["gpu"])


def test_assets_are_listed_by_the_graph_or_by_its_collection() -> None:
    graph = meta_graph_pb2.MetaGraphDef()
    graph.collection_def[saved_model.ASSETS_KEY].any_list.value.add().Pack(asset("a:0", "one"))

    assert saved_model.asset_paths("/m", graph) == {"a:0": "/m/assets/one"}

    graph.asset_file_def.append(asset("b:0", "two"))

    assert saved_model.asset_paths("/m", graph) == {"b:0": "/m/assets/two"}


def test_the_init_op_is_that_of_the_signature_else_of_a_collection() -> None:
    graph = meta_graph_pb2.MetaGraphDef()
    assert saved_model.init_op_name(graph) is None

    graph.collection_def[saved_model.LEGACY_INIT_OP_KEY].node_list.value.append("old")
    assert saved_model.init_op_name(graph) == "old"
    graph.collection_def[saved_model.MAIN_OP_KEY].node_list.value.append("main")
    assert saved_model.init_op_name(graph) == "main"
    key = saved_model.INIT_OP_SIGNATURE_KEY
    graph.signature_def[key].outputs[key].name = "init"
    assert saved_model.init_op_name(graph) == "init"

    del graph.signature_def[key]
    graph.collection_def[saved_model.MAIN_OP_KEY].node_list.value.append("second")
    with pytest.raises(RuntimeError, match="exactly one SavedModel init op"):
        saved_model.init_op_name(graph)
