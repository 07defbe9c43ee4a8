"""What the fuzzer has found stays mended: every input of the corpus, and the seeds of every target, without the fuzzer.

They are tried in a process of their own, which may take 512 MiB on top of what it has, an input a second; what ends it,
or hangs, is the input that was tried last.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from fuzz import harness
from fuzz.targets import TARGETS

#: Of all inputs together, on a busy machine; on a quiet one they take some four.
_SECONDS = 200.0
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(_SECONDS + 40)]


@pytest.fixture(scope="module")
def tried() -> dict[str, dict[str, dict[str, Any]]]:
    """Target → input → what came of it."""
    command = [sys.executable, str(harness.ROOT / "tests" / "fuzz" / "replay.py")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        out, err, end = done.stdout, done.stderr, f"it ends the process ({done.returncode})"
    except subprocess.TimeoutExpired as error:
        out, err, end = (error.stdout or b"").decode(), (error.stderr or b"").decode(), "it hangs"
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in TARGETS}
    for line in out.splitlines():
        told = json.loads(line)
        found[told["target"]][told["input"]] = {"fault": f"{end}: {err[-2000:]}", **told}
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_the_corpus_is_a_fault(name: str, tried: dict[str, dict[str, dict[str, Any]]]) -> None:
    assert {path.name for path in harness.kept(name)} <= set(tried[name]), "these were not come to"
    assert {label: told["fault"] for label, told in tried[name].items() if told["fault"]} == {}


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read(name: str, tried: dict[str, dict[str, dict[str, Any]]]) -> None:
    """A target whose seeds are all refused would try nothing."""
    whole = [label for label, told in tried[name].items() if label.startswith("seed") and told.get("refused") == 0]

    assert whole


def test_every_folder_of_the_corpus_is_a_targets() -> None:
    folders = {path.name for path in harness.CORPUS.iterdir()} if harness.CORPUS.is_dir() else set()

    assert folders <= set(TARGETS)
