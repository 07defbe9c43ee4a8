"""Removes and adds the export or import scope in names, for the messages of meta graphs.

Variables, control flow contexts and queue runners write their names without the scope that is exported, and read them
into the scope of the import. Follows TF 1.15's ops.strip_name_scope and ops.prepend_name_scope.
"""

from __future__ import annotations


def strip_scope(name: str, export_scope: str | None) -> str:
    """`name` without the leading `export_scope/`."""
    if not export_scope:
        return name
    scope = export_scope.rstrip("/") + "/"
    return name[len(scope) :] if name.startswith(scope) else name


def prepend_scope(name: str, import_scope: str | None) -> str:
    """`import_scope/name`."""
    return f"{import_scope.rstrip('/')}/{name}" if import_scope else name
