"""Loads loops beside the steps: waits until no more are asked for, imports Numba, gives each shell its machine code.

A heavy loop, whose stand-in takes longer than all that, has the loading begin at once; a call of it waits until it is
known whether its machine code is on disk, and if it is, until it is loaded. What is not on disk yet is compiled by a
process of its own (compile.py), for LLVM would hold the interpreter's lock for seconds: one loop after the other,
always the one whose stand-in has cost the most by then, and each is used as soon as it is there. The thread exists
only while there is work, and the interpreter's end waits for it no longer than for one loop. Used by compiling.py.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from tenfold_kernels.compile_process import PROCESS_SECONDS, CompileProcess
from tenfold_kernels.short_turns import short_turns

from . import objects
from .shells import go_on, is_heavy, settle, spent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from functools import partial

    from .loop_spec import LoopSpec

_log = logging.getLogger(__name__)

#: Seconds without a new loop after which loading begins, so that it does not compete with a first step, and the most
#: seconds that new ones may put it off.
_CALM_SECONDS, _MOST_SECONDS = 0.5, 2.0
#: Seconds in a stand-in after which steps count as held up by it: its loop is compiled first, with their own priority.
_URGENT_SECONDS = 0.05


class LoopLoader:
    """Thread-safe. Its queue is bounded by the loops that there are, each for its element types."""

    def __init__(self, calm_seconds: float = _CALM_SECONDS) -> None:
        self._calm_seconds = calm_seconds
        self._changed = threading.Condition()
        #: Shells without machine code that no thread has taken.
        self._waiting: dict[LoopSpec, partial[Any]] = {}
        #: Of the loading thread: those that it took and that are not on disk.
        self._missing: dict[LoopSpec, partial[Any]] = {}
        self._thread: threading.Thread | None = None
        self._process = CompileProcess()
        self._closed = False

    def add(self, spec: LoopSpec, shell: partial[Any]) -> None:
        """Has `shell` call the machine code of `spec` in the end. Never blocks. After `close` it does nothing."""
        with self._changed:
            if self._closed:
                settle(shell, None)
                return
            self._waiting[spec] = shell
            self._changed.notify_all()
            if self._thread is None:
                # a daemon, which `close` waits for: any other would hold up the end for the calm before it works
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
            self._changed.notify_all()
        for shell in self._taken().values():
            settle(shell, None)
        self._process.kill()
        self.join(PROCESS_SECONDS)

    def _work(self) -> None:
        while self._is_time():
            try:
                with short_turns():
                    self._load()
            except Exception:  # the stand-ins go on: that is slower, and no reason for a step to fail
                _log.exception("Loops could not be compiled; their stand-ins go on.")
                self._missing.update(self._taken())
            finally:
                for shell in self._missing.values():
                    settle(shell, None)
                self._missing.clear()

    def _is_time(self) -> bool:
        """True once nothing new has come for a while, or something heavy has; False when there is no more work."""
        with self._changed:
            end = time.monotonic() + _MOST_SECONDS
            while self._waiting and not self._closed and time.monotonic() < end:
                count = len(self._waiting)
                if any(map(is_heavy, self._waiting.values())):
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
            taken, self._waiting = self._waiting, {}
            return taken

    def _load(self) -> None:
        def look() -> bool:
            # loops that are asked for while others are compiled need not wait for these
            self._look()
            return self._closed

        look()
        work = self._compiled()
        self._process.run(["tenfold_kernels.cpu._compiled.compile"], work, look)
        for _ in work:  # without a process, or after its end, here
            pass

    def _look(self) -> None:
        """Loads what is on disk of the loops that were asked for, the heavy ones first."""
        taken = self._taken()
        self._missing.update(taken)
        for spec, shell in sorted(taken.items(), key=lambda item: not is_heavy(item[1])):
            if self._closed:
                return
            if objects.is_on_disk(spec):
                self._finish(spec)
            else:
                go_on(shell)

    def _compiled(self) -> Iterator[tuple[bool, Any]]:
        """Yields whether steps suffer without the next loop, and what it is; loads it once asked for more."""
        while self._missing and not self._closed:
            spec = max(self._missing, key=lambda spec: _urgency(self._missing[spec]))
            yield any(_urgency(self._missing[spec])), _described(spec)
            if self._closed:
                return
            self._finish(spec)
            self._look()

    def _finish(self, spec: LoopSpec) -> None:
        shell = self._missing.pop(spec)
        try:
            settle(shell, objects.compile_spec(spec))
        except Exception:
            _log.exception("A loop could not be compiled; its stand-in goes on.")
            settle(shell, None)


def _urgency(shell: partial[Any]) -> tuple[float, bool]:
    """What orders loops, the last first: what their stand-ins have cost, and what they are going to."""
    seconds = spent(shell)
    return seconds if seconds > _URGENT_SECONDS else 0.0, is_heavy(shell)


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
