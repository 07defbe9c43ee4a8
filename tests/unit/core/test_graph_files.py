"""What a graph may open: below the root, links resolved; never the system's places; regular files of a bounded size."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from tenfold_core import errors, graph_files
from tenfold_core.files import EVERYWHERE
from tenfold_core.graph_files import GraphFiles
from tenfold_core.records import ByteStream, RecordReader, RecordWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, beside a secret that it links to in several ways."""
    inside, outside = tmp_path / "root", tmp_path / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (inside / "sub/data").write_bytes(b"data")
    (outside / "secret").write_bytes(b"secret")
    (inside / "file_link").symlink_to(outside / "secret")
    (inside / "folder_link").symlink_to(outside)
    (inside / "inner_link").symlink_to("sub/data")
    (tmp_path / "root-of-another").mkdir()
    (tmp_path / "root-of-another/data").write_bytes(b"other")
    return inside


def test_a_file_below_the_root_is_read_also_by_a_link_that_stays_below(root: Path) -> None:
    files = GraphFiles(str(root))
    assert files.read_whole(str(root / "sub/data")) == b"data"
    assert files.read_whole(str(root / "inner_link")) == b"data"
    assert files.read_whole(str(root / "sub/../sub/data")) == b"data"


@pytest.mark.parametrize(
    "name",
    ["../outside/secret", "file_link", "folder_link/secret", "sub/../../outside/secret", "../root-of-another/data"],
)
def test_what_lies_elsewhere_is_refused_for_every_use(root: Path, name: str) -> None:
    files, path = GraphFiles(str(root)), str(root / name)
    uses: list[Callable[[str], object]] = [
        files.read_whole, files.descriptor, files.create, files.exists, files.size, files.make_folders,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(errors.PermissionDeniedError, match=r"--files \(TENFOLD_FILES\)"):
            use(path)
    assert (root.parent / "outside/secret").read_bytes() == b"secret"


def test_a_null_byte_in_a_name_is_refused_in_the_same_words_by_every_use(root: Path) -> None:
    files, path = GraphFiles(str(root)), str(root / "a\0b")
    uses: list[Callable[[str], object]] = [
        files.read_whole, files.descriptor, files.create, files.size, files.make_folders, files.matching,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(errors.InvalidArgumentError, match="a file's name may not hold a null byte"):
            use(path)


@pytest.mark.parametrize("name", ["folder_link/secret", "../outside/secret"])
def test_what_lies_elsewhere_is_not_replaced_or_removed(root: Path, name: str) -> None:
    files, path = GraphFiles(str(root)), str(root / name)
    with pytest.raises(errors.PermissionDeniedError):
        files.replace(str(root / "sub/data"), path)
    with pytest.raises(errors.PermissionDeniedError):
        files.replace(path, str(root / "sub/new"))
    with pytest.raises(errors.PermissionDeniedError):
        files.unlink(path)
    with pytest.raises(errors.PermissionDeniedError):
        files.remove_folder(str(root / "folder_link/x"))
    assert (root.parent / "outside/secret").read_bytes() == b"secret"


def test_a_name_that_only_begins_like_the_root_is_not_below_it(root: Path) -> None:
    with pytest.raises(errors.PermissionDeniedError):
        GraphFiles(str(root)).read_whole(f"{root}-of-another/data")


def test_files_are_written_and_folders_made_below_the_root(root: Path) -> None:
    files = GraphFiles(str(root))
    files.make_folders(str(root / "a/b/c"))
    files.make_folders(str(root))
    with files.create(str(root / "a/b/c/out")) as out:
        out.write(b"long text")
    with files.create(str(root / "a/b/c/out")) as out:
        out.write(b"short")
    files.replace(str(root / "a/b/c/out"), str(root / "moved"))
    assert (root / "moved").read_bytes() == b"short"
    assert not (root / "a/b/c/out").exists()
    files.unlink(str(root / "moved"))
    files.remove_folder(str(root / "a/b/c"))
    assert not (root / "a/b/c").exists()
    assert (root / "a/b").exists()


def test_a_link_put_in_place_between_check_and_opening_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, checked = GraphFiles(str(root)), GraphFiles._check

    def check_then_swap(self: GraphFiles, path: str, real: str, **more: bool) -> None:
        checked(self, path, real, **more)
        (root / "sub").rename(root / "gone")
        (root / "sub").symlink_to(root.parent / "outside")

    monkeypatch.setattr(GraphFiles, "_check", check_then_swap)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        files.read_whole(str(root / "sub/secret"))


def test_a_last_name_that_becomes_a_link_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, checked = GraphFiles(str(root)), GraphFiles._check

    def check_then_swap(self: GraphFiles, path: str, real: str, **more: bool) -> None:
        checked(self, path, real, **more)
        (root / "sub/data").unlink()
        (root / "sub/data").symlink_to(root.parent / "outside/secret")

    monkeypatch.setattr(GraphFiles, "_check", check_then_swap)
    with pytest.raises(errors.PermissionDeniedError, match="regular files only"):
        files.read_whole(str(root / "sub/data"))


def test_patterns_find_only_what_may_be_opened(root: Path) -> None:
    files = GraphFiles(str(root))
    assert files.matching(str(root / "*")) == [str(root / "inner_link"), str(root / "sub")]
    assert files.matching(str(root / "*/../../outside/*")) == []
    assert files.matching(str(root / "*_link/secret")) == []
    assert files.matching(str(root / "sub/data")) == [str(root / "sub/data")]
    for pattern in ("/etc/*", str(root.parent / "*"), "/etc/passwd", "*"):
        with pytest.raises(errors.PermissionDeniedError):
            files.matching(pattern)


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/maps", "/sys/kernel/notes", "/dev/null"])
def test_the_systems_places_are_refused_without_a_root(path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    for name in (path, str(tmp_path / "link"), f"/tmp/..{path}"):
        for use in (GraphFiles().read_whole, GraphFiles().create, GraphFiles().matching):
            with pytest.raises(errors.PermissionDeniedError, match=path[:4]):
                use(name)
    with pytest.raises(errors.PermissionDeniedError):
        GraphFiles("/").read_whole(path)


def test_patterns_do_not_show_the_systems_places() -> None:
    assert GraphFiles().matching("/*/self/environ") == []


def test_hidden_folders_of_a_home_are_refused_unless_the_root_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/key").write_bytes(b"key")
    (tmp_path / ".keras/datasets").mkdir(parents=True)
    (tmp_path / ".keras/datasets/mnist").write_bytes(b"digits")
    (tmp_path / "seen").write_bytes(b"seen")
    monkeypatch.setenv("HOME", str(tmp_path))
    for files in (GraphFiles(), GraphFiles(str(tmp_path))):
        assert files.read_whole(str(tmp_path / "seen")) == b"seen"
        with pytest.raises(errors.PermissionDeniedError, match=r"~/\.ssh"):
            files.read_whole(str(tmp_path / ".ssh/key"))
    told = GraphFiles(str(tmp_path / ".keras"))
    assert told.read_whole(str(tmp_path / ".keras/datasets/mnist")) == b"digits"


def test_only_regular_files_are_opened_and_nothing_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            for use in (GraphFiles().read_whole, GraphFiles().create, GraphFiles().descriptor):
                with pytest.raises(errors.PermissionDeniedError, match="regular files only"):
                    use(str(tmp_path / name))
    with pytest.raises(IsADirectoryError):
        GraphFiles().read_whole(str(tmp_path))


def test_larger_files_than_may_be_read_are_refused_before_they_are_read(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "sparse", os.O_CREAT | os.O_WRONLY), 1 << 40)
    with pytest.raises(errors.ResourceExhaustedError, match=r"1099511627776 bytes.*1000.*TENFOLD_FILE_BYTES"):
        GraphFiles(most_bytes=1000).read_whole(str(tmp_path / "sparse"))
    with pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_FILE_BYTES"):
        GraphFiles().read_whole(str(tmp_path / "sparse"))


def test_lines_and_records_are_bounded_too(tmp_path: Path) -> None:
    (tmp_path / "line").write_bytes(b"x" * 5000)
    with RecordWriter(str(tmp_path / "records"), "GZIP") as out:
        out.write(b"y" * 5000)
    files = GraphFiles(most_bytes=1000)
    with ByteStream(str(tmp_path / "line"), files=files) as stream, pytest.raises(errors.ResourceExhaustedError):
        stream.read_line()
    reader = RecordReader(str(tmp_path / "records"), "GZIP", files=files)
    with reader, pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_FILE_BYTES"):
        reader.read()


def test_a_root_that_is_no_folder_is_an_error_of_the_setting(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"TENFOLD_FILES.*folder that exists"):
        GraphFiles(str(tmp_path / "missing"))


def test_programs_of_the_user_open_what_they_may(tmp_path: Path) -> None:
    assert EVERYWHERE.read_whole("/proc/self/statm")


# ---- names ----------------------------------------------------------------------------------------------------------


def uses_of(files: GraphFiles) -> list[Callable[[str], object]]:
    """Each that takes the name of a file or a folder that is there."""
    return [
        files.read_whole, files.descriptor, files.create, files.size, files.unlink, files.remove_folder,
        files.make_folder, lambda name: files.replace(name, name),
    ]  # fmt: skip


def test_an_empty_name_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for files in (GraphFiles(), GraphFiles(str(tmp_path))):
        for use in uses_of(files):
            with pytest.raises(FileNotFoundError, match="No such file or directory"):
                use("")
        assert not files.exists("")


def test_names_that_are_not_absolute_begin_at_the_working_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "sub")
    files = GraphFiles("..")
    assert files.root == str(root)
    assert files.read_whole("data") == files.read_whole("../sub/data") == b"data"
    assert files.matching("d*") == files.matching("data") == ["data"]
    assert files.matching("../*ub") == ["../sub"]
    files.make_folders("a/b")
    files.remove_folder("a/b/")
    files.create("new").close()
    files.replace("new", "a/newer")
    files.unlink("a/newer")
    files.remove_folder("a")
    assert [entry.name for entry in (root / "sub").iterdir()] == ["data"]
    for pattern in ("../../out*", "../../outside/secret"):
        with pytest.raises(errors.PermissionDeniedError):
            files.matching(pattern)


@pytest.mark.parametrize("name", ["", "/", "/sub/..", "/."])
def test_the_root_is_looked_into_and_neither_removed_nor_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "root/sub").mkdir(parents=True)
    files, path = GraphFiles(str(tmp_path / "root")), str(tmp_path / "root") + name
    assert files.is_folder(path)
    assert files.exists(path)
    assert files.matching(path) == [path]
    files.make_folders(path)
    if not name.endswith(".."):
        files.remove_folder(str(tmp_path / "root/sub"))
    for use in (files.remove_folder, files.unlink, lambda root: files.replace(root, root)):
        with pytest.raises(errors.PermissionDeniedError):
            use(path)
    for use in (files.remove_folder, files.unlink):
        with pytest.raises(errors.PermissionDeniedError, match="the folder that graphs may use on this task, which it"):
            use(str(tmp_path / "root"))
    assert (tmp_path / "root").is_dir()


