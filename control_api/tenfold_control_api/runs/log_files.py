"""What the tasks of a run wrote, read from the files of tenfold/runs/task_logs.py: the last lines, or all as they come.

`JOB-INDEX.NUMBER.log`, numbers growing, a bounded number of them; a line is `TIME LEVEL   TASK text`. A place in a
task's output is (number, offset). Blocking reads of bounded size: the routes call them on a thread.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_FILE = re.compile(r"(?P<task>.+)\.(?P<number>\d{8})\.log")
_LINE = re.compile(r"(?P<time>\S{20,30}) (?P<level>[A-Z]+) +(?P<task>\S+) (?P<text>.*)")
#: Read backwards in pieces of this size.
_PIECE = 1 << 16
#: Most that one look at a growing file takes.
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one task."""

    time: str
    level: str
    task: str
    text: str


Place = tuple[int, int]


def tasks_of(folder: Path) -> list[str]:
    """The tasks that have written anything, as "worker/0", in order of their names; "run" is the supervisor itself."""
    found = {match["task"] for path in folder.iterdir() if (match := _FILE.fullmatch(path.name))}
    return sorted(_name(stem) for stem in found)


def tail(folder: Path, tasks: list[str], count: int, until: Mapping[str, Place] | None = None) -> list[Line]:
    """The last `count` lines of the tasks together, in order of time; with `until` the last ones before those places,
    and nothing of a task that is not in it."""
    each = (
        _backwards(folder, task, None if until is None else until[task])
        for task in tasks
        if until is None or task in until
    )
    newest = heapq.merge(*each, key=lambda line: line.time, reverse=True)
    return list(islice(newest, count))[::-1]


def read_on(folder: Path, places: Mapping[str, Place], tasks: list[str]) -> tuple[list[Line], dict[str, Place]]:
    """What came since `places` (from the beginning for a task that is not in it), and the places after it."""
    lines: list[Line] = []
    now = dict(places)
    for task in tasks:
        fresh, now[task] = _from(folder, task, places.get(task, (0, 0)))
        lines += fresh
    return sorted(lines, key=lambda line: line.time), now


def ends(folder: Path, tasks: list[str]) -> dict[str, Place]:
    """The places after all that is there."""
    found: dict[str, Place] = {}
    for task in tasks:
        if numbers := _numbers(folder, task):
            found[task] = (numbers[-1], _path(folder, task, numbers[-1]).stat().st_size)
    return found


def _backwards(folder: Path, task: str, until: Place | None) -> Iterator[Line]:
    for number in reversed(_numbers(folder, task)):
        if until is not None and number > until[0]:
            continue
        try:
            file = _path(folder, task, number).open("rb")
        except FileNotFoundError:
            return  # the oldest one went meanwhile
        with file:
            left, rest = file.seek(0, 2), b""
            if until is not None and number == until[0]:
                left = min(left, until[1])
            while left:
                size = min(_PIECE, left)
                left -= size
                file.seek(left)
                pieces = (file.read(size) + rest).split(b"\n")
                rest = pieces[0] if left else b""
                for piece in reversed(pieces[1:] if left else pieces):
                    if line := _line(piece):
                        yield line


def _from(folder: Path, task: str, place: Place) -> tuple[list[Line], Place]:
    numbers = [number for number in _numbers(folder, task) if number >= place[0]]
    lines: list[Line] = []
    for number in numbers:
        offset = place[1] if number == place[0] else 0
        try:
            with _path(folder, task, number).open("rb") as file:
                file.seek(offset)
                chunk = file.read(_CHUNK)
        except FileNotFoundError:
            continue
        whole = chunk.rpartition(b"\n")[0]
        lines += [line for piece in whole.split(b"\n") if (line := _line(piece))]
        place = (number, offset + len(whole) + bool(whole))
        if len(chunk) == _CHUNK:
            break  # the rest by the next look
    return lines, place


def _line(piece: bytes) -> Line | None:
    match = _LINE.fullmatch(piece.decode("utf-8", "replace"))
    return None if match is None else Line(match["time"], match["level"], match["task"], match["text"])


def _numbers(folder: Path, task: str) -> list[int]:
    matches = (_FILE.fullmatch(path.name) for path in folder.glob(f"{_stem(task)}.*.log"))
    return sorted(int(match["number"]) for match in matches if match is not None and _name(match["task"]) == task)


def _path(folder: Path, task: str, number: int) -> Path:
    return folder / f"{_stem(task)}.{number:08}.log"


def _stem(task: str) -> str:
    return task.replace("/", "-")


def _name(stem: str) -> str:
    job, dash, index = stem.rpartition("-")
    return f"{job}/{index}" if dash else stem
