"""A task's own output folder: asked for by the environment, sent at the end, kept where nobody takes it."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tenfold.control
from tenfold.runs import output_sender
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ASKED = {"TENFOLD_RUN": "run-1", "TENFOLD_CONTROL": "http://x", "TENFOLD_TASK": "worker/2", "TENFOLD_OUTPUT_SEND": "1"}


class Client:
    """Notes what it is sent."""

    sent: list[Any] = []  # noqa: RUF012
    refusal: errors.OpError | None = None

    def __init__(self, *_: object) -> None:
        self.sent.clear()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send_output(self, run: str, job: str, index: int, path: str, file: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.sent.append((run, job, index, path, Path(file).read_text()))


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[output_sender.OutputSender]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tenfold.control, "ControlClient", Client)
    monkeypatch.delenv("TENFOLD_OUTPUT", raising=False)
    for name, value in ASKED.items():
        monkeypatch.setenv(name, value)
    before = signal.getsignal(signal.SIGTERM)
    found = output_sender.begin()
    assert found is not None
    monkeypatch.setenv("TENFOLD_OUTPUT", os.environ["TENFOLD_OUTPUT"])
    yield found
    signal.signal(signal.SIGTERM, before)


def test_files_are_sent_and_links_are_not(sender: output_sender.OutputSender) -> None:
    folder = Path(os.environ["TENFOLD_OUTPUT"])
    (folder / "b").mkdir()
    (folder / "b" / "c.txt").write_text("c")
    (folder / "a.txt").write_text("a")
    (folder / "link").symlink_to("/etc/passwd")

    sender.finish()
    sender.finish()

    assert Client.sent == [("run-1", "worker", 2, "a.txt", "a"), ("run-1", "worker", 2, "b/c.txt", "c")]
    assert not folder.exists()


def test_what_nobody_takes_stays_and_the_log_says_where(
    sender: output_sender.OutputSender, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Client, "refusal", errors.UnavailableError(None, None, "it is away"))
    (Path(sender.folder) / "a.txt").write_text("a")

    sender.finish()

    assert (Path(sender.folder) / "a.txt").exists()
    assert "/tenfold-unsent-" in sender.folder, "what is named tenfold-output is removed by the next task"
    assert f"output of this task stays in {sender.folder}" in caplog.text
    assert "it is away" in caplog.text


@pytest.mark.parametrize("missing", sorted(ASKED))
def test_nothing_is_made_unless_all_is_known(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ASKED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(missing)

    assert output_sender.begin() is None
