"""What the first process of a pod is told, and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenfold.launchers.pod_process import LAST_WORDS, Task, given, last_words, read_last_words, read_task


def test_the_command_line() -> None:
    assert given(["--end", "/e", "--start", "/s"]) == (Path("/s"), Path("/e"), [])
    assert given(["--end", "/e", "-m", "trainer", "--end", "x"]) == (None, Path("/e"), ["-m", "trainer", "--end", "x"])


def test_the_task_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"name": "ps/0", "program": ["a.py"], "interpreter": ["-O"], "env": {"A": "b"}}
    (tmp_path / "task.json").write_text(json.dumps(said))
    assert read_task(tmp_path, []) == Task("ps/0", ["a.py"], ["-O"], {"A": "b"})
    monkeypatch.setenv("TENFOLD_TASK", "worker/1")
    assert read_task(None, ["a.py", "--x"]) == Task("worker/1", ["a.py", "--x"])
    with pytest.raises(ValueError, match="there is no program"):
        read_task(None, [])


@pytest.mark.parametrize(
    ("code", "error"),
    [(0, None), (-15, None), (1, {"type": "ValueError", "message": "Größe"})],
)
def test_last_words_are_read_as_they_were_written(code: int, error: dict[str, str] | None) -> None:
    assert read_last_words(last_words(code, error).decode()) == (code, error)


def test_last_words_that_are_too_long_lose_their_end() -> None:
    written = last_words(1, {"type": "E", "message": "ü" * 5000, "node": "n"})
    assert len(written) <= LAST_WORDS
    found = read_last_words(written.decode())
    assert found is not None
    code, error = found
    assert error is not None
    assert (code, error["type"], error["node"], error["message"][-2:]) == (1, "E", "n", "ü…")


_OTHERS = ["", "Killed", '{"tenfold": 1', '{"tenfold": 1}', '{"tenfold": 1, "code": 1, "error": 3}']


@pytest.mark.parametrize("text", _OTHERS)
def test_anything_else_is_none(text: str) -> None:
    assert read_last_words(text) is None
