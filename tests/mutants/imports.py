"""Which modules a module imports when it is imported itself: what a warm process may hold before a file is changed."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from support.mirror import ROOT, modules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _run_at_import(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _run_at_import(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _run_at_import(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from _run_at_import(handler.body)


def _known(dotted: str) -> set[str]:
    """The modules of ours that the import of `dotted` runs: itself and the packages around it."""
    parts = dotted.split(".")
    return {name for size in range(1, len(parts) + 1) if (name := ".".join(parts[:size])) in modules()}


def imports_of(path: Path, package: str) -> set[str]:
    """The modules of ours that a file, whose package is `package`, imports while it is imported."""
    found: set[str] = set()
    for node in _run_at_import(ast.parse((ROOT / path).read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            found |= _known(name)
    return found


@functools.cache
def graph() -> dict[str, set[str]]:
    """Module → what it imports when it is imported."""
    found = {}
    for name, path in modules().items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        found[name] = (imports_of(path, package) | _known(package)) - {name}
    return found


def closure(names: set[str]) -> set[str]:
    """These modules and all that they import."""
    found, waiting = set(names), list(names)
    while waiting:
        for name in graph()[waiting.pop()]:
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def may_be_warm(module: str, tests: list[str]) -> list[str]:
    """What the tests import and what does not import `module`, nor has it as its package."""
    wanted: set[str] = set()
    for test in tests:
        wanted |= imports_of(ROOT / test.partition("::")[0], "")
    return sorted(name for name in closure(wanted) if module not in closure({name}))
