"""Which tests cover a module: what counts as naming it, and which file is the nearest."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import which
from support.mirror import modules

OWN = Path("tests/unit/services/worker/test_loaded_program.py")
TOPIC = Path("tests/unit/services/worker/test_inline_rule.py")
NAMES = Path("tests/unit/services/worker/test_static_executor.py")
THROUGH = Path("tests/unit/services/worker/test_direct_call.py")
OTHER = Path("tests/unit/core/test_errors.py")
PROGRAM = "tenfold_services.worker.loaded_program"


@pytest.mark.parametrize(
    ("dotted", "module"),
    [
        ("tenfold_core.records", "tenfold_core.records"),
        ("tenfold_core.records.RecordWriter", "tenfold_core.records"),
        ("tenfold.train.Saver", "tenfold.train.saver"),
        ("tenfold.train.Saver.restore", "tenfold.train.saver"),
        ("tenfold.nn.conv2d.no_such_thing", "tenfold.ops.nn_conv"),
    ],
)
def test_a_name_counts_for_the_module_that_it_comes_from(dotted: str, module: str) -> None:
    assert module in which.homes(dotted)


def test_what_is_no_module_of_ours_counts_for_none() -> None:
    assert which.homes("numpy.array") == ()


def test_imports_strings_and_helpers_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tests/support").mkdir(parents=True)
    (tmp_path / "tests/support/parts.py").write_text("")
    (tmp_path / "tests/test_it.py").write_text(
        "import tenfold as tf\n"
        "from support.parts import PartBuilder\n"
        "from tenfold_core import errors\n"
        "CODE = 'from tenfold_kernels import memory; import tenfold_core.crc32c'\n"
        "saver = tf.train.Saver(errors.OpError, errors.OpError)\n"
    )
    monkeypatch.setattr(which, "ROOT", tmp_path)

    found = which.uses(Path("tests/test_it.py"))

    assert found["tenfold_core.errors"] == 3
    assert found["tenfold.train.saver"] == 1
    assert found["tenfold_core.crc32c"] == 1
    assert found["tests/support/parts.py"] == 1
    assert found["tenfold_core.records"] == 0


def test_the_nearest_file_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    helper, parts = Path("tests/support/programs.py"), Path("tests/support/parts.py")
    files = {path: which.uses(path) for path in (OTHER, THROUGH, NAMES, TOPIC, OWN, helper, parts)}
    monkeypatch.setattr(which, "uses_of_all", lambda: files)
    monkeypatch.setattr(which, "files_of_tests", lambda: [path for path in files if path not in (helper, parts)])

    found = which.covers(PROGRAM, modules()[PROGRAM])

    assert [Path(cover.test) for cover in found] == [OWN, TOPIC, NAMES, THROUGH]
    assert found[-1].how == "through tests/support/programs.py"


def test_a_module_without_a_test_gets_those_of_its_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(which, "uses_of_all", lambda: {OWN: Counter()})
    monkeypatch.setattr(which, "files_of_tests", lambda: [OWN])
    monkeypatch.setattr(which, "importers", lambda: {"tenfold_compiler.part.edges": [PROGRAM]})

    (found,) = which.covers_through_modules("tenfold_compiler.part.edges")

    assert (Path(found.test), found.how) == (OWN, f"through {modules()[PROGRAM]}")


def test_a_module_is_meant_by_the_end_of_its_path() -> None:
    assert which.wanted("worker/loaded_program.py")[0] == PROGRAM
    assert which.wanted(PROGRAM)[1] == modules()[PROGRAM]
    with pytest.raises(SystemExit, match="is no module"):
        which.wanted("worker/no_such.py")
    with pytest.raises(SystemExit, match="is one of"):
        which.wanted("__init__.py")


def test_modules_that_cannot_be_imported_here_count_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a GPU, where its packages are not installed."""
    which.homes.cache_clear()

    def absent(name: str) -> None:
        raise ModuleNotFoundError("No module named 'cupy'", name="cupy")

    monkeypatch.setattr(which.importlib, "import_module", absent)

    assert which.homes("tenfold_kernels.cuda.math_matmul.build") == ("tenfold_kernels.cuda.math_matmul",)
    which.homes.cache_clear()


def test_the_commands_of_the_page_for_contributors_are_there() -> None:
    page = (which.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (which.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^\s+make ([a-z-]+)", page, re.MULTILINE))
    modules_named = re.findall(r"make tests-of MODULE=(\S+)", page)

    assert {"test", "lint", "tests-of"} <= targets
    assert [each for each in targets if f"\n{each}:" not in makefile and f" {each} " not in makefile] == []
    for module in modules_named:
        which.wanted(module)  # it says so if there is none
    for test in re.findall(r"pytest -x (\S+)", page):
        assert (which.ROOT / test).is_file(), test
