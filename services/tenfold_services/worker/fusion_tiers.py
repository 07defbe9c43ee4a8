"""When a program is compiled further: hot programs are fused in the background and swapped, never in a step.

    cold      generated code, one kernel a node; a tick a step counts
    probed    for one step each fusible kernel notes the shapes it sees, then takes itself out
    queued    a thread of its own groups the nodes, a process of its own runs LLVM, the result comes from disk
    fused     `program.generated` is another one from the next step on; the ticks are gone

`TENFOLD_FUSION=auto|off|eager` is read once, by the worker. Eager probes the first step and compiles at the beginning
of the third, in its thread: for tests and for measuring. In TensorFlow: XLA's auto-clustering, in spirit.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import collector, env_settings, errors
from tenfold_kernels.fusion.cache import FusionCache, cache_folder

from . import fuse
from .graph_sizes import SMALL_NODES
from .loop_writer import find_loops

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .fuse.nodes import Shape
    from .part import PartNode
    from .program import Program

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


#: Seconds that a process may compile, and between two looks at whether it still should.
_PROCESS_SECONDS, _LOOK_SECONDS = 300.0, 0.2

#: A program of more fusible nodes than this is hot after fewer steps, but not before some: many run only once.
_USUAL_NODES, _FEWEST_STEPS = 250, 4

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
        #: The process that compiles for that thread; None when there is none.
        self._process: subprocess.Popen[bytes] | None = None
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
            if self._process is not None:
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
        """Has a process of its own compile (source, signature) pairs into the cache folder. Blocks until it has.

        In this process LLVM would hold up every step: much of the work holds the interpreter's lock. Never fails:
        what is not in the folder afterwards is compiled here, when it is asked for.
        """
        folder = self.cache.folder
        runs = [run for run in runs if not self.cache.has(*run)]
        if folder is None or not runs or not sys.executable:
            return
        command = [sys.executable, "-m", "tenfold_kernels.fusion.compile", str(folder)]
        try:
            with self._lock:
                if self._closed:
                    return
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            self._wait_for(self._process, json.dumps(runs).encode())
        except OSError as error:
            _log.debug("No process to compile in: %s", error)
        finally:
            self._process = None

    def _wait_for(self, process: subprocess.Popen[bytes], given: bytes) -> None:
        deadline = time.monotonic() + _PROCESS_SECONDS
        with process:
            try:
                process.communicate(given, timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                # The end of this process must not wait for LLVM.
                while process.poll() is None and time.monotonic() < deadline and not self.stopping:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_SECONDS)
            finally:
                process.kill()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs or self.stopping:
                    self._jobs.clear()
                    self._thread = None
                    return
                job = self._jobs.popleft()
            _attempt(job)


def _attempt(job: Callable[[], None]) -> None:
    """A program that cannot be fused is no reason for a step to fail."""
    try:
        job()
    except Exception:
        _log.exception("A program could not be fused; it goes on unfused.")


class Tier:
    """The way of one program from cold to fused."""

    def __init__(self, program: Program, compiler: FusionCompiler, nodes: list[PartNode]) -> None:
        self._program = weakref.ref(program)
        self._compiler = compiler
        self._nodes = nodes
        #: Node → shapes of the inputs and of the output in the probed step. Written by the probes.
        self._shapes: dict[int, tuple[tuple[Shape, ...], Shape]] = {}
        self._eager = compiler.options.mode == "eager"
        #: Ticks until probing, then until fusing. A lost count between threads does no harm.
        self._until_probe = 0 if self._eager else _steps_until_hot(compiler.options.hot_steps, len(nodes))
        self._until_fuse = 2 if self._eager else 4

    def tick(self) -> None:
        """Called at the beginning of each step. Never blocks, unless eager."""
        if self._until_probe > 0:
            self._until_probe -= 1
            return
        program = self._program()
        if program is None:
            return
        if not self._shapes:
            self._shapes[-1] = ((), ())
            self.probe(program)
        self._until_fuse -= 1
        if self._until_fuse > 0:
            return
        if self._eager:
            self._stop_ticking(program)
            _attempt(self.fuse)
        elif self._compiler.submit(self.fuse):
            self._stop_ticking(program)
        else:
            self._until_fuse = self._compiler.options.hot_steps

    def probe(self, program: Program) -> None:
        """Puts a probe before every fusible kernel of the program as it runs now."""
        generated = program.generated
        assert generated is not None
        for node in self._nodes:
            name = f"k{node.index}"
            generated.namespace[name] = _probe(
                node.index, generated.namespace[name], generated.namespace, name, self._shapes
            )

    def fuse(self) -> None:
        """Groups, compiles and swaps. Blocks for seconds."""
        program = self._program()
        if program is None:
            return
        self._shapes.pop(-1, None)
        with collector.held_back() if len(self._nodes) >= SMALL_NODES else contextlib.nullcontext():
            part, region_of, constants, flow = program.part, program.region_of, dict(program.constants), program.flow
            cache = self._compiler.cache
            loops = find_loops(part, region_of, constants, flow, cache) if flow is not None else ()
            fusion = fuse.find_groups(
                part, program.regions, region_of, constants, self._nodes, dict(self._shapes), cache, flow, loops
            )
        if not fusion.groups:
            return
        if not self._eager:
            self._compiler.compile_elsewhere([group.source for group in fusion.groups if group.source is not None])
            if self._compiler.stopping:
                return
        program.swap(fusion)

    def _stop_ticking(self, program: Program) -> None:
        generated = program.generated
        assert generated is not None
        generated.namespace["tick"] = _nothing


def _steps_until_hot(hot_steps: int, nodes: int) -> int:
    """So many steps as a program of _USUAL_NODES fusible nodes, by what they cost: 4 of 64 for a chain of thousands."""
    return min(hot_steps, max(_FEWEST_STEPS, hot_steps * _USUAL_NODES // max(nodes, 1)))


def _probe(
    index: int,
    kernel: Callable[..., Any],
    namespace: dict[str, Any],
    name: str,
    shapes: dict[int, tuple[tuple[Shape, ...], Shape]],
) -> Callable[..., Any]:
    def probe(*inputs: Any) -> Any:
        output = kernel(*inputs)
        namespace[name] = kernel
        if type(output) is np.ndarray and all(type(value) is np.ndarray for value in inputs):
            shapes[index] = tuple(value.shape for value in inputs), output.shape
        return output

    return probe


def _nothing() -> None:
    pass
