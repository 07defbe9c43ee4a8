"""One file's changes from end to end, in a small tree: noticed, not noticed, not reached, without end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mutants import nets, reach, warm
from mutants.changes import changes
from mutants.scratch import environment_alone, mark_of

CODE = """
import functools

LIMIT = 3
EDGE = 5


def small(x):
    if x < LIMIT:
        return True
    return False


def unused(x):
    return x + 1


def down(x):
    while x > 0:
        x -= 1
    return x


@functools.cache
def kept():
    return LIMIT
"""
TESTS = """
import hashlib, pathlib, subprocess, sys
from thing import EDGE, small, down, kept

def test_kept_is_called_first_where_nobody_looks_at_it():
    kept()

def test_small():
    assert small(1) and not small(7)

def test_down_in_a_process():
    assert subprocess.run([sys.executable, "-c", "import thing; thing.down(2)"]).returncode == 0

def test_down():
    assert down(3) == 0

def test_kept():
    assert kept()

def test_what_stays_on_the_disk_until_its_user_changes():
    code = pathlib.Path(hashlib.sha256(pathlib.Path('user.py').read_bytes()).hexdigest())
    if not code.exists():
        code.write_text(str(EDGE))
    assert code.read_text() == "5"
"""
#: A file of loops → those that Numba builds its code into.
USERS = {
    "tiles": ["convolve", "depthwise", "winograd"],
    "product_tiles": ["products"],
    "sandwiches": ["winograd"],
    "convolve": [],
    "intrinsics": [],
}
WARM = Path(__file__).with_name("warm.py")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="leftovers are found in /proc")


def results(tmp_path: Path, users: list[str], functions: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Change → what became of it, of those in these functions."""
    (tmp_path / "thing.py").write_text(CODE)
    (tmp_path / "test_thing.py").write_text(TESTS)
    user = tmp_path / "user.py"
    user.touch()
    stamp = user.stat().st_mtime_ns
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "sitecustomize.py").write_text(mark_of(Path(__file__).parents[2]))
    job = {
        "path": "thing.py",
        "module": "thing",
        "imports": [],
        "users": users,
        "tests": ["test_thing.py"],
        "seconds": 30,
        "mutants": [
            (change.function, change.what)
            for change in changes(CODE)
            if change.function in functions and "x > 0" not in change.what
        ],
    }
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(WARM)],
        cwd=tmp_path,
        env=environment,
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *rest = map(json.loads, done.stdout.splitlines())
    assert first == {"failed": [], "tests": 6}
    assert (tmp_path / "thing.py").read_text() == CODE  # as it was
    assert (user.stat().st_mtime_ns, user.read_text()) == (stamp, "")
    return {f"{line['function']}: {line['what']}": line for line in rest}


@pytest.mark.long
def test_what_becomes_of_each_change(tmp_path: Path) -> None:
    found = results(tmp_path, [], ("", "small", "unused", "down", "kept"))
    assert {what: line["how"] for what, line in found.items()} == {
        ": 3 → 4": "passed",  # no test looks at the limit
        ": 5 → 6": "passed",  # what is on the disk is of before
        "small: x < LIMIT → x <= LIMIT": "passed",
        "small: x < LIMIT → x >= LIMIT": "failed",
        "small: return True → return False": "failed",
        "small: True → False": "failed",
        "small: return False → return True": "failed",
        "small: False → True": "failed",
        "unused: return x + 1 → return None": "not reached",
        "unused: x + 1 → x - 1": "not reached",
        "unused: 1 → 2": "not reached",
        "down: x -= 1 → x += 1": "failed",
        "down: 0 → 1": "failed",
        "down: 1 → 2": "failed",
        "down: return x → return None": "failed",
        "kept: return LIMIT → return None": "failed",
    }
    assert found["small: True → False"]["by"] == "test_thing.py::test_small"


@pytest.mark.thorough
def test_what_others_keep_on_the_disk_is_made_anew_and_any_test_may_notice(tmp_path: Path) -> None:
    found = results(tmp_path, ["user.py"], ("", "unused"))
    assert {what: line["how"] for what, line in found.items()} == {
        ": 3 → 4": "passed",
        ": 5 → 6": "failed",
        "unused: return x + 1 → return None": "passed",
        "unused: x + 1 → x - 1": "passed",
        "unused: 1 → 2": "passed",
    }


def test_marks_come_before_each_statement_of_a_function_and_nowhere_else() -> None:
    text, spans = reach.marked(
        'X = 1\n\ndef f(x):\n    """A."""\n    if x:\n        return 1\n    return 2\n\n@njit\ndef g():\n    return 3\n'
    )

    assert text.count(reach.NAME) == len(spans) == 3
    assert reach.statement_of(6, spans) == 6
    assert reach.statement_of(5, spans) == 5
    assert reach.statement_of(1, spans) is None
    assert reach.statement_of(11, spans) is None


def test_packages_of_another_checkout_do_not_come_before_the_trees_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/another/checkout")
    monkeypatch.setenv("KEPT", "as it is")

    found = environment_alone()
    assert "PYTHONPATH" not in found
    assert found["KEPT"] == "as it is"


def test_loops_are_asked_for_by_the_kernels_that_import_them() -> None:
    loops = Path("kernels/tenfold_kernels/cpu/_compiled")
    asked = {stem: [user.stem for user in nets.kernels_with(loops / f"{stem}.py")] for stem in ("gif", "losses")}
    assert asked == {"gif": ["_gif", "image_files"], "losses": ["nn_loss"]}
    assert nets.kernels_with(loops.parent / "nn_loss.py") == []


def test_single_tests_of_a_file_run_together() -> None:
    tests = ["a::1", "a::2", "b", "a::3", "c", "d"]
    assert warm._of_few_files(tests) == tests[:5]
    assert warm._of_few_files(tests, 1) == tests[:2]


def test_loops_have_code_of_the_intrinsics_that_they_name() -> None:
    loops = Path("kernels/tenfold_kernels/cpu/_compiled")
    users = {stem: [user.stem for user in nets.users_of_code(loops / f"{stem}.py")] for stem in USERS}
    assert users == USERS


def test_a_statement_is_reached_also_where_no_file_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError("Too many open files")

    path = str(tmp_path / "reached")
    monkeypatch.setenv(reach.VARIABLE, path)
    reach._reached(4)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        reach._reached(7)  # what a test looks at must not fail for this
    assert reach.take(path) == {4, 7}
    assert reach.take(path) == set()
