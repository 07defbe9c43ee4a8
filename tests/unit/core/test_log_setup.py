"""The logging of a process: lines of text and of JSON, what they name, and what is too quiet to be shown."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING

import pytest

from tenfold_core import log_setup

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


@pytest.fixture(autouse=True)
def former_logging() -> Iterator[None]:
    """Puts back what the test configures."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:], root.level = handlers, level
    root.setLevel(level)


def test_lines_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    log_setup.configure("info", "text")

    logging.getLogger("a.b").debug("unseen")
    logging.getLogger("a.b").info("hello %d", 1)
    log_setup.set_task("/job:ps/task:0")
    token = log_setup.request_id.set("r1")
    logging.getLogger("a.b").warning("again")
    log_setup.request_id.reset(token)

    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(TIME + r" INFO a\.b: hello 1", first)
    assert re.fullmatch(TIME + r" WARNING a\.b: again \[/job:ps/task:0\] \[request r1\]", second)


def test_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    log_setup.configure("warning", "json", task="/job:worker/task:1")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logging.getLogger("x").exception('failed "so"', extra={"fields": {"status": 500}})

    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert re.fullmatch(TIME, found.pop("time"))
    assert found.pop("traceback").splitlines()[-2:] == ["ValueError: two", "lines"]
    assert found == {
        "level": "ERROR",
        "logger": "x",
        "message": 'failed "so"',
        "task": "/job:worker/task:1",
        "status": 500,
    }


def test_libraries_are_heard_from_a_warning_on(capsys: pytest.CaptureFixture[str]) -> None:
    log_setup.configure("debug", "text")

    logging.getLogger("httpx").info("HTTP Request: …")
    logging.getLogger("httpx").warning("odd")

    assert [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()] == ["WARNING httpx: odd"]


def test_the_second_call_replaces_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    log_setup.configure("info", "json")
    log_setup.configure("error", "text")

    logging.getLogger("x").warning("unseen")
    logging.getLogger("x").error("seen")

    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"TENFOLD_LOG_LEVEL": "INFO"}, ("info", "text")),
        ({"TENFOLD_LOG_FORMAT": "json"}, ("warning", "json")),
        ({"TENFOLD_LOG_LEVEL": "loud"}, None),
    ],
)
def test_what_the_environment_asks_for(environment: dict[str, str], expected: object) -> None:
    assert log_setup.asked_for(environment) == expected


def test_lines_of_json_are_read_by_people_too(capsys: pytest.CaptureFixture[str]) -> None:
    log_setup.configure("info", "json")

    logging.getLogger("x").warning("größer als %s", "3 µs", extra={"fields": {"what": TIME.encode()}})

    line = capsys.readouterr().err
    assert "größer als 3 µs" in line
    assert json.loads(line)["what"] == str(TIME.encode())


def test_our_handler_writes_to_standard_error_and_nowhere_else() -> None:
    log_setup.configure("info", "text")
    (handler,) = (each for each in logging.getLogger().handlers if type(each).__module__ == log_setup.__name__)

    with pytest.raises(AttributeError, match="standard error"):
        handler.stream = None  # type: ignore[attr-defined]
