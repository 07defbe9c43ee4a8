"""What the tasks of a run wrote: the last lines, and all as they come, over several files of each task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenfold_control_api.runs import log_files
from tenfold_control_api.runs.log_files import Line, ends, read_on, tail, tasks_of


def line(second: int, task: str = "worker/0", text: str = "text") -> str:
    return f"2027-01-01T00:00:{second:02}.000Z INFO    {task} {text} {second}\n"


def write(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_text("".join(lines))


def seconds(lines: list[Line]) -> list[int]:
    return [int(each.text.rpartition(" ")[2]) for each in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "worker-0.00000001.log", line(1), line(2))
    write(tmp_path, "worker-0.00000002.log", line(5), line(8))
    write(tmp_path, "worker-1.00000001.log", line(3, "worker/1"), line(6, "worker/1"))
    write(tmp_path, "run.00000001.log", line(4, "run"))
    write(tmp_path, "worker-0.log", line(9))
    write(tmp_path, "worker-0.1.log", line(9))
    return tmp_path


def test_tasks_are_those_that_wrote(folder: Path) -> None:
    write(folder, "my-job-3.00000001.log")
    assert tasks_of(folder) == ["my-job/3", "run", "worker/0", "worker/1"]


def test_a_line_has_its_parts(folder: Path) -> None:
    assert tail(folder, ["run"], 1) == [Line("2027-01-01T00:00:04.000Z", "INFO", "run", "text 4")]


@pytest.mark.parametrize(("count", "found"), [(0, []), (1, [8]), (3, [5, 6, 8]), (7, [1, 2, 3, 4, 5, 6, 8])])
@pytest.mark.parametrize("order", [1, -1])
def test_the_last_lines_of_all_tasks_come_in_order_of_time(
    folder: Path, count: int, found: list[int], order: int
) -> None:
    assert seconds(tail(folder, ["worker/0", "worker/1", "run"][::order], count)) == found
    assert seconds(tail(folder, ["worker/0", "worker/1", "run"][::order], 99)) == [1, 2, 3, 4, 5, 6, 8]


def test_a_task_whose_name_begins_like_another_is_not_it(folder: Path) -> None:
    write(folder, "worker-0-1.00000001.log", line(9, "worker-0/1"))
    assert seconds(tail(folder, ["worker/0"], 9)) == [1, 2, 5, 8]
    assert seconds(tail(folder, ["worker-0/1"], 9)) == [9]


def test_the_last_lines_before_a_place(folder: Path) -> None:
    size = len(line(1))
    tasks = ["worker/0", "worker/1"]
    assert seconds(tail(folder, tasks, 9, {"worker/0": (2, size)})) == [1, 2, 5]
    assert seconds(tail(folder, tasks, 9, {"worker/0": (2, 0)})) == [1, 2]
    assert seconds(tail(folder, tasks, 9, {"worker/0": (1, 999)})) == [1, 2]
    assert seconds(tail(folder, tasks, 9, {"worker/0": (0, 999), "worker/1": (1, size + 2)})) == [3]


@pytest.mark.parametrize("piece", [1, 7, 47, 48, 94, 1000])
def test_files_are_read_backwards_in_pieces_of_any_size(
    folder: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "_PIECE", piece)
    assert seconds(tail(folder, ["worker/0"], 9)) == [1, 2, 5, 8]


def test_what_is_no_line_is_left_out_and_what_is_no_text_is_shown(folder: Path) -> None:
    (folder / "ps-0.00000001.log").write_bytes(b"half\n" + line(1, "ps/0", "a\xff").encode("latin-1") + b"\n\nrest")
    (found,) = tail(folder, ["ps/0"], 9)
    assert found.text == "a\N{REPLACEMENT CHARACTER} 1"
    lines, places = read_on(folder, {}, ["ps/0"])
    assert lines == [found]
    assert places["ps/0"] == (1, (folder / "ps-0.00000001.log").stat().st_size - len("rest"))


def test_reading_on_begins_with_all_and_goes_on_behind_it(folder: Path) -> None:
    tasks = ["worker/0", "worker/1"]
    lines, places = read_on(folder, {"run": (1, 5)}, tasks)
    assert seconds(lines) == [1, 2, 3, 5, 6, 8]
    size = len(line(1))
    assert places == {"run": (1, 5), "worker/0": (2, 2 * size), "worker/1": (1, 2 * (size))}
    assert read_on(folder, places, tasks) == ([], places)

    with (folder / "worker-0.00000002.log").open("a") as file:
        file.write(line(9) + "half")
    write(folder, "worker-1.00000002.log", line(7, "worker/1"))
    lines, after = read_on(folder, places, tasks)
    assert seconds(lines) == [7, 9]
    assert after == {"run": (1, 5), "worker/0": (2, 3 * size), "worker/1": (2, size)}


def test_one_look_takes_a_bounded_piece_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(line(1))
    monkeypatch.setattr(log_files, "_CHUNK", size + 3)
    lines, places = read_on(folder, {}, ["worker/0"])
    assert (seconds(lines), places) == ([1], {"worker/0": (1, size)})
    lines, places = read_on(folder, places, ["worker/0"])
    assert (seconds(lines), places) == ([2, 5], {"worker/0": (2, size)})


def test_a_line_that_ends_with_the_piece_is_not_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "_CHUNK", len(line(1)))
    found, places = [], {}
    for _ in range(5):
        lines, places = read_on(folder, places, ["worker/0"])
        found += seconds(lines)
    assert found == [1, 2, 5, 8]


def test_the_ends_are_the_places_after_all_that_is_there(folder: Path) -> None:
    found = ends(folder, ["worker/0", "worker/1", "ps/0"])
    assert found == {"worker/0": (2, 2 * len(line(1))), "worker/1": (1, 2 * len(line(1)))}
    assert read_on(folder, found, ["worker/0", "worker/1"])[0] == []


def test_a_file_that_goes_meanwhile_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def gone(path: Path, *given: str) -> object:
        if path.name == "worker-0.00000001.log":
            raise FileNotFoundError(path)
        return opened(path, *given)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", gone)
    assert seconds(tail(folder, ["worker/0"], 9)) == [5, 8]
    assert seconds(read_on(folder, {}, ["worker/0"])[0]) == [5, 8]
