"""Packages that Tenfold imports are known to what keeps a program's own modules apart from them."""

from __future__ import annotations

import ast
import re
import sys

from support.mirror import PACKAGES as OURS
from support.mirror import ROOT
from tenfold.cli.modules_apart import PACKAGES

#: Those that TensorFlow imports as well: a program that has a module of such a name does not run with TensorFlow.
TENSORFLOWS = {"absl", "google", "grpc", "numpy", "scipy"}
#: Imported where the program uses them, too, and for annotations only.
PROGRAMS = {"PIL", "pandas", "sklearn", "_typeshed"}
#: Imported by `tenfold export`, in whose process no program runs.
COMMANDS = {"tensorboard"}


#: A line that imports, or looks like it in a docstring.
IMPORT = re.compile(r"^[ ]*(?:from[ ]+(\w+)[\w.]*[ ]+import[ ]|import[ ]+(\w+))", re.MULTILINE)


def test_every_package_that_is_imported_is_listed() -> None:
    known = sys.stdlib_module_names | TENSORFLOWS | PROGRAMS | COMMANDS | PACKAGES
    missing = {}
    for top, package in OURS.items():
        for path in (ROOT / top / package).rglob("*.py"):
            text = path.read_text()
            for name in {first or second for first, second in IMPORT.findall(text)} - known:
                if not name.startswith("tenfold") and name in _imported(text):
                    missing[name] = str(path)

    assert not missing


def _imported(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    plain = {each.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for each in node.names}
    of = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return plain | {name.partition(".")[0] for name in of}
