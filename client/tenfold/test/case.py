"""`tf.test.TestCase`: a fresh default graph, fixed seeds, a temporary folder and sessions for each test.

The assertions are in assertions.py. Follows TF 1.15's framework/test_util.py in graph mode.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import sys
import tempfile
import threading
import unittest
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph import get_default_graph, get_default_session, reset_default_graph
from tenfold.session.session import Session
from tenfold.test.assertions import Assertions
from tenfold_core.device import canonical_name
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

#: The seed of `random`, NumPy and the default graph before each test.
SEED = 87654321

#: The parent of the temporary folders of this process's tests; made at first use, removed when the process ends.
_root: str | None = None


def get_temp_dir() -> str:
    """A folder for this process's tests: TEST_TMPDIR if that is set, else one that is removed when the process ends."""
    global _root
    if _root is None:
        given = os.environ.get("TEST_TMPDIR")
        if given:
            os.makedirs(given, exist_ok=True)
            _root = given
        else:
            import atexit

            _root = tempfile.mkdtemp(prefix="tenfold-test-")
            atexit.register(shutil.rmtree, _root, ignore_errors=True)
    return _root


class TestCase(Assertions, unittest.TestCase):
    """A test case with a fresh default graph and sessions in this process."""

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._tempdir: str | None = None
        self._cached_session: Any = None

    def setUp(self) -> None:
        super().setUp()
        self._clear_cached_session()
        random.seed(SEED)
        np.random.seed(SEED)
        reset_default_graph()
        get_default_graph().seed = SEED

    def tearDown(self) -> None:
        for thread in self._threads:
            thread.check_termination()
        self._clear_cached_session()
        super().tearDown()

    def _clear_cached_session(self) -> None:
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None

    def get_temp_dir(self) -> str:
        """A folder for this test only."""
        if not self._tempdir:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    def evaluate(self, tensors: Any) -> Any:
        """Values of a structure of tensors, in the default session or else the cached one."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.test_session() as made:
            return made.run(tensors)

    @contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A new session, closed at the end of the block."""
        with Session(graph=graph, config=_config(config, force_gpu)) as session, _placed(session, use_gpu):
            yield session

    @contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """The test's own session, made at its first use and open until its end."""
        if self._cached_session is None:
            self._cached_session = Session(graph=graph, config=_config(config, force_gpu))
        session = self._cached_session
        with session.graph.as_default(), session.as_default(), _placed(session, use_gpu):
            yield session

    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> AbstractContextManager[Any]:
        """`session` for a graph that is given, else `cached_session`."""
        if self.id().endswith(".test_session"):
            # A test loader collected this method because of its name.
            self.skipTest("Not a test.")
        block = self.session if graph is not None else self.cached_session
        return block(graph, config, use_gpu, force_gpu)

    #: Not a test; pytest must not collect it.
    test_session.__test__ = False  # type: ignore[attr-defined]

    def checkedThread(self, target: Any, args: Any = None, kwargs: Any = None) -> CheckedThread:
        """A thread whose error fails the test; the test must join it."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[Any]:
        """Captures what the process writes to `stream`, such as sys.stderr, including native code.

        What it yields has `contents()`, during the block and after it.
        """
        number = stream.fileno()
        with tempfile.TemporaryFile("w+b", dir=self.get_temp_dir()) as caught:
            kept = os.dup(number)
            stream.flush()
            os.dup2(caught.fileno(), number)
            captured = _Captured(stream, caught)
            try:
                yield captured
            finally:
                captured.end()
                os.dup2(kept, number)
                os.close(kept)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:
        """The two names mean the same device, once both are in canonical form."""
        one, other = canonical_name(device1), canonical_name(device2)
        self.assertEqual(one, other, f"Devices {one} and {other} are not equal. {msg or ''}")


class _Captured:
    def __init__(self, stream: Any, file: Any) -> None:
        self._stream, self._file = stream, file
        #: All of it, once the block is over and the file is gone.
        self._whole: str | None = None

    def contents(self) -> str:
        """The text written so far."""
        if self._whole is not None:
            return self._whole
        self._stream.flush()
        self._file.seek(0)
        text: bytes = self._file.read()
        return text.decode("utf-8", "replace")

    def end(self) -> None:
        self._whole = self.contents()


class CheckedThread:
    """A thread whose error fails the test that joins it."""

    def __init__(self, test: Any, target: Any, args: Any = None, kwargs: Any = None) -> None:
        self._test = test
        self._call = functools.partial(target, *(args or ()), **(kwargs or {}))
        self._error: BaseException | None = None
        self._joined = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Blocks until the thread ends; fails the test with its error."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._test.fail(f"Error in checkedThread: {self._error!r}")

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails the test if the thread was not joined."""
        if not self._joined:
            self._test.fail("A checked thread was not joined.")


def _config(config: Any, force_gpu: bool) -> Any:
    made = config_pb2.ConfigProto()
    if config is None:
        made.allow_soft_placement = not force_gpu
        return made
    if callable(config):
        config = config()
    made.CopyFrom(config)
    return made


@contextmanager
def _placed(session: Any, use_gpu: bool) -> Iterator[None]:
    if use_gpu:
        yield
        return
    with session.graph.device("/device:CPU:0"):
        yield


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the calling program, or with `--benchmarks=REGEX` its benchmarks, and exits."""
    arguments = list(sys.argv if argv is None else argv)
    wanted = [each for each in arguments if each.lstrip("-").startswith("benchmarks=") and each.startswith("-")]
    if wanted:
        from tenfold.test.benchmark import run_benchmarks

        run_benchmarks(wanted[0].partition("=")[2])
        sys.exit(0)
    runner: Callable[..., Any] = unittest.main
    runner(module="__main__", argv=arguments)
