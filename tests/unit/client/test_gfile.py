"""tf.gfile and tf.python_io: files, folders and TFRecords, with TensorFlow's errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

gfile = tf.gfile


def test_a_file_is_written_read_and_sought(tmp_path: Path) -> None:
    path = str(tmp_path / "text")
    with gfile.GFile(path, "w") as out:
        assert not gfile.Exists(path), "it is opened by the first write"
        out.write("first\nsecond\nlast")
        out.flush()
        assert out.size() == 17
    with gfile.Open(path) as source:
        assert source.readline() == "first\n"
        assert source.tell() == 6
        assert source.readlines() == ["second\n", "last"]
        source.seek(-4, 2)
        assert source.read() == "last"
        source.seek(position=0)
        assert source.read(5) == "first"
    assert next(iter(gfile.FastGFile(path, "rb"))) == b"first\n"
    with gfile.GFile(path, "a") as more:
        more.write(b"!")
    assert gfile.GFile(path).read().endswith("last!")


def test_reading_and_writing_makes_the_file_or_empties_it(tmp_path: Path) -> None:
    path = str(tmp_path / "text")
    with pytest.raises(tf.errors.NotFoundError, match="text"):
        gfile.GFile(path, "r+").read()
    with gfile.GFile(path, "r+") as both:
        both.write("abc")
        assert both.read() == "abc"
    with gfile.GFile(path, "r+") as both:
        assert both.read() == "abc"
        both.write("z")
    assert gfile.GFile(path).read() == "z"


def test_against_the_mode(tmp_path: Path) -> None:
    path = str(tmp_path / "text")
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not"):
        gfile.GFile(path, "x")
    with pytest.raises(tf.errors.PermissionDeniedError, match="for reading"):
        gfile.GFile(path, "w").read()
    with pytest.raises(tf.errors.PermissionDeniedError, match="for writing"):
        gfile.GFile(path, "r").write("x")
    with pytest.raises(tf.errors.NotFoundError, match="text"):
        gfile.GFile(path).read()


def test_folders(tmp_path: Path) -> None:
    top = str(tmp_path / "top")
    gfile.MakeDirs(f"{top}/a/b")
    gfile.MakeDirs(f"{top}/a/b")
    gfile.MkDir(f"{top}/c")
    with gfile.GFile(f"{top}/c/file.txt", "w") as out:
        out.write("x")
    gfile.MkDir(f"{top}/c")
    with pytest.raises(tf.errors.NotFoundError):
        gfile.MkDir(f"{top}/none/d")
    gfile.Copy(f"{top}/c/file.txt", f"{top}/a/copy.txt")
    with pytest.raises(tf.errors.AlreadyExistsError, match="file already exists"):
        gfile.Copy(f"{top}/c/file.txt", f"{top}/a/copy.txt")
    gfile.Rename(f"{top}/a/copy.txt", f"{top}/c/file.txt", overwrite=True)

    assert sorted(gfile.ListDirectory(top)) == ["a", "c"]
    assert gfile.Glob([f"{top}/*/*.txt", f"{top}/none*"]) == [f"{top}/c/file.txt"]
    folder, folders, files = next(iter(gfile.Walk(top)))
    assert (folder, sorted(folders), files) == (top, ["a", "c"], [])
    assert next(iter(gfile.Walk(top, in_order=False)))[0] != top
    assert gfile.Stat(f"{top}/c/file.txt").length == 1
    assert gfile.IsDirectory(top)
    assert not gfile.IsDirectory(f"{top}/c/file.txt")
    gfile.Remove(f"{top}/c/file.txt")
    gfile.DeleteRecursively(top)
    assert not gfile.Exists(top)
    for missing in (gfile.Remove, gfile.Stat, gfile.ListDirectory, gfile.DeleteRecursively):
        with pytest.raises(tf.errors.NotFoundError):
            missing(top)


@pytest.mark.parametrize("packing", [None, "", "GZIP", tf.python_io.TFRecordCompressionType.ZLIB])
def test_records(tmp_path: Path, packing: object) -> None:
    path = tmp_path / "records"
    options = tf.python_io.TFRecordOptions(packing)
    with tf.python_io.TFRecordWriter(path, options=options) as out:
        out.write(b"one")
        out.write(b"")
        out.flush()
        out.write(b"three")
    assert list(tf.python_io.tf_record_iterator(path, options)) == [b"one", b"", b"three"]
    # What a step gives for a name.
    assert list(tf.python_io.tf_record_iterator(os.fsencode(path), options)) == [b"one", b"", b"three"]


def test_records_that_are_damaged_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "records"
    with tf.python_io.TFRecordWriter(path) as out:
        out.write(b"record")
    path.write_bytes(path.read_bytes()[:-3] + b"xyz")
    with pytest.raises(tf.errors.DataLossError, match="corrupted record at 0"):
        list(tf.python_io.tf_record_iterator(path))
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.python_io.tf_record_iterator(tmp_path / "none"))
    with pytest.raises(ValueError, match="Not a valid compression_type"):
        tf.python_io.TFRecordOptions("LZ4")


def test_a_scheme_that_nobody_serves_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a folder of that name once."""

    def missing(scheme: str) -> None:
        raise ImportError("not here")

    monkeypatch.setattr("tenfold_core.file_names._library", missing)
    monkeypatch.chdir(tmp_path)
    attempts = [
        lambda: gfile.Exists("hdfs://there/it"),
        lambda: gfile.MakeDirs("s3://bucket/run"),
        lambda: gfile.GFile("gs://bucket/text").read(),
        lambda: tf.python_io.TFRecordWriter("hdfs://there/records"),
        lambda: next(tf.python_io.tf_record_iterator("hdfs://there/records")),
        lambda: tf.summary.FileWriter("hdfs://there/log"),
        lambda: tf.train.latest_checkpoint("hdfs://there/model"),
        lambda: tf.Session().run(tf.read_file("hdfs://there/it")),
    ]
    for attempt in attempts:
        with pytest.raises(tf.errors.UnimplementedError, match=r"scheme '(hdfs|s3|gs)' not implemented .*mount"):
            attempt()
    assert not list(tmp_path.iterdir())
    gfile.MakeDirs(f"file://{tmp_path}/here")
    assert (tmp_path / "here").is_dir()
