"""The page by symptom leads from an error to what helps: a place for every kind, and messages quoted as they are.

`docs/how-to/by-symptom.md` has an anchor for each row of problem_types.py, and for what help_links.py names.
"""

from __future__ import annotations

import re

from support.mirror import ROOT
from tenfold_control_api.problem_types import CODES, PROBLEM_TYPES
from tenfold_control_api.problems import ApiError
from tenfold_core import errors, help_links

PAGE = (ROOT / help_links.PAGE).read_text(encoding="utf-8")
ANCHORS = re.findall(r'<a id="([^"]+)"></a>', PAGE)
#: Headings that code links to.
HEADINGS = {re.sub(r"\W+", "-", each.lower()) for each in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
#: The parts of the page whose first column has messages of Tenfold; of others' it says whose they are.
MESSAGES = re.compile(r"^\| (?P<first>[^|]*`[^|]*?)(?P<whose> \((?:OpenSSL|Python)\))? \|", re.MULTILINE)
#: Fewer characters than these between two `…` say nothing.
_TELLING = 8


def test_every_kind_of_problem_has_its_place_and_no_place_is_left_over() -> None:
    assert sorted(set(ANCHORS)) == sorted(ANCHORS), "an anchor stands twice"
    assert set(ANCHORS) == PROBLEM_TYPES.keys() | {help_links.UNREACHABLE}
    assert help_links.HANGS in HEADINGS


def test_a_kind_of_problem_stands_beside_its_place() -> None:
    assert re.findall(r'<a id="([^"]+)"></a>`\1`', PAGE) == [name for name in ANCHORS if name in PROBLEM_TYPES]


def test_a_problem_says_where_its_place_is() -> None:
    assert ApiError("task-taken", "").body("/")["help"] == "docs/how-to/by-symptom.md#task-taken"


def test_an_error_of_a_step_says_where_its_place_is() -> None:
    for code in CODES:
        error = help_links.with_note(errors.from_code(getattr(errors, code), "why"))
        (note,) = help_links.with_note(error).__notes__

        assert note == f"What to do: docs/how-to/by-symptom.md#{help_links.runtime_kind(code)}"


def test_messages_are_those_of_the_code() -> None:
    folders = ("client", "compiler", "control_api", "core", "kernels", "services")
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")]
    symptoms = PAGE.partition("## It does not start")[2].partition("## What the control service answers")[0]
    quoted = [each["first"] for each in MESSAGES.finditer(symptoms) if not each["whose"]]
    pieces = {
        piece.strip()
        for first in quoted
        for message in re.findall(r"`([^`]+)`", first)
        for piece in message.split("…")
        if len(piece.strip()) >= _TELLING
    }

    assert len(pieces) > 30
    for text in texts:
        pieces = {piece for piece in pieces if piece not in text}
    assert pieces == set()
