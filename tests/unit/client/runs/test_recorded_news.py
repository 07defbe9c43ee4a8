"""When a program tells what it recorded: once, again when it has changed, and only the task that leads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tenfold.runs import recorded, recorded_news
from tenfold.runs.recorded_news import RecordedNews, update

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """What the program's parameters are."""
    found = {"lr": 0.1}
    monkeypatch.setattr(recorded, "parameters", lambda: dict(found))
    monkeypatch.setattr(recorded_news, "source_of", lambda folder, seconds: None)
    return found


def test_it_is_told_until_it_is_accepted_and_again_when_it_changes(values: dict[str, float]) -> None:
    news = RecordedNews()

    first, again = news.of("worker", 0), news.of("worker", 0)
    news.accepted()
    nothing = news.of("worker", 0)
    values["lr"] = 0.2

    assert first == again
    assert first["recorded"]["parameters"] == {"lr": 0.1}
    assert nothing == {}
    assert news.of("worker", 0)["recorded"]["parameters"] == {"lr": 0.2}


@pytest.mark.parametrize(("job", "index"), [("ps", 0), ("worker", 1)])
def test_other_tasks_tell_nothing(values: dict[str, float], job: str, index: int) -> None:
    assert RecordedNews().of(job, index) == {}


def test_a_service_that_does_not_understand_it_is_not_told_again(values: dict[str, float]) -> None:
    news = RecordedNews()
    news.of("worker", 0)

    assert news.refused()
    assert news.of("worker", 0) == {}
    assert not news.refused()


def test_it_is_written_to_the_file_that_the_environment_names(
    values: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / recorded_news.NAME
    monkeypatch.setenv(recorded_news.FILE, str(file))
    update(file, {"run": "run-1"})

    RecordedNews().of("chief", 0)

    held = json.loads(file.read_text())
    assert (held["run"], held["recorded"]["parameters"]) == ("run-1", {"lr": 0.1})
    assert [each.name for each in tmp_path.iterdir()] == [recorded_news.NAME]


def test_a_file_that_cannot_be_written_is_no_error(
    values: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(recorded_news.FILE, str(tmp_path / "none" / "f.json"))

    assert RecordedNews().of("worker", 0)["recorded"]["parameters"] == {"lr": 0.1}
    assert "cannot be written" in caplog.text
