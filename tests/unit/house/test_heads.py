"""The files that the head of a module names are there: a reader follows them.

A bare name is a file of the same package; one with folders, such as `services: worker/part_run.py` or
`tenfold_services/worker/part_run.py`, a file of any. What follows TensorFlow's names, after "Follows" or "TF", is
TensorFlow's. The client is left out: its heads name TensorFlow's modules throughout.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from support.mirror import PACKAGES, ROOT, modules

if TYPE_CHECKING:
    from pathlib import Path

NAMED = re.compile(r"(?<![\w/.*<-])([a-z_][\w/]*\.py)\b")
#: A sentence that is about TensorFlow's files.
ABOUT_TENSORFLOW = re.compile(r"\b(Follows|TF 1\.15's|TensorFlow's|In TensorFlow)\b")
OURS = tuple(package for package in PACKAGES.values() if package not in ("tenfold", "tenfold_protos"))


def _ends(path: Path) -> set[str]:
    """What a file may be called: its path from any folder on, with or without the folder of the package."""
    parts = path.parts
    short = [part for part in parts if part not in PACKAGES.values()]
    return {"/".join(names[at:]) for names in (parts, short) for at in range(len(names))}


EVERYWHERE = set().union(*(_ends(path.relative_to(ROOT)) for path in ROOT.glob("[a-z]*/**/*.py")))


def named(text: str) -> list[str]:
    """The files that a head names as ours."""
    sentences = re.split(r"(?<=[.;:])\s", text)
    return [name for sentence in sentences if not ABOUT_TENSORFLOW.search(sentence) for name in NAMED.findall(sentence)]


@pytest.mark.parametrize("package", OURS)
def test_files_that_heads_name_are_there(package: str) -> None:
    mine = {name: path for name, path in modules().items() if name.partition(".")[0] == package}
    here = {path.name for path in mine.values()}
    lost = [
        f"{path}: {name}"
        for path in mine.values()
        for name in named(ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))) or "")
        if name not in (EVERYWHERE if "/" in name else here)
    ]

    assert lost == []


def test_what_counts_as_named() -> None:
    text = "Used by part_run.py. Follows TF 1.15's training/saver.py; see master/master.py and *_service.py."

    assert named(text) == ["part_run.py", "master/master.py"]
