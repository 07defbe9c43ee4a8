"""Real TensorFlow, in a virtual environment of its own (`make tf-env`), as the oracle.

TensorFlow is never imported here: its wheel would pull its own protobuf registrations and half a gigabyte into the test
process. A test sends a script to the other interpreter and reads JSON back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .tensorflow_processes import interpreter, printed_json

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def ask_tensorflow() -> Callable[..., Any]:
    """A function that runs a script under real TensorFlow and gives the JSON it prints on its last line.

    Skips the test, saying why, where there is no TensorFlow environment.
    """
    python = interpreter("2.21")

    def ask(script: str, *arguments: str) -> Any:
        return printed_json(python, "-c", script, *arguments)

    return ask
