"""The names that imported nodes get: their own under the prefix, made unique where the graph has them already.

Used by importer.py. A name is taken by a node of the graph, or by the scope that one lies in; `_1`, `_2`, … is added
until it is free, and is not a name of the import itself. Case counts here, unlike in names that a program asks for.
Follows TensorFlow's graph_constructor.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def free_names(names: Collection[str], scope: str, existing: Collection[str]) -> dict[str, str]:
    """Name in the GraphDef → name in the graph, which has nodes of the names `existing`. `scope` ends with "/"."""
    full = {name: scope + name for name in names}
    if not existing:
        return full
    scopes = _scopes(existing)
    own = set(full.values())
    own_scopes: set[str] | None = None
    for name, wanted in full.items():
        if wanted not in existing and wanted not in scopes:
            continue
        if own_scopes is None:
            own_scopes = _scopes(own)
        number, found = 0, wanted
        while found in existing or found in scopes or (number and (found in own or found in own_scopes)):
            number += 1
            found = f"{wanted}_{number}"
        full[name] = found
    return full


def _scopes(names: Iterable[str]) -> set[str]:
    """The scopes that lie around nodes of these names: "a" and "a/b" of "a/b/c"."""
    found: set[str] = set()
    for name in names:
        scope = name.rpartition("/")[0]
        while scope and scope not in found:
            found.add(scope)
            scope = scope.rpartition("/")[0]
    return found
