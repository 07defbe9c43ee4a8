"""Uploaded working directories: what is accepted, how it is unpacked, when it is forgotten."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import zipfile
from typing import TYPE_CHECKING

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.packages import NAME, Packages

if TYPE_CHECKING:
    from pathlib import Path


def package(**files: bytes) -> tuple[str, bytes]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o755 if name == "run" else 0o220 if name == "odd" else 0) << 16
            made.writestr(entry, data)
    return hashlib.sha256(content.getvalue()).hexdigest(), content.getvalue()


def packages(folder: Path, limit: int = 100) -> Packages:
    return Packages(folder / "packages", unpacked_limit=limit)


def refusal(kept: Packages, name: str, content: bytes) -> ApiError:
    with pytest.raises(ApiError) as raised:
        kept.add(name, content)
    return raised.value


def test_a_package_is_kept_once(tmp_path: Path) -> None:
    kept, (name, content) = packages(tmp_path), package(run=b"x" * 100)
    assert NAME.fullmatch(name)
    assert not kept.has(name)
    assert kept.add(name, content)
    assert not kept.add(name, content)
    assert kept.has(name)
    assert stat.S_IMODE((tmp_path / "packages").stat().st_mode) == 0o700


def test_what_it_contains_is_known(tmp_path: Path) -> None:
    kept, (name, content) = packages(tmp_path), package(**{"run.py": b"x", "app/__main__.py": b"x"})
    kept.add(name, content)
    asked = ("run.py", "./run.py", "app/", "app/../run.py", "app/__main__.py", "run", "../run.py", "main.py")
    assert [path for path in asked if kept.contains(name, path)] == list(asked[:5])


def test_its_name_is_its_sha256(tmp_path: Path) -> None:
    name, content = package(run=b"x")
    error = refusal(packages(tmp_path), "0" * 64, content)
    assert (error.kind, error.detail) == ("package-differs", f"the package's sha256 is {name}, not {'0' * 64}.")


def test_what_is_no_zip_file_is_refused(tmp_path: Path) -> None:
    error = refusal(packages(tmp_path), hashlib.sha256(b"text").hexdigest(), b"text")
    assert (error.kind, error.detail) == ("package-not-zip", "the package is not a zip file: File is not a zip file.")


def test_its_size_unpacked_is_bounded(tmp_path: Path) -> None:
    error = refusal(packages(tmp_path), *package(a=b"x" * 60, b=b"x" * 41))
    assert (error.kind, error.detail) == (
        "package-too-large",
        "the package has 101 bytes unpacked; 100 are accepted.",
    )
    assert not (tmp_path / "packages").exists()


def test_a_broken_one_is_refused(tmp_path: Path) -> None:
    _, content = package(run=b"hello")
    content = content.replace(b"hello", b"hullo")
    error = refusal(packages(tmp_path), hashlib.sha256(content).hexdigest(), content)
    assert (error.kind, error.detail) == ("package-broken", "the package is broken at 'run'.")


def test_it_is_unpacked_with_its_modes_and_can_be_read(tmp_path: Path) -> None:
    kept, (name, content) = packages(tmp_path), package(run=b"go", odd=b"o", plain=b"p")
    kept.add(name, content)
    into = tmp_path / "into"
    kept.unpack(name, into)
    assert {path.name: path.read_bytes() for path in into.iterdir()} == {"run": b"go", "odd": b"o", "plain": b"p"}
    assert stat.S_IMODE((into / "run").stat().st_mode) == 0o755
    assert stat.S_IMODE((into / "odd").stat().st_mode) == 0o620
    with pytest.raises(FileNotFoundError):
        kept.unpack("0" * 64, into)


def test_nothing_is_written_outside_of_the_folder(tmp_path: Path) -> None:
    kept, (name, content) = packages(tmp_path), package(**{"../../outside": b"x"})
    kept.add(name, content)
    kept.unpack(name, tmp_path / "deep" / "into")
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "deep" / "into" / "outside").exists()


def test_what_nobody_has_asked_for_is_forgotten(tmp_path: Path) -> None:
    kept, (name, content) = packages(tmp_path), package(run=b"go")
    kept.forget(1e12)
    kept.add(name, content)
    file = tmp_path / "packages" / f"{name}.zip"
    (tmp_path / "packages" / "other").touch()
    os.utime(file, (1000, 1000))
    kept.forget(1000.0)
    assert file.exists()
    assert kept.has(name)
    kept.forget(1001.0)
    assert file.exists()
    os.utime(file, (1000, 1000))
    kept.forget(1001.0)
    assert [path.name for path in (tmp_path / "packages").iterdir()] == ["other"]


def test_a_probe_leaves_nothing_even_where_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = packages(tmp_path)
    sizes: list[int] = []
    kept.probe()
    assert list((tmp_path / "packages").iterdir()) == []

    class Full:
        def __init__(self, path: str) -> None:
            self.path = path

        def __enter__(self) -> Full:
            open(self.path, "w").close()
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, content: bytes) -> None:
            sizes.append(len(content))
            raise OSError("no room")

    monkeypatch.setattr("tenfold_control_api.runs.packages.AtomicFile", Full)
    with pytest.raises(OSError, match="no room"):
        kept.probe()
    assert list((tmp_path / "packages").iterdir()) == []
    assert sizes == [1 << 20]
