"""What a user installs: the wheel, built in this process and offline, holds only names that begin with `tenfold`."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {
    *("tenfold", "tenfold_protos", "tenfold_core", "tenfold_link"),
    *("tenfold_kernels", "tenfold_compiler", "tenfold_services", "tenfold_control_api"),
}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    builder = WheelBuilder(str(ROOT))
    (artifact,) = builder.build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(artifact) as wheel:
        return wheel.namelist()


def test_top_level_names(names: list[str]) -> None:
    top = {name.split("/", 1)[0] for name in names}
    packages = {name for name in top if not name.endswith((".dist-info", ".data"))}

    assert packages == PACKAGES
    assert all(name.startswith("tenfold") for name in top), "nothing generic may land in site-packages"


def test_every_package_is_typed_and_the_wire_is_in(names: list[str]) -> None:
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    assert "tenfold_protos/master.proto" in names
    assert "tenfold_protos/master_pb2.py" in names


def test_the_dashboard_is_in_with_the_licences_of_what_it_uses(names: list[str]) -> None:
    folder = ROOT / "control_api" / "tenfold_control_api" / "dashboard"
    files = {f"tenfold_control_api/dashboard/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.*")}

    assert "tenfold_control_api/dashboard/index.html" in files
    assert "tenfold_control_api/dashboard/vendor/uplot.LICENSE" in files
    assert files <= set(names)


def test_nothing_that_is_not_ours_or_not_needed(names: list[str]) -> None:
    assert not [name for name in names if name.startswith(("tests/", "docs/", "examples/", "benchmarks/"))]
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))]


def test_license_and_console_script(names: list[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert any(name.endswith(".dist-info/entry_points.txt") for name in names)
