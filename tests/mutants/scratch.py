"""A copy of the checkout in which files are changed, with an interpreter that imports from it alone.

It lies in build/mutants, which git ignores, and is brought up to date by what has changed. The interpreter is a
virtual environment of its own: a test that starts a process of ours, whatever it does with the environment, starts it
from the copy. Packages of others are found where they are installed.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

from support.mirror import PACKAGES, ROOT

FOLDER = ROOT / "build" / "mutants"


def files_to_copy() -> list[str]:
    """What git knows of the checkout or would add to it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def scratch_tree(name: str) -> Path:
    """The copy called `name`, as the checkout is now. Blocks while files are copied."""
    tree = FOLDER / name
    tree.mkdir(parents=True, exist_ok=True)
    names = set(files_to_copy())
    for path in names:
        _copy(ROOT / path, tree / path)
    for found in list(tree.rglob("*")):
        below = found.relative_to(tree)
        kept = below.parts[0] in (".venv", ".pytest_cache", ".hypothesis") or "__pycache__" in below.parts
        if not kept and found.is_file() and str(below) not in names:
            found.unlink()
    interpreter_of(tree)
    return tree


def _copy(source: Path, target: Path) -> None:
    """Also takes the time of the last change, by which compiled code knows its source."""
    stamp = source.stat()
    if target.is_file() and (target.stat().st_mtime_ns, target.stat().st_size) == (stamp.st_mtime_ns, stamp.st_size):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def mark_of(tree: Path) -> str:
    """A line of Python by which a process that a test starts says what it reaches, if reach.py asks for it."""
    return (
        "import os; names = {}; os.environ.get('TENFOLD_MUTANTS_REACHED') and "
        f"(exec(open({str(tree / 'tests/mutants/reach.py')!r}).read(), names), names['install']())"
    )


def environment_alone() -> dict[str, str]:
    """That of a process of a tree: without PYTHONPATH, whose packages would be taken in place of the tree's."""
    # bytecode is written: forks find compiled what the first one has compiled
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}


def interpreter_of(tree: Path) -> Path:
    """The tree's own Python; made where it is missing."""
    python = tree / ".venv" / "bin" / "python"
    if python.is_file():
        return python
    venv.create(tree / ".venv", symlinks=True, with_pip=False)
    (packages,) = (tree / ".venv").glob("lib/python*/site-packages")
    ours = [str(tree / folder) for folder in PACKAGES]
    (packages / "tree.pth").write_text("\n".join([*ours, *site.getsitepackages(), mark_of(tree)]) + "\n")
    for script in Path(sys.executable).parent.iterdir():
        target = tree / ".venv" / "bin" / script.name
        if target.exists() or not script.is_file():
            continue
        if script.name == "tenfold":
            lines = script.read_text().splitlines(keepends=True)
            target.write_text("".join([f"#!{python}\n", *lines[1:]]))
            target.chmod(0o755)
        else:
            target.symlink_to(script)
    return python
