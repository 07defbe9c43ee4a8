"""Which names of TensorFlow's do other people's files use that Tenfold lacks?

    python tests/interop/others/scan.py DIR [--most 40] [--files]

DIR is a folder of checkouts. Each Python file that imports TensorFlow is read, never run: its imports and the
attributes of what they bind, `tf.train.Server` and the like. A file counts as whole if Tenfold has every one. With the
environment of TensorFlow 1.15 that `make tf-env` builds, files with a name that 1.15 lacks (those of TensorFlow 2, and
of before 1.0) are left out. run.py beside it runs programs.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType

from tenfold.compat import as_tensorflow

sys.path.insert(0, str(Path(__file__).parents[1]))

from environments import interpreter_path

#: Prints which of the names that it reads TensorFlow lacks; runs in TensorFlow's interpreter.
_IN_TENSORFLOW = """
import importlib, json, sys, types, warnings
warnings.simplefilter("ignore")
lacking = []
for name in json.load(sys.stdin):
    found, path = None, ""
    for part in name.split("."):
        path += ("." if path else "") + part
        if found is not None and not isinstance(found, types.ModuleType) and not hasattr(found, "_tfmw_wrapped_module"):
            break
        try:
            found = importlib.import_module(part) if found is None else getattr(found, part)
        except Exception:
            try:
                found = importlib.import_module(path)
            except Exception:
                lacking.append(name)
                break
print(json.dumps(lacking))
"""

_IMPORT = re.compile(r"^\s*import\s+(tensorflow[\w.]*)(?:\s+as\s+(\w+))?\s*$", re.M)
_FROM = re.compile(r"^\s*from\s+(tensorflow[\w.]*)\s+import\s+\(?([\w ,]+)", re.M)


def names_in(text: str) -> set[str]:
    """The dotted names under `tensorflow` that a file uses. Python 2's syntax is read by pattern."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return _names_by_pattern(text)
    bound: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "tensorflow":
                    found.add(alias.name)
                    bound[alias.asname or "tensorflow"] = alias.name if alias.asname else "tensorflow"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tensorflow" and not node.level:
            for alias in node.names:
                name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
                found.add(str(name))
                bound[alias.asname or alias.name] = str(name)
    for node in ast.walk(tree):
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if parts and isinstance(inner, ast.Name) and inner.id in bound:
            found.add(".".join([bound[inner.id], *reversed(parts)]))
    return found


def _names_by_pattern(text: str) -> set[str]:
    bound: dict[str, str] = {}
    found: set[str] = set()
    for name, alias in _IMPORT.findall(text):
        bound[alias or "tensorflow"] = name if alias else "tensorflow"
        found.add(name)
    for module, names in _FROM.findall(text):
        for each in names.split(","):
            name, _, alias = each.strip().partition(" as ")
            if name:
                bound[alias.strip() or name] = f"{module}.{name}"
                found.add(f"{module}.{name}")
    for alias, name in bound.items():
        found.update(name + rest for rest in re.findall(rf"(?<![\w.]){re.escape(alias)}((?:\.\w+)+)", text))
    return found


class Names:
    """What Tenfold answers for `tensorflow…`; each name is looked up once."""

    def __init__(self) -> None:
        as_tensorflow.install()
        self._known: dict[str, str | None] = {}

    def missing(self, name: str) -> str | None:
        """The shortest beginning of `name` that Tenfold lacks; None if it has all of it."""
        if name not in self._known:
            self._known[name] = self._look_up(name)
        return self._known[name]

    @staticmethod
    def _look_up(name: str) -> str | None:
        first, *parts = name.split(".")
        found = importlib.import_module(first)
        path = first
        for part in parts:
            if not isinstance(found, ModuleType):
                return None  # an attribute of a class or of a value
            path += f".{part}"
            try:
                found = getattr(found, part)
            except (AttributeError, ImportError):
                try:
                    found = importlib.import_module(path)
                except ImportError:
                    return path
            if getattr(found, "left_out", None):
                return path
        return None


def lacking_in_tensorflow(names: set[str]) -> set[str] | None:
    """Those that TensorFlow 1.15 lacks itself; None where it is not installed."""
    python = interpreter_path("1.15")
    if not python.exists():
        return None
    done = subprocess.run(
        [python, "-c", _IN_TENSORFLOW], input=json.dumps(sorted(names)), capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=40, help="how many missing names are listed")
    parser.add_argument("--files", action="store_true", help="list what each file lacks")
    parser.add_argument("--skip", action="append", default=[], help="leave out paths with this part")
    options = parser.parse_args()
    used: dict[Path, set[str]] = {}
    for path in sorted(options.folder.rglob("*.py")):
        if not path.is_file() or any(part in str(path) for part in options.skip):
            continue
        text = path.read_text(encoding="utf-8", errors="replace").replace("\t", "    ")
        if found := names_in(text):
            used[path] = found
    others = lacking_in_tensorflow({name for each in used.values() for name in each})
    if others is not None:
        foreign = [path for path, each in used.items() if each & others]
        print(f"{len(foreign)} of {len(used)} files use names that TensorFlow 1.15 lacks, too: left out")
        used = {path: each for path, each in used.items() if not each & others}
    names = Names()
    lacking = {path: {short for name in each if (short := names.missing(name))} for path, each in used.items()}
    whole = sum(not short for short in lacking.values())
    repositories = {path.relative_to(options.folder).parts[0] for path in lacking}
    print(
        f"{whole} of {len(lacking)} files ({whole / max(1, len(lacking)):.1%}) use only names that exist; "
        f"{len(repositories)} repositories"
    )
    count = Counter(short for each in lacking.values() for short in each)
    alone: dict[str, int] = defaultdict(int)
    for each in lacking.values():
        if len(each) == 1:
            alone[next(iter(each))] += 1
    for name, files in count.most_common(options.most):
        print(f"{files:5} {alone[name]:5} alone  {name}")
    if options.files:
        for path, each in lacking.items():
            if each:
                print(f"{path.relative_to(options.folder)}: {', '.join(sorted(each))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
