"""The audit log: who did what, a line each, at a task and at the control service. Logger `tenfold.audit`.

A line has `action`, `outcome` ("done", "failed", "refused: …"), `caller`, `role`, and what the action tells besides;
docs/audit.md has all actions. With `--log-format json` each part is a member of the line. Refusals are bounded, so that
nobody fills a disk with them.
Nothing that happens with every step is written here.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from tenfold_core import log_setup
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("tenfold.audit")

#: Who does what nobody asked for: a lease runs out, a session makes room for another.
ITSELF = Caller(Role.ADMIN, "this process")

#: Refusals that are written, of each second; of the others their number.
_REFUSALS = 20


def done(caller: Caller, action: str, outcome: str = "done", **more: object) -> None:
    """Writes that `caller` did `action`. Never blocks but for the log itself. In a process whose logging is its
    program's own, only if the program has set the level of this logger: a trainer that logs at INFO did not ask for
    it."""
    if _log.isEnabledFor(logging.INFO) and (_log.level or log_setup.is_configured()):
        _write(logging.INFO, caller, action, outcome, more)


class Refusals:
    """Writes refusals, so many a second. Any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._second, self._count = 0.0, 0

    def note(self, caller: Caller, action: str, why: str, **more: object) -> None:
        """Writes that `action` was refused to `caller`, and how many refusals were left out before."""
        left_out = 0
        with self._lock:
            now = self._clock()
            if now - self._second >= 1:
                left_out, self._second, self._count = max(0, self._count - _REFUSALS), now, 0
            self._count += 1
            if self._count > _REFUSALS:
                return
        if left_out:
            more = {**more, "left_out": left_out}
        _write(logging.WARNING, caller, action, f"refused: {why}", more)


#: Of this process.
refusals = Refusals()


def _write(level: int, caller: Caller, action: str, outcome: str, more: dict[str, object]) -> None:
    # a path or a name may hold anything, but is one line of the log
    shown = " ".join(f"{name}={value}" for name, value in more.items()).encode("unicode_escape").decode("ascii")
    fields = {"action": action, "outcome": outcome, "caller": caller.name, "role": caller.role.word, **more}
    text = "%s, %s: by %s (%s) %s"
    _log.log(level, text, action, outcome, caller.name, caller.role.word, shown, extra={"fields": fields})