def test_an_error_says_which_folder_and_which_name() -> None:
    with pytest.raises(errors.PermissionDeniedError) as refused:
        GraphFiles("/usr").read_whole("/etc/passwd")
    assert refused.value.message.startswith("/etc/passwd; not below /usr, the folder that graphs may use on this task")


def test_a_link_is_removed_or_replaced_and_not_what_it_leads_to(root: Path) -> None:
    files = GraphFiles(str(root))
    files.replace(str(root / "file_link"), str(root / "renamed"))
    assert (root / "renamed").is_symlink()
    files.unlink(str(root / "renamed"))
    files.unlink(str(root / "inner_link"))
    assert (root / "sub/data").read_bytes() == b"data"
    assert (root.parent / "outside/secret").read_bytes() == b"secret"


# ---- places of the system and of homes -------------------------------------------------------------------------------


def test_a_root_within_a_place_of_the_system_opens_that_part_alone() -> None:
    files = GraphFiles("/proc/sys", most_bytes=1000)
    assert files.read_whole("/proc/sys/kernel/ostype").strip()
    for path in ("/proc/version", "/proc/sysvipc/msg", "/dev/null"):
        with pytest.raises(errors.PermissionDeniedError, match="not below /proc/sys,"):
            files.read_whole(path)


def test_a_name_that_only_begins_like_a_place_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "procedures").write_bytes(b"text")
    monkeypatch.setattr(graph_files, "SYSTEM_PLACES", (str(tmp_path / "proc"), str(tmp_path / "dev")))
    assert GraphFiles().read_whole(str(tmp_path / "procedures")) == b"text"
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/zero").write_bytes(b"")
    for name in ("dev", "dev/zero"):
        with pytest.raises(errors.PermissionDeniedError) as refused:
            GraphFiles().size(str(tmp_path / name))
        place = tmp_path / "dev"
        assert f"graphs may not use {place}, which shows and changes the system" in refused.value.message


