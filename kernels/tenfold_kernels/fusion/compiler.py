"""When fused runs are compiled: in the background, one program after the other, never in a step.

`TENFOLD_FUSION=auto|off|eager` is read once, by the worker. Its services/worker/program_loader.py hands in a job for
each program that is hot; fuse/ groups nodes there, and runs.py writes and loads here what runs as one.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core import env_settings, errors
from tenfold_kernels.compile_process import CompileProcess
from tenfold_kernels.fusion.cache import FusionCache, cache_folder
from tenfold_kernels.short_turns import short_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_log = logging.getLogger(__name__)

_MODES = ("auto", "off", "eager")
#: Of the variables that set a field of FusionOptions, `TENFOLD_FUSION_HOT_STEPS` and so on, but for these.
PREFIX = "TENFOLD_FUSION_"
NAMES = {"mode": "TENFOLD_FUSION", "cache_folder": "TENFOLD_CACHE_DIR"}


@dataclass(frozen=True, slots=True)
class FusionOptions:
    """How programs get hot. Made once per worker."""

    mode: str = "auto"
    #: Steps of a program before it is probed; a large one is probed earlier (`_steps_until_hot`).
    hot_steps: int = 64
    #: Programs that wait for the compiler; one more stays cold until it ticks again.
    queued_programs: int = 64
    #: Where compiled code is kept for the next process; None keeps none.
    cache_folder: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> FusionOptions:
        """TENFOLD_FUSION, TENFOLD_CACHE_DIR, and a variable for each other field. Raises InvalidArgumentError."""
        mode = environment.get("TENFOLD_FUSION", "auto") or "auto"
        if mode not in _MODES:
            raise errors.invalid_argument(f"TENFOLD_FUSION is {mode!r}; it can be {', '.join(map(repr, _MODES))}.")
        others = {name: text for name, text in environment.items() if name not in NAMES.values()}
        return env_settings.read(cls(mode, cache_folder=cache_folder(environment)), PREFIX, others, NAMES)


#: Never fuses.
NO_FUSION = FusionOptions("off")


class FusionCompiler:
    """Compiles hot programs one after the other in a thread that exists only while there is work. Thread-safe."""

    def __init__(self, options: FusionOptions) -> None:
        self.options, self.cache = options, FusionCache(options.cache_folder)
        self._lock = threading.Lock()
        #: Jobs that no thread has taken. Bounded by `queued_programs`.
        self._jobs: deque[Callable[[], None]] = deque()
        #: The thread that works on the jobs; None when there is none.
        self._thread: threading.Thread | None = None
        #: What compiles for that thread.
        self._process = CompileProcess()
        self._closed = False

    def submit(self, job: Callable[[], None]) -> bool:
        """Queues a job; False when the queue is full or closed. Never blocks."""
        with self._lock:
            if self._closed or len(self._jobs) >= self.options.queued_programs:
                return False
            self._jobs.append(job)
            if self._thread is None:
                # No daemon: a process that ends inside LLVM crashes. It ends after the job under way, a second or so.
                self._thread = threading.Thread(target=self._work, name="tenfold-fusion")
                self._thread.start()
            return True

    def close(self, timeout: float | None = None) -> None:
        """Drops what is queued and waits for the job under way, `timeout` seconds at most."""
        with self._lock:
            self._closed = True
            self._jobs.clear()
        self._process.kill()
        self.join(timeout)

    @property
    def stopping(self) -> bool:
        """Whether results are of no use any more: closed, or the interpreter ends."""
        return self._closed or not threading.main_thread().is_alive()

    def join(self, timeout: float | None = None) -> None:
        """Waits until there is no work left, `timeout` seconds at most."""
        thread = self._thread
        if thread is not None and timeout != 0:
            thread.join(timeout)

    def compile_elsewhere(self, runs: list[tuple[str, str]]) -> None:
        """Has a process of its own compile (source, signature) pairs into the cache folder. Blocks until it has."""
        folder = self.cache.folder
        if folder is not None:
            missing = ((False, run) for run in runs if not self.cache.has(*run))
            self._process.run(["tenfold_kernels.fusion.compile", str(folder)], missing, lambda: self.stopping)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs or self.stopping:
                    self._jobs.clear()
                    self._thread = None
                    return
                job = self._jobs.popleft()
            attempt(job)


def attempt(job: Callable[[], None]) -> None:
    """A program that cannot be fused is no reason for a step to fail."""
    try:
        with short_turns():
            job()
    except Exception:
        _log.exception("A program could not be fused; it goes on unfused.")
