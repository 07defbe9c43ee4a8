"""A working directory as a zip: the same bytes for the same files, on a disk and in a store."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest

from tenfold.runs.package import pack
from tenfold_core.files import EVERYWHERE

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"train.py": b"print(1)", "data/a.txt": b"a" * 3000, ".git/config": b"no", "data/__pycache__/x.pyc": b"no"}


def packed(folder: Path | str) -> tuple[str, dict[str, bytes]]:
    into = io.BytesIO()
    name = pack(folder, into)
    with zipfile.ZipFile(into) as package:
        return name, {entry: package.read(entry) for entry in package.namelist()}


def test_a_folder_and_a_url_give_the_same_package(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed (pip install -e '.[dev]')")
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
        with EVERYWHERE.create(f"memory://project/{name}") as out:
            out.write(content)
    name, found = packed(tmp_path)

    assert found == {"data/a.txt": FILES["data/a.txt"], "train.py": FILES["train.py"]}
    assert packed(str(tmp_path)) == packed("memory://project") == packed("memory://project/") == (name, found)
    EVERYWHERE.remove_tree("memory://project")


def test_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    for place in (tmp_path / "f", tmp_path / "nothing"):
        with pytest.raises(NotADirectoryError, match="is not a folder"):
            pack(place, io.BytesIO())
