"""Functions of `tensorflow.python.framework.meta_graph` that give or take a scope's variables by name."""

from __future__ import annotations

from typing import Any

from tenfold.graph import GraphKeys, get_default_graph
from tenfold.train import meta_graph


def import_scoped_meta_graph(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Adds a saved graph under `import_scope`; its variables by the names that they were saved with."""
    return meta_graph.import_scoped_meta_graph(*args, **kwargs)[1]


def import_scoped_meta_graph_with_return_elements(*args: Any, **kwargs: Any) -> tuple[dict[str, Any], Any]:
    """The same, and the elements that `return_elements` names."""
    return meta_graph.import_with_elements(*args, **kwargs)[1:]


def export_scoped_meta_graph(filename: str | None = None, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """The graph, or the part under `export_scope`, and its variables by name without the scope."""
    graph = kwargs.get("graph") or get_default_graph()
    scope = kwargs.get("export_scope")
    prefix = f"{scope.rstrip('/')}/" if scope else ""
    keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
    found = [variable for key in keys for variable in graph.get_collection(key) if variable.name.startswith(prefix)]
    definition = meta_graph.export_meta_graph(filename, **kwargs)
    return definition, {variable.name[len(prefix) :]: variable for variable in found}
