"""Requests that schemathesis makes from the service's own description: none is answered with 500, or otherwise than
described, whatever it holds. One after the other, and as chains of calls that pass on what the last one gave.

Bounded by examples here; the long version tries more of everything.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Service

SCHEMATHESIS = shutil.which("schemathesis", path=str(Path(sys.executable).parent))

pytestmark = pytest.mark.skipif(SCHEMATHESIS is None, reason="schemathesis is not installed (pip install -e '.[dev]')")

#: A zip file and protobuf messages are bytes to it.
HOOKS = """
import schemathesis

@schemathesis.serializer("application/zip", "application/x-protobuf")
def raw(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode()
"""
CONFIG = """
generation.allow-x00 = false
[checks]
# beyond some megabytes a list that is too long is 413, not 400
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 428, 429, "5xx"]
"""


@pytest.fixture
def database(tmp_path: Path) -> str:
    """One kind is enough: the description is the same."""
    return str(tmp_path / "control.db")


def try_all(service: Service, tmp_path: Path, *options: str) -> None:
    """Fails with what schemathesis printed, if it found anything. That a request which fits the schema is accepted is
    not looked for: what a tensor holds must fit its datatype, for example, which no schema says."""
    assert SCHEMATHESIS is not None
    (tmp_path / "hooks.py").write_text(HOOKS, encoding="utf-8")
    (tmp_path / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
    done = subprocess.run(
        [SCHEMATHESIS, "--config-file", "schemathesis.toml", "run", f"{service.url}/openapi.json", "--no-color",
         "--checks", "all", "--exclude-checks", "positive_data_acceptance",
         "--generation-deterministic", "--request-timeout", "20", "--warnings", "off", *options],
        capture_output=True, text=True, cwd=tmp_path, timeout=3000,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SCHEMATHESIS_HOOKS": "hooks",
             "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


@pytest.mark.thorough
def test_no_request_is_answered_otherwise_than_described(start_service: Callable[..., Service], tmp_path: Path) -> None:
    service = start_service(max_wait=0.1)

    try_all(service, tmp_path, "--phases", "fuzzing,stateful", "--max-examples", "3")


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_no_request_is_answered_otherwise_than_described_at_length(
    start_service: Callable[..., Service], tmp_path: Path
) -> None:
    service = start_service(max_wait=0.1)

    try_all(service, tmp_path, "--phases", "coverage,fuzzing,stateful", "--max-examples", "50")