def test_hidden_ones_are_hidden_directly_below_a_home_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".hidden/sub", "shown/.hidden", ".other"):
        (tmp_path / "home" / name).mkdir(parents=True)
        (tmp_path / "home" / name / "file").write_bytes(b"text")
    (tmp_path / ".beside").write_bytes(b"text")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for files in (GraphFiles(), GraphFiles(str(tmp_path))):
        assert files.read_whole(str(tmp_path / "home/shown/.hidden/file")) == b"text"
        assert files.read_whole(str(tmp_path / ".beside")) == b"text"
        assert files.is_folder(str(tmp_path / "home"))
        assert files.matching(str(tmp_path / "home/.*")) == []
        with pytest.raises(errors.PermissionDeniedError, match=r"~/\.hidden, as hidden folders of a home keep secrets"):
            files.read_whole(str(tmp_path / "home/.hidden/sub/file"))
    below = GraphFiles(str(tmp_path / "home/.hidden/sub"))
    assert below.read_whole(str(tmp_path / "home/.hidden/sub/file")) == b"text"
    with pytest.raises(errors.PermissionDeniedError):
        below.read_whole(str(tmp_path / "home/.other/file"))


def test_the_home_of_the_accounts_is_one_too_whatever_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / "home/.ssh/key").write_bytes(b"key")
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    assert GraphFiles().read_whole(str(tmp_path / "home/.ssh/key")) == b"key"

    class Entry:
        pw_dir = str(tmp_path / "home")

    def entry_of(user: int) -> Entry:
        assert user == os.getuid()
        return Entry()

    monkeypatch.setattr(graph_files.pwd, "getpwuid", entry_of)
    with pytest.raises(errors.PermissionDeniedError, match=r"~/\.ssh"):
        GraphFiles().read_whole(str(tmp_path / "home/.ssh/key"))

    def no_entry(user: int) -> Entry:
        raise KeyError(user)

    monkeypatch.setattr(graph_files.pwd, "getpwuid", no_entry)
    assert GraphFiles().read_whole(str(tmp_path / "home/.ssh/key")) == b"key"


