"""Prints the oldest versions that pyproject.toml allows, as pip's constraints: `oldest.py [EXTRA…] > constraints.txt`.

`make test-oldest` installs by them: a bound that nobody tries is a guess. What an extra's requirement names without a
lower bound, and what dependencies want of each other, is left to pip.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def requirements(extras: tuple[str, ...]) -> list[Requirement]:
    """Those of the project and of these extras, and of the extras of its own that they name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [Requirement(each) for each in project["dependencies"]]
    waiting = list(extras)
    while waiting:
        for each in map(Requirement, project["optional-dependencies"][waiting.pop()]):
            if each.name == project["name"]:
                waiting += each.extras
            else:
                found.append(each)
    return found


def constraints(extras: tuple[str, ...] = ()) -> list[str]:
    """`name==lowest` for each requirement that has a lower bound."""
    found = {}
    for each in requirements(extras):
        lowest = [clause.version for clause in each.specifier if clause.operator in (">=", "~=", "==")]
        if lowest:
            found[each.name] = f"{each.name}=={lowest[0].removesuffix('.*')}"
    return sorted(found.values())


if __name__ == "__main__":
    print("\n".join(constraints(tuple(sys.argv[1:]))))
