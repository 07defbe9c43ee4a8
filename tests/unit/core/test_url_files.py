"""Files by URLs, on fsspec's memory file system: the same calls as for paths. tests/storage has the same on S3."""

from __future__ import annotations

import errno
import io
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors, url_files, url_streams
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_names import COMMIT, RENAME, SCHEMES
from tenfold_core.files import EVERYWHERE, Files, length
from tenfold_core.graph_files import GraphFiles
from tenfold_core.records import RecordReader, RecordWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (pip install -e '.[dev]')")


@pytest.fixture(autouse=True)
def memory() -> Iterator[dict[str, Any]]:
    """What the file system has, by path; empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    del system.pseudo_dirs[1:]
    yield system.store
    system.store.clear()
    del system.pseudo_dirs[1:]


def put(url: str, content: bytes) -> None:
    with EVERYWHERE.create(url) as out:
        out.write(content)


def test_a_file_is_written_and_read() -> None:
    put("memory://run/a", b"one\ntwo\n")

    assert EVERYWHERE.read_whole("memory://run/a") == b"one\ntwo\n"
    assert EVERYWHERE.size("memory://run/a") == 8
    with EVERYWHERE.open_to_read("memory://run/a") as file:
        assert length(file) == 8
        assert file.readline() == b"one\n"
        file.seek(-2, io.SEEK_END)
        assert file.read() == b"o\n"
    with EVERYWHERE.append("memory://run/a") as out:
        out.write(b"three\n")
    with EVERYWHERE.append("memory://run/new") as out:
        out.write(b"first")
    assert EVERYWHERE.read_whole("memory://run/a") == b"one\ntwo\nthree\n"
    assert EVERYWHERE.read_whole("memory://run/new") == b"first"


def test_a_reader_of_what_is_not_there_is_closed_in_silence() -> None:
    reader = url_streams.UrlReader.__new__(url_streams.UrlReader)
    with pytest.raises(FileNotFoundError):
        reader.__init__("memory://none", fsspec.filesystem("memory"), "/none")

    reader.close()

    assert reader.closed


def test_two_readers_of_a_file_have_their_own_places() -> None:
    put("memory://a", b"abcdef")
    with EVERYWHERE.open_to_read("memory://a") as one, EVERYWHERE.open_to_read("memory://a") as other:
        assert (one.read(2), other.read(1), one.read(1)) == (b"ab", b"a", b"c")


def test_what_is_there_and_what_is_not() -> None:
    put("memory://run/a", b"x")

    assert EVERYWHERE.exists("memory://run/a")
    assert EVERYWHERE.exists("memory://run")
    assert EVERYWHERE.is_folder("memory://run")
    assert not EVERYWHERE.is_folder("memory://run/a")
    assert not EVERYWHERE.exists("memory://run/b")
    assert not EVERYWHERE.is_folder("memory://other")
    found = EVERYWHERE.stat("memory://run/a")
    assert (found.size, found.is_folder) == (1, False)
    assert found.mtime_ns > 0
    for call in (EVERYWHERE.stat, EVERYWHERE.size, EVERYWHERE.unlink, EVERYWHERE.open_to_read, EVERYWHERE.remove_tree):
        with pytest.raises(FileNotFoundError):
            call("memory://run/b")
    with pytest.raises(IsADirectoryError):
        EVERYWHERE.open_to_read("memory://run")
    with pytest.raises(IsADirectoryError):
        EVERYWHERE.unlink("memory://run")


def test_a_store_that_cannot_be_asked_does_not_say_that_nothing_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any, path: str, **_: Any) -> None:
        raise PermissionError("Forbidden")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "info", refused)

    for call in (EVERYWHERE.exists, EVERYWHERE.is_folder):
        with pytest.raises(errors.PermissionDeniedError, match="memory://x; Forbidden"):
            call("memory://x")


def test_folders_names_and_trees() -> None:
    for name in ("run/a", "run/sub/b", "run/sub/c", "other/d"):
        put(f"memory://{name}", name.encode())

    assert EVERYWHERE.names("memory://run") == ["a", "sub"]
    assert list(EVERYWHERE.walk("memory://run")) == [
        ("memory://run", ["sub"], ["a"]),
        ("memory://run/sub", [], ["b", "c"]),
    ]
    assert [folder for folder, _, _ in EVERYWHERE.walk("memory://run", top_down=False)] == [
        "memory://run/sub",
        "memory://run",
    ]
    assert list(EVERYWHERE.walk("memory://nowhere")) == []
    assert EVERYWHERE.matching("memory://run/*") == ["memory://run/a", "memory://run/sub"]
    assert EVERYWHERE.matching_files("memory://run/*") == ["memory://run/a"]
    assert EVERYWHERE.matching("memory://run/sub/[bx]") == ["memory://run/sub/b"]
    assert EVERYWHERE.matching("memory://run/a") == ["memory://run/a"]
    assert EVERYWHERE.matching("memory://run/nothing") == EVERYWHERE.matching("memory://no/*") == []
    EVERYWHERE.make_folder("memory://made")
    assert EVERYWHERE.is_folder("memory://made")
    with pytest.raises(FileExistsError):
        EVERYWHERE.make_folder("memory://made")
    EVERYWHERE.make_folders("memory://made/deep/er")
    with pytest.raises(OSError, match="not empty"):
        EVERYWHERE.remove_folder("memory://made")
    EVERYWHERE.remove_folder("memory://made/deep/er")
    EVERYWHERE.remove_tree("memory://run")
    assert not EVERYWHERE.exists("memory://run")
    assert EVERYWHERE.exists("memory://other/d")
    with pytest.raises(PermissionError, match="whole"):
        EVERYWHERE.remove_tree("memory://")


def test_a_graph_gives_no_file_a_name_on_another_machine_and_publishes_none_here(tmp_path: Path) -> None:
    put("memory://run/a", b"x")
    (tmp_path / "b").write_bytes(b"y")
    files = Files()
    for source, destination in (("memory://run/a", str(tmp_path / "c")), (str(tmp_path / "b"), "memory://run/c")):
        with pytest.raises(OSError, match="ross-device link") as caught:
            files.replace(source, destination)
        assert caught.value.errno == errno.EXDEV
    with pytest.raises(ValueError, match="/b is a path of this machine"):
        files.create_unpublished(str(tmp_path / "b"))
    assert EVERYWHERE.names("memory://run") == ["a"]
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


def test_two_strokes_make_no_url_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "odd:").mkdir()
    (tmp_path / "odd:" / "f").write_bytes(b"x")
    assert EVERYWHERE.read_whole(f"{tmp_path}/odd://f") == b"x"
    assert not EVERYWHERE._is_elsewhere(f"{tmp_path}/odd://f")


def test_files_are_renamed_copied_and_compared(tmp_path: Path) -> None:
    put("memory://run/a", b"x" * 10)
    EVERYWHERE.copy("memory://run/a", "memory://run/b")
    EVERYWHERE.replace("memory://run/b", "memory://run/c")
    EVERYWHERE.copy("memory://run/c", str(tmp_path / "here"))
    EVERYWHERE.copy(str(tmp_path / "here"), "memory://back")
    EVERYWHERE.replace("memory://run", "memory://moved")

    assert (tmp_path / "here").read_bytes() == b"x" * 10
    assert EVERYWHERE.names("memory://moved") == ["a", "c"]
    assert not EVERYWHERE.exists("memory://run/a")
    assert EVERYWHERE.same("memory://moved/a", "memory://back")
    assert EVERYWHERE.same(str(tmp_path / "here"), "memory://back")
    put("memory://back", b"y" * 10)
    assert not EVERYWHERE.same("memory://moved/a", "memory://back")
    EVERYWHERE.replace(str(tmp_path / "here"), "memory://there")
    assert not (tmp_path / "here").exists()
    assert EVERYWHERE.exists("memory://there")


@pytest.mark.parametrize("name", ["memory://a/../b", "memory://./b", "memory://a\0b"])
def test_odd_names_are_refused(name: str) -> None:
    for call in (EVERYWHERE.stat, EVERYWHERE.open_to_read, EVERYWHERE.create):
        with pytest.raises(OSError, match="may not hold") as refused:
            call(name)
        assert refused.value.errno == errno.EINVAL


def test_a_file_is_there_whole_or_not_at_all(memory: dict[str, Any]) -> None:
    put("memory://f", b"old")
    file = AtomicFile("memory://f")
    file.out.write(b"new")
    file.prepare()
    assert EVERYWHERE.read_whole("memory://f") == b"old"
    file.publish()
    assert EVERYWHERE.read_whole("memory://f") == b"new"
    half = AtomicFile("memory://f")
    half.out.write(b"half")
    half.discard()
    assert EVERYWHERE.read_whole("memory://f") == b"new"
    assert list(memory) == ["/f"]


def test_one_that_nobody_publishes_is_not_there(memory: dict[str, Any]) -> None:
    out = EVERYWHERE.create_unpublished("memory://f")
    out.write(b"half")
    del out

    assert list(memory) == []


def test_what_is_flushed_is_seen() -> None:
    with EVERYWHERE.create("memory://log") as out:
        out.write(b"one")
        assert not EVERYWHERE.exists("memory://log")
        out.flush()
        assert EVERYWHERE.read_whole("memory://log") == b"one"
        out.write(b"two")
    assert EVERYWHERE.read_whole("memory://log") == b"onetwo"


def test_records_are_written_and_read() -> None:
    with RecordWriter("memory://r", "GZIP") as out:
        out.write(b"one")
        out.flush()
        out.write(b"two" * 1000)
    with RecordReader("memory://r", "GZIP") as reader:
        assert list(reader) == [b"one", b"two" * 1000]


def test_a_read_that_fails_is_tried_again_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    put("memory://f", b"abcdef")
    system = type(fsspec.filesystem("memory"))
    plain, fails = system.cat_file, [OSError(errno.EBUSY, "SlowDown")]

    def cat_file(self: Any, path: str, *arguments: Any, **more: Any) -> bytes:
        if fails:
            raise fails.pop()
        found: bytes = plain(self, path, *arguments, **more)
        return found

    monkeypatch.setattr(system, "cat_file", cat_file)
    with EVERYWHERE.open_to_read("memory://f") as file:
        file.seek(2)
        assert file.read() == b"cdef"


def test_a_file_that_is_replaced_while_it_is_read_is_an_error() -> None:
    put("memory://f", b"abcdef")
    with EVERYWHERE.open_to_read("memory://f") as file:
        put("memory://f", b"other, longer")
        with pytest.raises(OSError, match="replaced while it was read"):
            file.read()


# -- how large files are written, on a file system that notes it -------------------------------------------------------


class Stream:
    """An upload in pieces."""

    def __init__(self, store: Store, path: str) -> None:
        self.store, self.path, self.closed = store, path, False
        self.pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        if self.store.fails:
            raise self.store.fails.pop()
        self.pieces.append(piece)

    def close(self) -> None:
        self.closed = True
        if not self.store.commits:
            self.store.files[self.path] = b"".join(self.pieces)

    def commit(self) -> None:
        self.store.files[self.path] = b"".join(self.pieces)

    def discard(self) -> None:
        self.store.said.append("discard")


class Store:
    """Files by name, and what was asked."""

    def __init__(self, commits: bool) -> None:
        self.commits = commits
        self.files: dict[str, bytes] = {}
        self.said: list[str] = []
        self.fails: list[Exception] = []

    def open(self, path: str, mode: str, block_size: int, **more: Any) -> Stream:
        assert more == ({"autocommit": False} if self.commits else {})
        self.said.append(f"open {block_size}")
        return Stream(self, path)

    def pipe_file(self, path: str, data: bytes) -> None:
        self.said.append("put")
        self.files[path] = data

    def mv(self, source: str, destination: str) -> None:
        self.files[destination] = self.files.pop(source)

    def rm_file(self, path: str) -> None:
        self.files.pop(path)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_streams, "PART", 10)


def writer(store: Store, *, at_close: bool = False) -> url_streams.UrlWriter:
    row = SCHEMES["s3"]._replace(publish=COMMIT if store.commits else RENAME)
    return url_streams.UrlWriter("s3://b/f", store, "b/f", row, at_close=at_close)


@pytest.mark.parametrize("commits", [True, False])
def test_a_large_file_goes_in_parts_and_appears_when_it_is_published(commits: bool, small_parts: None) -> None:
    store = Store(commits)
    out = writer(store)
    for piece in (b"12345678", b"abcdefgh", b"ABCDEFGH"):
        assert out.write(memoryview(piece)) == 8
    assert out.tell() == 24
    out.prepare()
    assert "b/f" not in store.files
    out.publish()
    out.close()

    assert store.files == {"b/f": b"12345678abcdefghABCDEFGH"}
    assert store.said == ["open 10"]


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("large", [True, False])
def test_what_is_discarded_leaves_nothing(commits: bool, large: bool, small_parts: None) -> None:
    store = Store(commits)
    out = writer(store)
    out.write(b"x" * (30 if large else 3))
    out.close()

    assert store.files == {}
    assert store.said == ([] if not large else ["open 10", "discard"] if commits else ["open 10"])


def test_a_small_file_is_one_put(small_parts: None) -> None:
    store = Store(commits=True)
    out = writer(store)
    out.write(b"state")
    out.publish()

    assert store.said == ["put"]


def test_a_write_that_fails_publishes_nothing_when_it_is_closed(small_parts: None) -> None:
    store = Store(commits=True)
    store.fails = [OSError(errno.EIO, "lost")]
    out = writer(store, at_close=True)
    out.write(b"12345")
    with pytest.raises(OSError, match="lost"):
        out.write(b"1234567890")
    out.close()

    assert store.files == {}
    assert store.said == ["open 10", "discard"]


# -- what graphs may use -----------------------------------------------------------------------------------------------


def test_graphs_use_urls_of_known_schemes_where_no_folder_is_set() -> None:
    put("memory://run/a", b"x")

    assert GraphFiles().read_whole("memory://run/a") == b"x"
    with pytest.raises(errors.PermissionDeniedError, match="graphs may use the schemes s3, "):
        GraphFiles().exists("http://169.254.169.254/latest")
    with pytest.raises(errors.PermissionDeniedError, match="graphs may use the schemes"):
        GraphFiles().open_to_read("local:///etc/passwd")


def test_a_folder_for_graphs_is_no_leave_for_urls(tmp_path: Path) -> None:
    files = GraphFiles(str(tmp_path))
    for call in (files.read_whole, files.create, files.exists, files.size, files.matching, files.unlink):
        with pytest.raises(errors.PermissionDeniedError, match="started with a URL as --files"):
            call("memory://run/a")


def test_a_url_for_graphs_is_the_only_place_they_use(tmp_path: Path) -> None:
    put("memory://run/a", b"x")
    put("memory://other/b", b"y")
    files = GraphFiles("memory://run/")

    assert files.read_whole("memory://run/a") == b"x"
    assert files.matching("memory://run/*") == ["memory://run/a"]
    for name in ("memory://other/b", "memory://runs/b", "memory://*/b", "memory://r*", str(tmp_path), "relative"):
        for call in (files.read_whole, files.matching, files.create, files.unlink):
            with pytest.raises(errors.PermissionDeniedError, match="not below memory://run"):
                call(name)
    with pytest.raises(errors.PermissionDeniedError):
        files.replace("memory://run/a", "memory://other/a")
    with pytest.raises(OSError, match="may not hold"):
        files.read_whole("memory://run/../other/b")


def test_a_database_is_read_from_a_disk_only() -> None:
    with pytest.raises(errors.UnimplementedError, match=r"copy it to one first"):
        GraphFiles().descriptor("memory://data.sqlite")


def test_what_a_graph_reads_of_a_url_is_bounded() -> None:
    put("memory://large", b"x" * 100)
    with pytest.raises(errors.ResourceExhaustedError, match="memory://large; 100 bytes are more than the 10"):
        GraphFiles(most_bytes=10).read_whole("memory://large")


def test_a_host_stays_in_the_names_that_match() -> None:
    place = url_files._Place(None, "/run/*", "hdfs://host:9000")

    assert url_files._url(place, "/run/a") == "hdfs://host:9000/run/a"