def test_a_home_that_is_the_root_of_all_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of a service's account: hidden ones of others' homes are no business of its graphs' either."""
    monkeypatch.setenv("HOME", "/")
    monkeypatch.setattr(graph_files.pwd, "getpwuid", lambda user: type("Entry", (), {"pw_dir": "/"}))
    with pytest.raises(FileNotFoundError):
        GraphFiles().read_whole("/.hidden-and-not-there")


# ---- opening ---------------------------------------------------------------------------------------------------------


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_file_is_empty_once_it_is_created_anew(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    GraphFiles().create(str(tmp_path / "file")).close()
    assert (tmp_path / "file").read_bytes() == b""
    os.close(GraphFiles().descriptor(str(tmp_path / "file")))
    with pytest.raises(FileNotFoundError):
        GraphFiles().read_whole(str(tmp_path / "missing"))


def test_what_became_another_kind_while_it_was_opened_is_refused_unchanged(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, looks = graph_files._check_regular, list[int]()

    def check_then_swap(path: str, mode: int) -> None:
        checked(path, mode)
        looks.append(mode)
        if len(looks) == 1:
            (root / "sub/data").unlink()
            os.mkfifo(root / "sub/data")

    monkeypatch.setattr(graph_files, "_check_regular", check_then_swap)
    before = open_descriptors()
    with pytest.raises(errors.PermissionDeniedError, match="regular files only"):
        GraphFiles().descriptor(str(root / "sub/data"))
    assert (len(looks), open_descriptors()) == (1, before)


def test_no_use_leaves_a_folder_open(root: Path) -> None:
    files, path = GraphFiles(str(root)), str(root / "sub/data")
    before = open_descriptors()
    files.read_whole(path)
    files.create(path).close()
    files.make_folders(str(root / "a/b/c"))
    files.make_folders(str(root / "a/b"))
    files.replace(path, str(root / "a/b/moved"))
    files.unlink(str(root / "a/b/moved"))
    files.remove_folder(str(root / "a/b/c"))
    assert not files.exists(path)
    for name in ("missing/file", "folder_link/secret", "a/b"):
        with pytest.raises((errors.PermissionDeniedError, OSError)):
            files.read_whole(str(root / name))
    assert not (root / "missing").exists(), "folders are made where that is asked for only"
    (root / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        files.make_folders(str(root / "file/below"))
    assert open_descriptors() == before


def test_a_folder_that_another_makes_at_the_same_time_is_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.mkdir

    def too_late(name: str, *arguments: int, **options: int) -> None:
        make(name, *arguments, **options)
        make(name, *arguments, **options)

    monkeypatch.setattr(graph_files.os, "mkdir", too_late)
    GraphFiles(str(root)).make_folders(str(root / "x/y"))
    assert (root / "x/y").is_dir()


# ---- of the process --------------------------------------------------------------------------------------------------


def test_graphs_of_a_process_open_what_its_last_server_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_files, "_current", None)
    free = graph_files.graph_files()
    assert free.root is None
    assert graph_files.graph_files() is free
    bound = GraphFiles(str(tmp_path))
    graph_files.use(bound)
    assert graph_files.graph_files() is bound


def test_how_much_of_a_file_is_read_goes_by_the_largest_tensor_unless_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph_files, "tensor_limit", lambda: 77)
    assert (GraphFiles().most_bytes, GraphFiles(most_bytes=5).most_bytes) == (77, 5)


def test_scratch_files_have_no_name_and_lie_below_the_root(root: Path) -> None:
    files = GraphFiles(str(root))
    with files.scratch(str(root / "new/tables")) as file:
        file.truncate(10)
        file.seek(4)
        file.write(b"data")
        file.seek(0)
        assert file.read() == b"\0\0\0\0data\0\0"
        assert not list((root / "new/tables").iterdir())
    for folder in ("folder_link", "../outside"):
        with pytest.raises(errors.PermissionDeniedError, match="not below"):
            files.scratch(str(root / folder))
    with pytest.raises(errors.InvalidArgumentError, match="s3://b/x; a file that is mapped must be on a local disk"):
        EVERYWHERE.scratch("s3://b/x")
