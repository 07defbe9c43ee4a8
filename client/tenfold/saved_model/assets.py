"""Which files go with a SavedModel: string constants of the graph that hold paths become names in the folder assets.

Used by builder_impl.py. Follows TF 1.15's saved_model/builder_impl.py: two files of one name get different ones,
unless the second equals the first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold import gfile, logging
from tenfold.graph.tensor import Tensor
from tenfold_core import dtypes
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE
from tenfold_core.saved_model import ASSETS_DIRECTORY
from tenfold_protos import meta_graph_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_protos.meta_graph_pb2 import AssetFileDef

#: An asset: its constant, the name that its file gets, the path of the file now.
Asset = tuple[Tensor, str, str]


def named(tensors: Sequence[Any] | None) -> list[Asset]:
    """The assets that these constants stand for.

    Raises TypeError for what is no string constant of one element, ValueError for an empty path, NotFoundError for a
    file that is not there and has the name of another.
    """
    if tensors is None:
        logging.info("No assets to save.")
        return []
    paths: dict[str, str] = {}
    found: list[Asset] = []
    for tensor in tensors:
        path = path_of(tensor)
        if not path:
            raise ValueError(f"Invalid asset filepath tensor {tensor}")
        name = filename_to_add(path, paths)
        paths[name] = path
        found.append((tensor, name, path))
    return found


def path_of(tensor: Any) -> str:
    """The path that a constant holds. Raises TypeError."""
    if not isinstance(tensor, Tensor):
        raise TypeError("Asset path tensor must be a Tensor.")
    if tensor.op.type != "Const":
        raise TypeError("Asset path tensor must be of type constant.")
    if tensor.dtype != dtypes.string:
        raise TypeError("Asset path tensor must be of dtype string.")
    values = tensor.op.get_attr("value").string_val
    if len(values) != 1:
        raise TypeError("Asset path tensor must be a scalar.")
    return os.fsdecode(values[0])


def filename_to_add(path: str, paths: dict[str, str]) -> str:
    """The name for a file among those that are there (name → path): with a number behind it if another file has it."""
    name = os.path.basename(path)
    other = paths.get(name)
    if other is None or other == path:
        return name
    with os_errors(path):
        if EVERYWHERE.same(file_path(path), file_path(other)):
            return name
    unique, number = name, 1
    while unique in paths:
        unique, number = f"{name}_{number}", number + 1
    return unique


def asset_file_def(tensor: Tensor, name: str) -> AssetFileDef:
    """The message that joins a constant and its file."""
    definition = meta_graph_pb2.AssetFileDef(filename=name)
    definition.tensor_info.name = tensor.name
    return definition


def copy(named_assets: Sequence[Asset], export_dir: str) -> None:
    """Copies the files into the folder assets; one that is there stays. Raises NotFoundError for one that is not."""
    if not named_assets:
        logging.info("No assets to write.")
        return
    folder = os.path.join(export_dir, ASSETS_DIRECTORY)
    gfile.MakeDirs(folder)
    for _, name, path in named_assets:
        target = os.path.join(folder, name)
        if not gfile.Exists(target):
            gfile.Copy(path, target)
    logging.info("Assets written to: %s", folder)
