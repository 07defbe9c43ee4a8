"""docs/map.md and docs/losses.md name places of the code as `path/file.py:function`; these tests keep them true.

A path may leave out the package folder: `services/server.py` is services/tenfold_services/server.py. In a chain, a
numbered list of docs/map.md, the module of each place names the next one, or the next one says how it is reached.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from support.mirror import PACKAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

MAP, LOSSES = ROOT / "docs" / "map.md", ROOT / "docs" / "losses.md"
#: How a place is reached that the one before it does not call by name.
REACHED_OTHERWISE = ("over the wire", "by callback", "by its name")
#: Says that an entry is reached from an earlier one than the last.
FROM = re.compile(r"\(from (\d+)\)")

PLACE = re.compile(r"`([\w./-]+\.py):([A-Za-z_][\w.]*)`")
STEP = re.compile(r"^(\d+)\. `([\w./-]+\.py):([A-Za-z_][\w.]*)`(.*)$")
QUOTED = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: Folders of the root that a path in backticks may begin with.
FOLDERS = (*PACKAGES, "tests", "docs", "examples", "benchmarks")
#: Pages whose paths in backticks must be there. Decisions keep the names of their day.
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@dataclass(frozen=True)
class Place:
    """`path/file.py:function` in line `line` of `page`; `text` is what a step of a chain says of it."""

    page: str
    line: int
    path: str
    name: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.path}:{self.name}"


def resolved(path: str) -> Path | None:
    """The file or folder, spelled with or without the package folder; None where there is none."""
    folder, _, rest = path.partition("/")
    candidates = [ROOT / path]
    if folder in PACKAGES:
        candidates.append(ROOT / folder / PACKAGES[folder] / rest)
    return next((each for each in candidates if each.exists()), None)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def defined(path: Path) -> frozenset[str]:
    """Names of a module's top level, and Class.member of its classes."""
    names: set[str] = set()

    def targets(node: ast.stmt) -> list[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node.name]
        if isinstance(node, ast.Assign):
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            return [node.target.id]
        return []

    for node in tree(path).body:
        names.update(targets(node))
        if isinstance(node, ast.ClassDef):
            names.update(f"{node.name}.{member}" for each in node.body for member in targets(each))
    return frozenset(names)


@cache
def mentioned(path: Path) -> frozenset[str]:
    """Names that a module's code calls, reads or imports, but for those in its own definitions' heads."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.name.rpartition(".")[2])
    return frozenset(names)


def places(page: Path) -> list[Place]:
    return [
        Place(page.name, number, *found.groups())
        for number, line in enumerate(page.read_text().splitlines(), 1)
        for found in PLACE.finditer(line)
    ]


def chains() -> dict[str, list[Place]]:
    """Heading → the steps of the numbered list under it."""
    found: dict[str, list[Place]] = {}
    heading = ""
    for number, line in enumerate(MAP.read_text().splitlines(), 1):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif (step := STEP.match(line)) is not None:
            chain = found.setdefault(heading, [])
            assert int(step[1]) == len(chain) + 1, f"map.md:{number}: step {step[1]} of {heading!r} is out of order"
            chain.append(Place("map.md", number, step[2], step[3], step[4]))
        elif heading in found and line.startswith("   "):
            chain = found[heading]
            last = chain[-1]
            chain[-1] = Place(last.page, last.line, last.path, last.name, f"{last.text} {line.strip()}")
    return found


@pytest.mark.parametrize("page", [MAP, LOSSES], ids=lambda page: page.name)
def test_every_place_is_there(page: Path) -> None:
    wrong = []
    for place in places(page):
        file = resolved(place.path)
        if file is None:
            wrong.append(f"{place}: no such file")
        elif place.name not in defined(file):
            wrong.append(f"{place}: the file has no such function or class")

    assert not wrong, "\n".join(wrong)


def test_the_map_has_five_chains() -> None:
    found = chains()

    assert {heading[0] for heading in found} == set("12345"), list(found)
    assert all(len(chain) > 3 for chain in found.values())


@pytest.mark.parametrize("heading", list(chains()))
def test_each_step_of_a_chain_leads_to_the_next(heading: str) -> None:
    chain = chains()[heading]
    wrong = []
    for before, other in pairwise(chain):
        if any(how in other.text for how in REACHED_OTHERWISE):
            continue
        back = FROM.search(other.text)
        one = before if back is None else chain[int(back[1]) - 1]
        file = resolved(one.path)
        owner, _, function = other.name.rpartition(".")
        # an object that is made, or called as a function, is known by its class
        name = owner if function in ("__init__", "__call__") else function
        if file is not None and name not in mentioned(file):
            wrong.append(f"{one} does not mention {name} of {other.path}; where it gets there otherwise, say how")

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_backticks_lead_somewhere(page: Path) -> None:
    wrong = []
    for quoted in QUOTED.findall(FENCED.sub("", page.read_text())):
        path = quoted.partition(":")[0].removesuffix("/")
        if "/" not in path or path.partition("/")[0] not in FOLDERS or re.search(r"[^\w./-]|NNNN", path):
            continue
        if resolved(path) is None:
            wrong.append(path)

    assert not wrong, f"{page.name} names what is not there: {', '.join(wrong)}"


def test_the_map_counts_what_it_lists() -> None:
    """Each heading "… (N)" under the counts is followed by a list of N."""
    text = MAP.read_text()
    headings = re.findall(r"^### (.+) \((\d+)\)\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    counted = {
        heading: (int(number), len(re.findall(r"^- ", body, re.MULTILINE))) for heading, number, body in headings
    }

    assert counted, "the map counts nothing"
    assert all(said == listed for said, listed in counted.values()), counted
