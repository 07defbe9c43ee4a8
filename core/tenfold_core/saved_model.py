"""The files of a SavedModel: reads saved_model.pb or .pbtxt, finds a graph by its tags, its assets and its init op.

Knows messages and files, no graph: the client's loader (client/tenfold/saved_model) and the control service's models
(control_api/models) build on it. Follows TensorFlow 1.15's saved_model/loader_impl.py and its saved_model/README.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tenfold_core import packed
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE
from tenfold_protos import meta_graph_pb2, saved_model_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_protos.meta_graph_pb2 import AssetFileDef, MetaGraphDef
    from tenfold_protos.saved_model_pb2 import SavedModel

SCHEMA_VERSION = 1
FILENAME_PB = "saved_model.pb"
FILENAME_PBTXT = "saved_model.pbtxt"
#: Folder and prefix of the checkpoint with the values of the variables.
VARIABLES_DIRECTORY = VARIABLES_FILENAME = "variables"
ASSETS_DIRECTORY = "assets"
#: Collection of AssetFileDefs, each in an Any.
ASSETS_KEY = "saved_model_assets"
#: Collections with the op to run after the variables are restored; the second is the one of old.
MAIN_OP_KEY = "saved_model_main_op"
LEGACY_INIT_OP_KEY = "legacy_init_op"
#: Signature whose one output is that op, in a SavedModel of TensorFlow 2.
INIT_OP_SIGNATURE_KEY = "__saved_model_init_op"


def read(export_dir: str | bytes | os.PathLike[str]) -> SavedModel:
    """The SavedModel in a folder. Blocks.

    Raises OSError if there is no such file, or it is not a file, the step's error for what the disk says
    (FailedPreconditionError for a folder in the file's place).
    """
    folder = file_path(os.fsdecode(export_dir))
    model = saved_model_pb2.SavedModel()
    path = os.path.join(folder, FILENAME_PB)
    if EVERYWHERE.exists(path):
        with os_errors(path):
            data = EVERYWHERE.read_whole(path)
        try:
            model.ParseFromString(data)
        except DecodeError as error:
            raise OSError(f"Cannot parse file {path}: {error}.") from None
        for graph in model.meta_graphs:
            packed.name_as_ours(graph)
        return model
    path = os.path.join(folder, FILENAME_PBTXT)
    if EVERYWHERE.exists(path):
        with os_errors(path):
            data = EVERYWHERE.read_whole(path)
        try:
            text_format.Merge(data.decode(), model, descriptor_pool=packed.Names())  # type: ignore[arg-type]
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise OSError(f"Cannot parse file {path}: {error}.") from None
        for graph in model.meta_graphs:
            packed.name_as_ours(graph)
        return model
    raise OSError(f"SavedModel file does not exist at: {folder}/{{{FILENAME_PBTXT}|{FILENAME_PB}}}")


def write(export_dir: str, model: SavedModel, as_text: bool = False) -> str:
    """Writes the file of a SavedModel, whole or not at all; its path. Blocks. Raises the step's error of the disk."""
    folder = file_path(export_dir)
    path = os.path.join(folder, FILENAME_PBTXT if as_text else FILENAME_PB)
    with os_errors(folder):
        EVERYWHERE.make_folders(folder)
    named = saved_model_pb2.SavedModel()
    named.CopyFrom(model)
    for graph in named.meta_graphs:
        packed.name_as_tensorflows(graph)
    data = (
        text_format.MessageToString(named, descriptor_pool=packed.Names()).encode()  # type: ignore[arg-type]
        if as_text
        else named.SerializeToString()
    )
    with AtomicFile(path) as out:
        out.write(data)
    return path


def is_saved_model(export_dir: str | bytes | os.PathLike[str]) -> bool:
    """Whether a folder has the file of a SavedModel; whether it can be read is not looked at."""
    folder = file_path(os.fsdecode(export_dir))
    return any(EVERYWHERE.exists(os.path.join(folder, name)) for name in (FILENAME_PB, FILENAME_PBTXT))


def graph_with_tags(model: SavedModel, tags: Iterable[str]) -> MetaGraphDef:
    """The graph that has exactly these tags. Raises RuntimeError that lists the tags that there are."""
    wanted = {tags} if isinstance(tags, str) else set(tags)
    found = [set(graph.meta_info_def.tags) for graph in model.meta_graphs]
    if wanted not in found:
        raise RuntimeError(
            f"MetaGraphDef associated with tags {str(tags).strip('[]')} could not be found in SavedModel. To inspect "
            "available tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli` or "
            f"`tenfold model show`\navailable_tags: {found}"
        )
    return model.meta_graphs[found.index(wanted)]


def variables_path(export_dir: str | bytes | os.PathLike[str]) -> str:
    """The prefix of the model's checkpoint."""
    return os.path.join(os.fsdecode(export_dir), VARIABLES_DIRECTORY, VARIABLES_FILENAME)


def asset_paths(export_dir: str | bytes | os.PathLike[str], graph: MetaGraphDef) -> dict[str, str]:
    """Name of a tensor → path of the file that it is to name once the model is loaded. Names are the saved graph's.

    Raises OSError for assets that cannot be read.
    """
    assets: list[AssetFileDef] = list(graph.asset_file_def)
    if not assets and ASSETS_KEY in graph.collection_def:
        try:
            for each in graph.collection_def[ASSETS_KEY].any_list.value:
                assets.append(meta_graph_pb2.AssetFileDef.FromString(each.value))
        except DecodeError as error:
            where = os.fsdecode(export_dir)
            raise OSError(f"Cannot parse the collection {ASSETS_KEY} of the SavedModel at {where}: {error}.") from None
    folder = os.path.join(os.fsdecode(export_dir), ASSETS_DIRECTORY)
    return {asset.tensor_info.name: os.path.join(folder, asset.filename) for asset in assets}


def init_op_name(graph: MetaGraphDef) -> str | None:
    """The name of the operation to run once the variables are restored. Raises RuntimeError if there are several."""
    if INIT_OP_SIGNATURE_KEY in graph.signature_def:
        return graph.signature_def[INIT_OP_SIGNATURE_KEY].outputs[INIT_OP_SIGNATURE_KEY].name
    for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY):
        if key in graph.collection_def:
            return one_op(graph, key)
    return None


def one_op(graph: MetaGraphDef, key: str) -> str:
    """The one member of a collection of operations. Raises RuntimeError unless it has one."""
    names = graph.collection_def[key].node_list.value
    if len(names) != 1:
        raise RuntimeError(f"Expected exactly one SavedModel init op. Found: {list(names)}")
    return names[0]
