"""A store that speaks S3 on loopback, with an empty bucket for each test (`make engines` installs it)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import s3

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.S3Server]:
    if (why := s3.why_not()) is not None:
        pytest.skip(why)
    made = s3.S3Server()
    yield made
    made.close()


@pytest.fixture
def store(s3_server: s3.S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.S3Server]:
    """The server, empty, in this process's environment."""
    s3_server.clear()
    for name, value in s3_server.variables.items():
        monkeypatch.setenv(name, value)
    with s3.forgotten_file_systems():
        yield s3_server
