"""Where the time of a program's training steps goes on Tenfold: `other_programs.py CHECKOUTS part-of-name --profile`.

Once warm, some steps are timed, some traced (kernels by op) and some run under cProfile (Python's functions); then the
process ends. As in programs_profile.py, the last two slow a step down: read them as shares.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import sys
import time
from typing import TYPE_CHECKING, Any

from other_programs_role import names_of
from programs_profile import LINES, TRACED, Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

#: Training steps, or seconds of them, before it looks; the seconds over which it then times, and profiles.
WARM_STEPS, WARM_S, LOOK_S = 300, 20.0, 3.0


class Profile:
    """Of one process; `take` makes the calls of its sessions."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self._first: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        #: What is done with the next training step; None before it is warm.
        self._look: Any = None
        self._training = ""

    def take(self, call: Callable[..., Any], fetches: Any, session: Any) -> Any:
        found: list[str] = []
        trains = names_of(fetches, found)
        name = " ".join(sorted(found))
        if self._look is None and trains:
            self._counts[name] = self._counts.get(name, 0) + 1
            since = time.perf_counter() - self._first.setdefault(name, time.perf_counter())
            if self._counts[name] >= WARM_STEPS or (since > WARM_S and self._counts[name] > 3):
                self._training, self._look = name, self._looks(session)
                next(self._look)
        return self._look.send(call) if self._look is not None and name == self._training else call()

    def _looks(self, session: Any) -> Any:
        """Takes a call, gives its value."""
        call = yield
        cpu, taken, deadline = 0.0, 0, time.perf_counter() + LOOK_S
        while time.perf_counter() < deadline or taken < TRACED:
            before = time.process_time()
            value = call()
            cpu, taken = cpu + time.process_time() - before, taken + 1
            call = yield value
        print(f"{self._training}\n{taken} steps: {1e3 * cpu / taken:.3f} ms of processor time a step")
        kernels = Kernels(session.graph)
        options = self._tf.RunOptions(trace_level=self._tf.RunOptions.FULL_TRACE)
        for _ in range(TRACED):
            metadata = self._tf.RunMetadata()
            value = call(options=options, run_metadata=metadata)
            kernels.add(metadata.step_stats)
            call = yield value
        kernels.show(TRACED)
        profile, taken, deadline = cProfile.Profile(), 0, time.perf_counter() + LOOK_S
        while time.perf_counter() < deadline:
            value = profile.runcall(call)
            taken += 1
            call = yield value
        print(f"\nPython's functions over {taken} steps")
        pstats.Stats(profile).sort_stats("tottime").print_stats(LINES)
        sys.stdout.flush()
        os._exit(0)
