"""The option that writes the stories anew: a diff to understand, not to accept."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what the passes do now into the golden stories")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """True if the stories should be written anew. The option exists only if pytest was given this folder."""
    return bool(request.config.getoption("--rewrite", default=False))
