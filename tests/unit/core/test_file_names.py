"""Names of files: which are URLs, what stands for their folders, and what is said where nothing opens them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tenfold_core import errors
from tenfold_core.file_names import SCHEMES, file_path, is_absolute, is_url, is_within, join, parent, relative, row


@pytest.mark.parametrize(
    ("path", "local"), [("/a/b", "/a/b"), ("a", "a"), ("file:///a/b", "/a/b"), ("file://a", "a"), ("a:b", "a:b")]
)
def test_paths_with_and_without_a_scheme(path: str, local: str) -> None:
    assert file_path(path) == file_path(path.encode()) == local
    assert not is_url(path)


@pytest.mark.parametrize("path", ["a-b://c", "://x", "1x://y", "dir/s3://b", "/s3://b"])
def test_what_only_looks_like_a_scheme_is_a_path(path: str) -> None:
    assert file_path(path) == path
    assert not is_url(path)


def test_a_url_stays_as_it_is() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed (pip install -e '.[dev]')")

    assert file_path("memory://x/y") == file_path(b"memory://x/y") == "memory://x/y"
    assert is_url("memory://x/y")


@pytest.mark.parametrize("path", ["none://b/x", "S3://b/x", "x.y://z"])
def test_another_scheme_is_refused_by_name(path: str) -> None:
    scheme = path.partition(":")[0]
    with pytest.raises(errors.UnimplementedError) as refused:
        file_path(path)

    text = refused.value.message
    assert f"File system scheme '{scheme}' not implemented (file: '{path}')" in text
    assert "mount" in text


@pytest.mark.parametrize("path", ["s3://b/x", "gs://b/x", "hdfs://there/x", "memory://x"])
def test_a_library_that_is_missing_is_named_with_its_extra(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenfold_core import file_names

    def missing(scheme: str) -> None:
        raise ImportError(f"no library of {scheme}")

    monkeypatch.setattr(file_names, "_library", missing)
    with pytest.raises(errors.UnimplementedError) as refused:
        file_path(path)

    assert f"pip install 'tenfold[{row(path).extra}]'" in refused.value.message


def test_every_row_names_an_extra_of_the_distribution() -> None:
    from importlib.metadata import metadata

    extras = metadata("tenfold").get_all("Provides-Extra") or []
    if "storage" not in extras:
        pytest.skip("the installed distribution is older than its pyproject.toml (pip install -e .)")

    assert {found.extra for found in SCHEMES.values()} <= set(extras)


def test_nothing_of_a_store_is_imported_without_a_url() -> None:
    program = "import sys, tenfold_core.files, tenfold_core.records; sys.exit('fsspec' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


def test_the_folder_of_a_url() -> None:
    assert parent("s3://bucket/a/b") == "s3://bucket/a"
    assert parent("s3://bucket/a") == "s3://bucket"
    assert parent("memory://a") == "memory://"
    assert parent("hdfs://host:1/a/b") == "hdfs://host:1/a"
    assert parent("/a/b") == "/a"
    assert parent("a") == ""


def test_names_are_joined_and_a_whole_one_begins_anew() -> None:
    assert join("s3://b/run", "model.ckpt-1") == "s3://b/run/model.ckpt-1"
    assert join("s3://b/run/", "a", "b") == "s3://b/run/a/b"
    assert join("/local", "s3://b/run") == "s3://b/run"
    assert join("s3://b/run", "/local") == "/local"
    assert join("/a", "b") == "/a/b"


def test_a_name_as_seen_from_a_folder() -> None:
    assert relative("s3://b/run/model-1", "s3://b/run") == "model-1"
    assert relative("s3://b/run/model-1", "s3://b/run/") == "model-1"
    assert relative("s3://b/other/model-1", "s3://b/run") == "s3://b/other/model-1"
    assert relative("s3://b/runs/model-1", "s3://b/run") == "s3://b/runs/model-1"
    assert relative("a/b/c", "a") == "b/c"


def test_what_means_the_same_everywhere() -> None:
    assert is_absolute("/a")
    assert is_absolute("s3://b/a")
    assert not is_absolute("a")


def test_what_lies_below_a_url() -> None:
    assert is_within("s3://b/run/x", "s3://b/run")
    assert is_within("s3://b/run", "s3://b/run/")
    assert not is_within("s3://b/runs/x", "s3://b/run")
