"""One version in all places, bounds that fit the code, and what `make dist` refuses (tests/support/release.py)."""

from __future__ import annotations

import io
import re
import tarfile
import zipfile
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from packaging.version import Version

from support import oldest, release
from support.mirror import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_place_has_the_one_version() -> None:
    version = release.project_version()

    chart = text_of("docs/helm/tenfold-control/Chart.yaml")
    assert re.findall(r"^(?:version|appVersion): \"?([^\"\n]+)\"?$", chart, re.MULTILINE) == [version, version]
    assert release.newest_in_changelog(text_of("CHANGELOG.md")) == version
    assert f"tenfold:{version}" in text_of("docs/launchers/kubernetes.md")
    assert metadata.version("tenfold") == version, "pyproject.toml has changed since: make .venv/.installed-dev"


def test_the_changelog_is_in_the_order_of_keep_a_changelog() -> None:
    order = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    versions = re.split(r"^## ", text_of("CHANGELOG.md"), flags=re.MULTILINE)[1:]

    assert versions
    for each in versions:
        head, _, rest = each.partition("\n")
        assert re.fullmatch(r"\[(Unreleased|\d+\.\d+\.\d+)\](?(1)( - \d{4}-\d\d-\d\d)?)", head), head
        found = re.findall(r"^### (.*)$", rest, re.MULTILINE)
        assert found == sorted(set(found), key=order.index), f"{head}: {found}"
        # nothing stands outside of a group
        assert not re.search(r"^- ", rest.partition("\n### ")[0], re.MULTILINE), head


def test_protobuf_is_as_new_as_the_code_that_was_generated_for_it() -> None:
    """Protobuf's library refuses code of a newer generator."""
    lowest = dict(each.split("==") for each in oldest.constraints())["protobuf"]
    made = [
        re.search(r"^# Protobuf Python Version: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in (ROOT / "protos" / "tenfold_protos").glob("*_pb2.py")
    ]

    assert made
    for found in made:
        assert found is not None
        assert Version(found[1]) <= Version(lowest)


def test_the_oldest_of_each_requirement() -> None:
    constraints = oldest.constraints(("postgres",))
    project = dict(each.split("==") for each in constraints)

    assert project["asyncpg"] == "0.29"
    assert "fastapi" in project, "the extra `control`, which `postgres` names"
    assert "tenfold" not in project
    assert constraints == sorted(constraints)


def wheel(folder: Path, *, without: str = "", more: str = "", version: str = "0.2.0") -> Path:
    """A wheel with what is asked of one."""
    info = "tenfold-0.2.0.dist-info"
    vendor = "tenfold_control_api/dashboard/vendor"
    names = [f"{info}/licenses/LICENSE", "tenfold/py.typed"]
    names += [f"tenfold/cli/programs/{name}.py" for name in ("demo", "digits")]
    names += [f"{vendor}/{name}.LICENSE" for name in ("htm", "preact", "uplot")]
    path = folder / "tenfold-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Name: tenfold\nVersion: {version}\nLicense-Expression: Apache-2.0\n")
        for name in [*(name for name in names if name != without), *([more] if more else [])]:
            archive.writestr(name, "")
    return path


def test_a_wheel_that_has_everything(tmp_path: Path) -> None:
    release.check_wheel(wheel(tmp_path), "0.2.0")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"without": "tenfold/cli/programs/demo.py"}, "lacks tenfold/cli/programs/demo.py"),
        ({"without": "tenfold_control_api/dashboard/vendor/htm.LICENSE"}, "lacks .*htm.LICENSE"),
        ({"more": "tests/__init__.py"}, "puts tests into site-packages"),
        ({"version": "0.1.9"}, "says version 0.1.9"),
    ],
)
def test_a_wheel_that_is_refused(tmp_path: Path, made: dict[str, str], says: str) -> None:
    with pytest.raises(release.RefusedError, match=says):
        release.check_wheel(wheel(tmp_path, **made), "0.2.0")


def test_a_wheel_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(release.RefusedError, match=r"its version is not 0\.3\.0"):
        release.check_wheel(wheel(tmp_path), "0.3.0")


@pytest.mark.parametrize(
    ("without", "more", "says"),
    [("LICENSE", "", "lacks LICENSE"), ("", ".venv/bin/python", r"has \.venv/bin/python")],
)
def test_an_sdist_that_is_refused(tmp_path: Path, without: str, more: str, says: str) -> None:
    path = tmp_path / "tenfold-0.2.0.tar.gz"
    names = ["pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "examples/digits.py", "tests/test_tiny.py"]
    with tarfile.open(path, "w:gz") as archive:
        for name in [*(name for name in names if name != without), *([more] if more else [])]:
            archive.addfile(tarfile.TarInfo(f"tenfold-0.2.0/{name}"), io.BytesIO())

    with pytest.raises(release.RefusedError, match=says):
        release.check_sdist(path, "0.2.0")


def test_licences() -> None:
    fitting = {
        "a": "Apache-2.0", "b": "MIT", "c": "BSD-3-Clause AND PSF-2.0", "d": "License :: OSI Approved :: BSD License",
        "e": "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)", "f": "ISC License (ISCL)",
    }  # fmt: skip
    refused = {
        "q": "GPL-3.0-or-later", "r": "", "s": "License :: Other/Proprietary License", "t": "AGPL-3.0", "u": "My own",
        "v": "MIT AND GPL-2.0-only",
    }  # fmt: skip

    assert release.refused_licences({**fitting, **refused}) == refused


def test_a_changelog_without_a_version() -> None:
    with pytest.raises(release.RefusedError, match="no heading"):
        release.newest_in_changelog("# Changelog\n\n## [Unreleased]\n")
