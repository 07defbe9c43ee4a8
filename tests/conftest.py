"""What holds for every test: compiled programs are kept beside the test runner's own cache, not in the user's; what
takes long runs on demand only (`make test-long`); no example of Hypothesis fails for having waited for a processor.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tenfold_kernels.cpu._compiled import compiling

# a test's kernels are machine code from their first call; processes that tests start go the way that users' do
compiling.loops.mode = "blocking"
os.environ.setdefault("TENFOLD_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "tenfold"))
settings.register_profile("beside other tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("beside other tests")

# a shell that runs the tests in the background has Ctrl-C ignored, which children inherit
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("TENFOLD_TEST_LONG"):
        return
    later = pytest.mark.skip(reason="takes long: `make test-long` runs it")
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(later)
