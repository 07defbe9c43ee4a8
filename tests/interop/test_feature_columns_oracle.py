"""Feature columns against TensorFlow 1.15, one program run by both: values, hashes, names of variables, parse specs."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from .tensorflow_processes import HERE, interpreter, printed_json
from .test_layers_oracle import differences

pytestmark = pytest.mark.long

PROGRAM = str(HERE / "feature_column_program.py")


@pytest.fixture(scope="module")
def theirs() -> dict[str, Any]:
    answers: dict[str, Any] = printed_json(interpreter("1.15"), PROGRAM, "tensorflow")
    return answers


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    answers: dict[str, Any] = printed_json(sys.executable, PROGRAM, "tenfold")
    return answers


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", ["inputs", "linear", "specs", "crosses"])
def test_the_program_gives_what_tensorflow_gives(ours, theirs, part):
    assert len(theirs[part]) > 3
    assert differences(ours[part], theirs[part], part) == []
