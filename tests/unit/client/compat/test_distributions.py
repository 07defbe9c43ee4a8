"""The distribution `tensorflow`: asked of importlib.metadata and of pkg_resources, with setuptools' own and without."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from tenfold.compat import as_tensorflow
as_tensorflow.install()
as_tensorflow.install()
import importlib.metadata
import pkg_resources

for name in ("Tensorflow", "tensorflow"):
    assert pkg_resources.get_distribution(name).version == "1.15.0+deeprec", name
assert importlib.metadata.version("tensorflow") == "1.15.0+deeprec"
assert [d.version for d in importlib.metadata.distributions() if d.metadata["Name"] == "tensorflow"]
assert pkg_resources.get_distribution("numpy").version == importlib.metadata.version("numpy")
try:
    pkg_resources.get_distribution("no-such-thing")
except pkg_resources.DistributionNotFound as error:
    assert "no-such-thing" in str(error)
else:
    raise AssertionError("found what is not there")
print(pkg_resources.__name__)
"""
#: What setuptools 81 has, as far as it matters: a module of that name that knows its distributions.
REAL = """
class DistributionNotFound(Exception): pass

class Distribution:
    def __init__(self, project_name, version):
        self.key, self.version = project_name.lower(), version

class _WorkingSet:
    def __init__(self):
        import importlib.metadata
        self.by_key = {}
        self.add(Distribution("numpy", importlib.metadata.version("numpy")))
    def add(self, distribution):
        self.by_key[distribution.key] = distribution

working_set = _WorkingSet()

def get_distribution(name):
    try:
        return working_set.by_key[name.lower()]
    except KeyError:
        raise DistributionNotFound(name) from None
"""


def run(program: str, folder: Path) -> str:
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, str(folder / "program.py")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_where_setuptools_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "pkg_resources.py").write_text(REAL)
    assert run(PROGRAM, tmp_path) == "pkg_resources"


def test_where_there_is_none(tmp_path: Path) -> None:
    if importlib.util.find_spec("pkg_resources") is not None:
        pytest.skip("this environment's setuptools has pkg_resources")
    assert run(PROGRAM, tmp_path) == "tenfold.compat.python.pkg_resources"
