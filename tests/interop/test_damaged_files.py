"""Checkpoints, meta graphs, SavedModels and records that are cut, changed, foreign, folders or gone: the errors for
them are TensorFlow's, but where ours says more.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .tensorflow_processes import HERE, interpreter, printed_json

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = str(HERE / "damaged_files.py")
#: (TensorFlow's, ours) → why they differ.
REASONS = {
    ("OutOfRangeError", "DataLossError"): "a program takes OutOfRangeError for the end of its input",
    ("InternalError", "DataLossError"): "the file is at fault, not the program",
    ("DataLossError", "FailedPreconditionError"): "a folder is no damaged file",
    ("UnicodeDecodeError", "OSError"): "ours names the file; TensorFlow reads a binary file as text",
}


@pytest.mark.timeout(240)
@pytest.mark.thorough
def test_errors_are_tensorflows_but_for_those_listed(tmp_path: Path) -> None:
    theirs = printed_json(interpreter("1.15"), PROGRAM, "tensorflow", str(tmp_path))
    ours = printed_json(sys.executable, PROGRAM, "tenfold", str(tmp_path))

    differing = {case: (theirs[case], ours[case]) for case in theirs if ours[case] != theirs[case]}
    assert {case: pair for case, pair in differing.items() if pair not in REASONS} == {}
    assert set(REASONS) - set(differing.values()) == set()
