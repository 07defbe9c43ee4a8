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

#: Training steps, or seconds of all steps, before it looks; the seconds over which it then times, and profiles.
WARM_STEPS, WARM_S, LOOK_S = 300, 20.0, 3.0


class Profile:
    """Of one process; `take` makes the calls of its sessions."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        #: By what is fetched: steps, and their processor time in seconds.
        self._spent: dict[str, tuple[int, float]] = {}
        #: What is done with the next training step; None before it is warm.
        self._look: Any = None
        self._training = ""

    def take(self, call: Callable[..., Any], fetches: Any, session: Any) -> Any:
        found: list[str] = []
        names_of(fetches, found)
        name = " ".join(sorted(found))
        if self._look is not None:
            return self._look.send(call) if name == self._training else call()
        before = time.process_time()
        try:
            return call()
        finally:
            count, spent = self._spent.get(name, (0, 0.0))
            self._spent[name] = count + 1, spent + time.process_time() - before
            longest = max(self._spent, key=lambda each: self._spent[each][1])
            whole = sum(each for _, each in self._spent.values())
            if name == longest and count >= 3 and (count >= WARM_STEPS or whole >= WARM_S):
                self._training, self._look = name, self._looks(session)
                next(self._look)

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
