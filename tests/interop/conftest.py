"""Real TensorFlow, in a virtual environment of its own (`make tf-env`), as the oracle.

TensorFlow is never imported here: its wheel would pull its own protobuf registrations and half a gigabyte into the test
process. A test sends a script to the other interpreter and reads JSON back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .tensorflow_processes import VERSIONS, Forks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def forks() -> Iterator[dict[str, Forks]]:
    """Version → its TensorFlow, imported once for all scripts of this session."""
    forks = {version: Forks(version) for version in VERSIONS}
    yield forks
    for each in forks.values():
        each.close()


@pytest.fixture(scope="session")
def ask_tensorflow(forks: dict[str, Forks]) -> Callable[..., Any]:
    """A function that runs a script under real TensorFlow and gives the JSON it prints on its last line.

    Skips the test, saying why, where there is no TensorFlow environment.
    """
    return forks["2.21"].ask
