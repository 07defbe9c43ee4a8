"""Fixtures of the tests with runs: a control service as a process, a client of it, and where programs meet the test."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import httpx
import pytest

from support.gates import Gate
from support.run_programs import Service
from support.task_processes import PATIENCE
from tenfold.cli.children import Children
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def gate() -> Iterator[Gate]:
    with contextlib.closing(Gate()) as made:
        yield made


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
        monkeypatch.delenv(name)
    with Children() as started:
        yield started


@pytest.fixture
def service(children: Children, tmp_path: Path) -> Iterator[Service]:
    started = Service(children, tmp_path)
    yield started
    with ControlClient(started.url) as client:
        for run in client.runs(states=["PENDING", "RUNNING"]):
            client.stop_run(run["name"])
            client.wait_for_run(run["name"])


@pytest.fixture
def api(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=PATIENCE) as client:
        yield client
