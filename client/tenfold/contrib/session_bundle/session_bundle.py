"""Loads what exporter.py or TensorFlow 0.x exported into a new session. As 1.15's session_bundle/session_bundle.py."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold import gfile
from tenfold.contrib.framework.deprecation import deprecated
from tenfold.contrib.session_bundle import constants
from tenfold.graph import get_collection, reset_default_graph
from tenfold.session.session import Session
from tenfold.train import meta_graph
from tenfold.train.saver import import_meta_graph
from tenfold_core import packed
from tenfold_protos import graph_pb2, manifest_pb2, meta_graph_pb2

if TYPE_CHECKING:
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef

__all__ = ["load_session_bundle_from_path", "maybe_session_bundle_dir"]

_deprecated = deprecated("2017-06-30", "No longer supported. Switch to SavedModel immediately.")


@_deprecated
def maybe_session_bundle_dir(export_dir: str) -> bool:
    """Whether the folder has the file of an export; whether it can be loaded is not looked at."""
    return gfile.Exists(os.path.join(os.fsdecode(export_dir), constants.META_GRAPH_DEF_FILENAME))


@_deprecated
def load_session_bundle_from_path(
    export_dir: str, target: str = "", config: ConfigProto | None = None, meta_graph_def: MetaGraphDef | None = None
) -> tuple[Session, MetaGraphDef]:
    """A session with the model, in a new default graph, and the meta graph, by default that of the folder. Blocks.

    Variables are restored, and the init op is run, with the paths of assets fed to the constants that name them. Raises
    RuntimeError if the meta graph's file is missing, or has several graphs to serve or several init ops, OSError if it
    cannot be read.
    """
    folder = os.fsdecode(export_dir)
    if meta_graph_def is None:
        path = os.path.join(folder, constants.META_GRAPH_DEF_FILENAME)
        if not gfile.Exists(path):
            raise RuntimeError(f"Expected meta graph file missing {path}")
        definition = meta_graph.read_meta_graph_file(path)
    else:
        definition = meta_graph_pb2.MetaGraphDef()
        definition.CopyFrom(meta_graph_def)
        packed.name_as_ours(definition)
    collections = definition.collection_def
    if constants.GRAPH_KEY in collections:
        served = collections[constants.GRAPH_KEY].any_list.value
        if len(served) != 1:
            raise RuntimeError(f"Expected exactly one serving GraphDef in : {definition}")
        graph = graph_pb2.GraphDef()
        served[0].Unpack(graph)
        definition.graph_def.CopyFrom(graph)
    reset_default_graph()
    session = Session(target, config=config)
    saver = import_meta_graph(definition)
    variables = _variables(folder)
    if saver is not None and variables:
        saver.restore(session, os.path.join(folder, variables))
    if constants.INIT_OP_KEY in collections:
        if len(collections[constants.INIT_OP_KEY].node_list.value) != 1:
            raise RuntimeError(f"Expected exactly one serving init op in : {definition}")
        session.run([get_collection(constants.INIT_OP_KEY)[0]], _assets(folder, definition))
    return session, definition


def _variables(folder: str) -> str:
    """The name to restore by; empty without a checkpoint."""
    if gfile.Exists(os.path.join(folder, constants.VARIABLES_INDEX_FILENAME_V2)):
        shards = gfile.Glob(os.path.join(folder, constants.VARIABLES_FILENAME_PATTERN_V2))
        return constants.VARIABLES_FILENAME if shards else ""
    if gfile.Exists(os.path.join(folder, constants.VARIABLES_FILENAME)):
        return constants.VARIABLES_FILENAME
    pattern = constants.VARIABLES_FILENAME_PATTERN
    return pattern if gfile.Glob(os.path.join(folder, pattern)) else ""


def _assets(folder: str, definition: MetaGraphDef) -> dict[str, Any]:
    """Name of a constant → path of the file that it is to name."""
    found: dict[str, Any] = {}
    if constants.ASSETS_KEY in definition.collection_def:
        for each in definition.collection_def[constants.ASSETS_KEY].any_list.value:
            asset = manifest_pb2.AssetFile()
            each.Unpack(asset)
            path = os.path.join(folder, constants.ASSETS_DIRECTORY, asset.filename)
            found[asset.tensor_binding.tensor_name] = path
    return found
