"""What holds for every test: compiled programs and state are kept beside the test runner's own cache, not in the
user's; what takes long runs on demand only (`make test-thorough`, `make test-long`); no example of Hypothesis fails for
having waited for a processor.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support.postgres import PostgresServer, why_not
from support.rewritten import rewrite_all
from tenfold_kernels.cpu._compiled import compiling

# a test's kernels are machine code from their first call; processes that tests start go the way that users' do
compiling.loops.mode = "blocking"
_CACHE = Path(__file__).resolve().parents[1] / ".pytest_cache"
os.environ.setdefault("TENFOLD_CACHE_DIR", str(_CACHE / "tenfold"))
os.environ["XDG_STATE_HOME"] = str(_CACHE / "state")
# sessions of the test runner itself are no programs that a control service should list
os.environ.setdefault("TENFOLD_REPORT", "0")
os.environ.pop("TENFOLD_RUN", None)
if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("beside other tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside other tests")

# none of the tests that are found is garbage; pytest_collection_finish turns it on
gc.disable()

# a shell that runs the tests in the background has Ctrl-C ignored, which children inherit
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        rewrite_all(Path(__file__).parent)


class _Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


@pytest.fixture(autouse=True)
def failures_of_fusion() -> Iterator[list[str]]:
    """A program that cannot be fused goes on unfused and says so in the log: in a test that is a failure.

    The fixture's value is what was logged; a test that wants the failure clears it.
    """
    log, kept = logging.getLogger("tenfold_kernels.fusion.compiler"), _Kept()
    log.addHandler(kept)
    yield kept.messages
    log.removeHandler(kept)
    assert not kept.messages, "\n".join(kept.messages)


@pytest.fixture(autouse=True)
def nothing_is_watched_afterwards() -> Iterator[None]:
    """A test that leaves an observer of sessions would have those of later tests read their global step as they end."""
    yield
    observing = sys.modules.get("tenfold.session.observing")
    left = observing is not None and observing.observer is not None
    if observing is not None:
        observing.observer = None
    assert not left


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for the tests of this process; where there can be none the test is skipped, with the reason."""
    if why := why_not():
        pytest.skip(why)
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    with postgres_server.database() as url:
        yield url


def pytest_collection_finish() -> None:
    """A test that collects garbage need not go through all tests that there are: that takes more than a second."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What a file's tests leave is collected with the last of them, which is told of it, and what is alive then is not
    gone through again: collections were an eighth of the time of all tests."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` leaves out both kinds; `make test-thorough` runs what it left out of the first, `test-long` all."""
    if os.environ.get("TENFOLD_TEST_LONG"):
        return
    later = {"long": pytest.mark.skip(reason="takes long: `make test-long` runs it")}
    if not os.environ.get("TENFOLD_TEST_THOROUGH"):
        later["thorough"] = pytest.mark.skip(reason="another case of a quicker test: `make test-thorough` runs it")
    for item in items:
        for name, skipped in later.items():
            if item.get_closest_marker(name) is not None:
                item.add_marker(skipped)
