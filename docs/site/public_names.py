"""The public names of a namespace, as directives of mkdocstrings: where each is defined, and its other names.

The names are those of the stubs that `make stubs` writes, or of the imports of an `__init__.py`; no list is kept here.
hooks.py puts the directives in place of the line `<!-- public names: tf.train, client/tenfold/train/__init__.pyi -->`.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

MARKER = re.compile(
    r"^<!-- public names: (?P<prefix>[\w.]+), (?P<file>\S+)(?: from (?P<homes>\S+))? -->$", re.MULTILINE
)
#: A wrapper that passes everything on → the function that has the arguments' names and the text.
_BEHIND = {("tenfold.gradients", "gradients"): ("tenfold.gradients.walker", "gradients")}
#: Modules whose names have no docstring in source: messages of protos/, dtypes, functions made of op definitions.
WITHOUT_TEXT = (
    "tenfold",
    "tenfold.namespace_types",
    "tenfold.ops.deprecated_names",
    "tenfold.ops.generated_ops",
    "tenfold_core.dtypes",
    "tenfold_protos",
)
_BARE = (
    "Namespaces, dtypes, messages of the wire, names deprecated before TensorFlow 1.0, and functions that are exactly "
    "one operation:"
)


def imported(source: str) -> dict[str, tuple[str, str]]:
    """Public name → (module, name there) of each `from … import …` at the top of that Python text."""
    found: dict[str, tuple[str, str]] = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom) and statement.module and statement.module != "__future__":
            for each in statement.names:
                found[each.asname or each.name] = (statement.module, each.name)
    return {name: home for name, home in sorted(found.items()) if not name.startswith("_")}


def source_of(module: str, root: Path) -> Path | None:
    """The file of a module of this repository; None if it is no module, or a package of stubs only."""
    folder = {"tenfold": "client"}.get(module.partition(".")[0], module.partition(".")[0].removeprefix("tenfold_"))
    path = root / folder / Path(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


@cache
def _parsed(source: Path) -> ast.Module:
    """A file is asked for once per name that it defines."""
    return ast.parse(source.read_text(encoding="utf-8"))


def definition(module: str, name: str, root: Path) -> tuple[str, str] | None:
    """Where the source defines what `module` has under `name`, through imports, late ones too; None if nowhere."""
    source = source_of(module, root)
    if (module, name) in _BEHIND:
        return _BEHIND[module, name]
    if source is None:
        return None
    tree = _parsed(source)
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name == name:
            return module, name
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            return module, name
    for node in ast.walk(tree):  # top imports first: ast.walk goes by levels
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                if (each.asname or each.name) == name:
                    return definition(node.module, each.name, root)
    return _imported_late(tree, name, root)


def _imported_late(tree: ast.Module, name: str, root: Path) -> tuple[str, str] | None:
    """Through `__getattr__`, which imports the modules in which a name may be."""
    for late in tree.body:
        if isinstance(late, ast.FunctionDef) and late.name == "__getattr__":
            modules = [node for node in ast.walk(late) if isinstance(node, ast.ImportFrom)]
            for inside in (f"{node.module}.{each.name}" for node in modules for each in node.names):
                if source_of(inside, root) and (found := definition(inside, name, root)):
                    return found
    return None


def directives(prefix: str, source: str, homes: str, root: Path) -> str:
    """Markdown: one directive for each object, a list of the names without text of their own at the end.

    `homes`, patterns of modules joined by `|`, keeps the names of those modules only. Raises LookupError for a name
    that should have text and whose definition was not found.
    """
    names = imported(source)
    if homes:
        names = {name: home for name, home in names.items() if re.fullmatch(homes, home[0])}
    for name, (module, original) in names.items():
        if not _without_text(module, original, root):
            if (found := definition(module, original, root)) is None:
                raise LookupError(f"{prefix}.{name}: no definition of {module}.{original} was found in the source")
            names[name] = found
    bare = [name for name, (module, original) in names.items() if _without_text(module, original, root)]
    by_object: dict[tuple[str, str], list[str]] = {}
    for name, home in names.items():
        if name not in bare:
            by_object.setdefault(home, []).append(name)
    lines: list[str] = []
    for (module, original), known_as in by_object.items():
        first, *others = sorted(known_as, key=lambda name: (name != original, name))
        lines += [f"::: {module}.{original}", "    options:", f"      heading: {prefix}.{first}", ""]
        if others:
            lines += [f"Also {', '.join(f'`{prefix}.{name}`' for name in others)}.", ""]
    if bare:
        lines += ["## Names without a text of their own", "", _BARE, ""]
        lines += [", ".join(f"`{prefix}.{name}`" for name in bare) + ".", ""]
    return "\n".join(lines)


def _without_text(module: str, original: str, root: Path) -> bool:
    """A message, a dtype, an operation, or a namespace, which is a module."""
    if module in WITHOUT_TEXT or module.startswith(("tenfold_protos.", "tenfold.namespace_types.")):
        return True
    return (
        source_of(f"{module}.{original}", root) is not None
        and original[0].islower()
        and not _has(module, original, root)
    )


def _has(module: str, name: str, root: Path) -> bool:
    return definition(module, name, root) is not None


def filled(text: str, root: Path) -> str:
    """The page with its markers replaced. Raises FileNotFoundError if a marker names a file that is not there."""

    def names(found: re.Match[str]) -> str:
        source = (root / found["file"]).read_text(encoding="utf-8")
        return directives(found["prefix"], source, found["homes"] or "", root)

    return MARKER.sub(names, text)
