"""Loads loops beside the steps: waits until no more are asked for, imports Numba, gives each shell its machine code.

A heavy loop, whose stand-in takes longer than all that, has the loading begin at once; a call of it waits until it is
known whether its machine code is on disk, and if it is, until it is loaded. What is not on disk yet is compiled by a
process of its own first (compile.py): LLVM would hold the interpreter's lock for seconds. The thread exists only while
there is work, and the interpreter's end does not wait for it longer than for one loop. Used by compiling.py.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from tenfold_kernels.compile_process import PROCESS_SECONDS, CompileProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import partial

    from .loop_spec import LoopSpec

_log = logging.getLogger(__name__)

#: Seconds without a new loop after which loading begins, so that it does not compete with a first step, and the most
#: seconds that new ones may put it off.
_CALM_SECONDS, _MOST_SECONDS = 0.5, 2.0
#: Seconds that a call of a heavy loop waits at most, on a machine that has no time for the thread that loads.
_PATIENCE_SECONDS = 2.0


def switch(shell: partial[Any], loop: Callable[..., Any]) -> None:
    """Calls of `shell` are calls of `loop` from now on; those under way end as they began."""
    # typeshed does not know the method; copying and pickling a partial rely on it
    shell.__setstate__((loop, (), {}, {}))  # type: ignore[attr-defined]


class Heavy:
    """What a heavy loop's shell calls first: its calls wait until it is settled what runs. Thread-safe."""

    def __init__(self, stand_in: Callable[..., Any]) -> None:
        self._function = self.stand_in = stand_in
        self._settled = threading.Event()

    def settle(self, function: Callable[..., Any]) -> None:
        """Calls that wait, and those to come, are calls of `function`."""
        self._function = function
        self._settled.set()

    def __call__(self, *arguments: Any) -> Any:
        if not self._settled.wait(_PATIENCE_SECONDS):
            self._settled.set()
        return self._function(*arguments)


def _settle(shell: partial[Any], loop: Callable[..., Any] | None) -> None:
    """Has `shell` call `loop`; None: it stays with its stand-in, and no call waits for more."""
    waiting = shell.func
    if isinstance(waiting, Heavy):
        switch(shell, loop or waiting.stand_in)
        waiting.settle(loop or waiting.stand_in)
    elif loop is not None:
        switch(shell, loop)


def _is_heavy(shell: partial[Any]) -> bool:
    return isinstance(shell.func, Heavy)


class LoopLoader:
    """Thread-safe. Its queue is bounded by the loops that there are, each for its element types."""

    def __init__(self, calm_seconds: float = _CALM_SECONDS) -> None:
        self._calm_seconds = calm_seconds
        self._changed = threading.Condition()
        #: Shells without machine code that no thread has taken.
        self._waiting: dict[LoopSpec, partial[Any]] = {}
        self._thread: threading.Thread | None = None
        self._process = CompileProcess()
        self._closed = False

    def add(self, spec: LoopSpec, shell: partial[Any]) -> None:
        """Has `shell` call the machine code of `spec` in the end. Never blocks. After `close` it does nothing."""
        with self._changed:
            if self._closed:
                _settle(shell, None)
                return
            self._waiting[spec] = shell
            self._changed.notify_all()
            if self._thread is None:
                # a daemon, which `close` waits for: one that is none would hold up the end for the calm before it works
                self._thread = threading.Thread(target=self._work, name="tenfold-loops", daemon=True)
                atexit.register(self.close)
                self._thread.start()

    def join(self, timeout: float) -> bool:
        """Waits until everything asked for is loaded; whether it is, after `timeout` seconds at most."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return self._thread is None

    def close(self) -> None:
        """Loads nothing more. Waits for the loop under way: a process that ends inside LLVM crashes."""
        with self._changed:
            self._closed = True
            for shell in self._waiting.values():
                _settle(shell, None)
            self._waiting.clear()
            self._changed.notify_all()
        self._process.kill()
        self.join(PROCESS_SECONDS)

    def _work(self) -> None:
        while self._is_time():
            batch: dict[LoopSpec, partial[Any]] = {}
            try:
                from . import machine_code  # first: more loops may come meanwhile

                batch = self._taken()
                self._load(batch, machine_code)
            except Exception:  # the stand-ins go on: that is slower, and no reason for a step to fail
                _log.exception("Loops could not be compiled; their stand-ins go on.")
                batch = batch or self._taken()
            finally:
                for shell in batch.values():
                    _settle(shell, None)

    def _is_time(self) -> bool:
        """True once nothing new has come for a while, or something heavy has; False when there is no more work."""
        with self._changed:
            end = time.monotonic() + _MOST_SECONDS
            while self._waiting and not self._closed and time.monotonic() < end:
                count = len(self._waiting)
                if any(map(_is_heavy, self._waiting.values())):
                    break
                self._changed.wait(self._calm_seconds)
                if len(self._waiting) == count:
                    break
            if not self._waiting or self._closed:
                self._thread = None
                atexit.unregister(self.close)
                return False
            return True

    def _taken(self) -> dict[LoopSpec, partial[Any]]:
        with self._changed:
            batch, self._waiting = self._waiting, {}
            return batch

    def _load(self, batch: dict[LoopSpec, partial[Any]], machine_code: Any) -> None:
        missing = []
        for spec, shell in sorted(batch.items(), key=lambda item: not _is_heavy(item[1])):
            if self._closed:
                return
            if machine_code.is_on_disk(spec):
                _settle(shell, machine_code.compile_spec(spec))
            else:
                missing.append(spec)
                _settle(shell, None)
        work = [_described(spec) for spec in missing]
        self._process.run(["tenfold_kernels.cpu._compiled.compile"], work, lambda: self._closed)
        for spec in missing:
            if self._closed:
                return
            _settle(batch[spec], machine_code.compile_spec(spec))


def _described(spec: LoopSpec) -> tuple[object, ...]:
    """What compile.py makes the loop of again."""
    return (
        spec.function.__module__,
        spec.function.__qualname__,
        spec.codes,
        spec.element.str,
        spec.index.str,
        spec.result,
        sorted(spec.fastmath),
    )
