#!/usr/bin/env python3
"""Which tests cover a module: `make tests-of MODULE=services/tenfold_services/worker/loaded_program.py`.

Nearest first: the test file at the module's own place, the test of its package, family or topic, files that name it
(those that name it most often before others), and files that reach it through a helper of tests/. A module that no
test reaches in one of these ways, which `--uncovered` lists, gets the tests of the nearest modules that use it. What a
test names is read from its syntax tree; `tf.train.Saver` counts for the module that Saver comes from.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from support.mirror import PACKAGES, ROOT, family_tests, files_of_tests, mirrored, modules, topics_of

#: A project's module inside a string: a program that a test starts, a place that it patches.
IN_STRINGS = re.compile(rf"\b(?:{'|'.join(PACKAGES.values())})(?:\.\w+)+")


@dataclass(frozen=True, order=True)
class Cover:
    """One test file's way to a module; less is nearer."""

    rank: int
    #: How often the file names the module, negated: more is nearer.
    uses: int
    test: str
    how: str


@functools.cache
def homes(dotted: str) -> tuple[str, ...]:
    """The modules that `dotted` names: the longest one in it, and the one where the thing behind it was made."""
    known, parts = modules(), dotted.split(".")
    size = max((n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in known), default=0)
    if not size:
        return ()
    module = ".".join(parts[:size])
    found = {module}
    try:
        value: object = importlib.import_module(module)
    except ImportError:
        # kernels of a GPU, on a machine without the packages for one
        return (module,)
    for name in parts[size:]:
        if not isinstance(value, ModuleType):
            break
        value = getattr(value, name, None)
        made = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if made in known:
            found.add(made)
    return tuple(found)


def uses(path: Path) -> Counter[str]:
    """Which modules of the project, and helpers of tests/, a file names, and how often."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    bound: dict[str, str] = {}
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                found.update(named(alias.name, path))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = path.parts if path.parts[0] == "tests" else path.parts[1:]
                base = ".".join([*package[: -node.level], *([base] if base else [])])
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{base}.{alias.name}"
                found.update(named(f"{base}.{alias.name}", path))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for match in IN_STRINGS.finditer(node.value):
                found.update(homes(match[0]))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in inner:
            names: list[str] = []
            while isinstance(node, ast.Attribute):
                names.append(node.attr)
                node = node.value
            if isinstance(node, ast.Name) and node.id in bound:
                found.update(named(".".join([bound[node.id], *reversed(names)]), path))
    return found


def named(dotted: str, path: Path) -> tuple[str, ...]:
    """The project's modules behind an import, or the helper of tests/ as its path."""
    if dotted.split(".")[0] in PACKAGES.values():
        return homes(dotted)
    below = dotted.removeprefix("tests.").split(".")
    for size in range(len(below), 0, -1):
        helper = Path("tests", *below[:size]).with_suffix(".py")
        if helper != path and (ROOT / helper).is_file():
            return (str(helper),)
    return ()


@functools.cache
def uses_of_all() -> dict[Path, Counter[str]]:
    """What every file of tests/ names. A test also names what the conftest.py files above it name, as helpers."""
    return {path.relative_to(ROOT): uses(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("*.py"))}


def helpers(test: Path) -> list[Path]:
    """The helpers that a test file imports, what those import, and the conftest.py files that it sees."""
    every = uses_of_all()
    found = [folder / "conftest.py" for folder in test.parents if folder / "conftest.py" in every]
    waiting = [test]
    while waiting:
        for name in every[waiting.pop()]:
            if name.endswith(".py") and Path(name) not in found:
                found.append(Path(name))
                waiting.append(Path(name))
    return found


def covers(name: str, path: Path) -> list[Cover]:
    """The test files that cover the module, nearest first."""
    found = []
    for test in files_of_tests():
        times = uses_of_all()[test][name]
        if mirrored(test) == path:
            found.append(Cover(0, -times, str(test), "its own test"))
        elif test in topics_of(path):
            found.append(Cover(1, -times, str(test), "its topic"))
        elif test in family_tests(path):
            found.append(Cover(1, -times, str(test), "its family"))
        elif mirrored(test) == path.with_name("__init__.py"):
            found.append(Cover(1, -times, str(test), "its package's test"))
        elif times:
            found.append(Cover(2, -times, str(test), f"names it {times} times"))
        elif through := [helper for helper in helpers(test) if uses_of_all()[helper][name]]:
            found.append(Cover(3, 0, str(test), f"through {through[0]}"))
    return sorted(found)


@functools.cache
def importers() -> dict[str, list[str]]:
    """Module → the modules that name it."""
    found: dict[str, list[str]] = {}
    for name, path in modules().items():
        for used in uses(path):
            found.setdefault(used, []).append(name)
    return found


def covers_through_modules(name: str) -> list[Cover]:
    """The test files of the nearest modules that use the module: for what has no test of its own."""
    seen, level = {name}, [name]
    while level:
        level = sorted({user for used in level for user in importers().get(used, []) if user not in seen})
        seen.update(level)
        near = [
            Cover(4, cover.rank, cover.test, f"through {modules()[user]}")
            for user in level
            for cover in covers(user, modules()[user])
        ]
        if near:
            return sorted({cover.test: cover for cover in sorted(near, reverse=True)}.values())
    return []


def wanted(text: str) -> tuple[str, Path]:
    """The module that the user means: a path, the end of a path, or a dotted name."""
    known = modules()
    if text in known:
        return text, known[text]
    ending = Path(text).parts
    found = [(name, path) for name, path in known.items() if path.parts[-len(ending) :] == ending]
    if len(found) != 1:
        sys.exit(f"{text!r} is {'no module' if not found else 'one of ' + ', '.join(str(path) for _, path in found)}")
    return found[0]


def uncovered() -> list[Path]:
    """Modules with more in them than a text that no test reaches."""
    full = {
        name: path
        for name, path in modules().items()
        if any(not isinstance(node, ast.Expr) for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body)
    }
    return [path for name, path in full.items() if not covers(name, path)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints which test files cover a module, nearest first.")
    parser.add_argument("module", nargs="?", help="worker/loaded_program.py or tenfold_services.worker.loaded_program")
    parser.add_argument("--uncovered", action="store_true", help="list the modules that no test reaches")
    arguments = parser.parse_args()
    if arguments.uncovered:
        print(*uncovered(), sep="\n")
    elif not arguments.module:
        parser.error("name a module: make tests-of MODULE=worker/loaded_program.py")
    else:
        name, path = wanted(arguments.module)
        found = covers(name, path) or covers_through_modules(name)
        width = max((len(cover.test) for cover in found), default=0)
        print(*(f"{cover.test:{width}}  {cover.how}" for cover in found) if found else ["no test"], sep="\n")


if __name__ == "__main__":
    main()
