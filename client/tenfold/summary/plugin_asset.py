"""Files that a program gives to a plugin of TensorBoard: `get_plugin_asset` and `PluginAsset`.

A graph holds one asset of each plugin; FileWriter writes them beside its events when the graph is added, into
`plugins/NAME/`. Follows TF 1.15's summary/plugin_asset.py.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from tenfold.graph import get_default_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.graph import Graph

#: The folder beside the event files, and the collection of the names of the plugins that a graph has assets of.
PLUGINS_DIR = "plugins"
_NAMES_KEY = "__plugin_assets"


class PluginAsset(ABC):
    """The files of one plugin. A subclass names the plugin in `plugin_name`."""

    plugin_name: str | None = None

    @abstractmethod
    def assets(self) -> Mapping[str, str | bytes]:
        """File name → contents."""


A = TypeVar("A", bound=PluginAsset)


def get_plugin_asset(plugin_asset_cls: type[A], graph: Graph | None = None) -> A:
    """The graph's asset of that class, made at the first call.

    Raises ValueError for a class without a plugin's name, or where another class has an asset of that plugin.
    """
    graph = graph or get_default_graph()
    name = plugin_asset_cls.plugin_name
    if not name:
        raise ValueError(f"Plugin name required for asset class: {plugin_asset_cls}")
    held = graph.get_collection_ref(f"{_NAMES_KEY}_{name}")
    if not held:
        held.append(plugin_asset_cls())
        graph.add_to_collection(_NAMES_KEY, name)
    found = held[0]
    if not isinstance(found, plugin_asset_cls):
        raise ValueError(f"Plugin asset under name {name} already exists and has type {type(found).__name__}")
    return found


def get_all_plugin_assets(graph: Graph | None = None) -> list[PluginAsset]:
    """The assets of a graph (default: the default one)."""
    graph = graph or get_default_graph()
    names = graph.get_collection(_NAMES_KEY)
    return [asset for name in names for asset in graph.get_collection(f"{_NAMES_KEY}_{name}")]


def write_plugin_assets(logdir: str, graph: Graph) -> None:
    """Writes the assets of a graph below `logdir`. Blocks on the disk."""
    from tenfold import gfile

    for asset in get_all_plugin_assets(graph):
        folder = os.path.join(logdir, PLUGINS_DIR, str(asset.plugin_name))
        gfile.MakeDirs(folder)
        for name, contents in asset.assets().items():
            with gfile.GFile(os.path.join(folder, name), "wb" if isinstance(contents, bytes) else "w") as file:
                file.write(contents)
