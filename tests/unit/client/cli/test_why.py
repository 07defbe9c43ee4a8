"""`tenfold why` as text: the suspect first, then what leads there, then the tasks."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from tenfold.cli.main import cli
from tenfold.cli.why import lines
from tenfold.control import Why


def thread(name: str, doing: str, node: str | None = None) -> dict[str, Any]:
    frames = [{"file": "train.py", "line": 7, "function": "load"}]
    return {"name": name, "main": True, "doing": doing, "node": node, "op": node and "PyFunc", "frames": frames}


def wait(text: str, seconds: float | None) -> dict[str, Any]:
    return {
        "kind": "elements", "text": text, "node": "get", "op": "Dequeue", "resource": "q", "have": 0, "need": 1,
        "sender": None, "tensor": None, "seconds": seconds, "master": "w0",
    }  # fmt: skip


def found(waits: int = 1) -> Why:
    task = {
        "name": "ps0", "state": "running", "reason": "", "answered": True, "silence": "", "host": "h", "pid": 1,
        "waits": [wait(f"wait {number}", 1.25 if number else None) for number in range(waits)],
        "steps": [{"names": ["loss:0", "train"], "seconds": 3.0}],
        "threads": [thread("main", "run"), thread("pool", "node", "read")],
    }  # fmt: skip
    silent = {
        **task, "name": "w1", "state": "failed", "reason": "SIGKILL", "answered": False, "silence": "it was asked",
        "waits": [], "steps": [], "threads": [], "host": None, "pid": None,
    }  # fmt: skip
    whole = {
        "of": "run", "name": "run-1", "suspect": "w1 is gone.", "kind": "absent", "task": "w1", "node": None,
        "because": ["ps0 waits"], "silent": ["w1"], "seconds": 0.5, "tasks": [task, silent],
    }  # fmt: skip
    return Why.from_json(whole)


def test_the_suspect_comes_first_and_the_tasks_last() -> None:
    assert list(lines(found(2), stacks=False)) == [
        "w1 is gone.",
        "",
        "How this is known:",
        "  ps0 waits",
        "",
        "ps0  running",
        "  Session.run of loss:0, train for 3.0 s",
        "  wait 0",
        "  wait 1, for 1.2 s",
        "  thread main waits for a step",
        "  thread pool computes 'read' (PyFunc)",
        "",
        "w1  failed: SIGKILL",
        "  did not answer: it was asked",
    ]


def test_many_waits_are_counted_and_shown_with_the_stacks() -> None:
    assert "  … and 12 more waits" in list(lines(found(20), stacks=False))
    whole = list(lines(found(20), stacks=True))
    assert "  wait 19, for 1.2 s" in whole
    assert "      train.py:7 in load" in whole


@pytest.mark.parametrize("words", [[], ["run-1", "--session", "s"], ["--cluster-name", "c", "--session", "s"]])
def test_one_thing_is_asked_about(words: list[str]) -> None:
    result = CliRunner().invoke(cli, ["why", *words])
    assert result.exit_code == 2
    assert "name one of RUN, --cluster-name and --session" in result.output
