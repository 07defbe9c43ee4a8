"""A process of another user, for tests of who is accepted. Only root can start one, as `can_become` says."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - host names are looked up with it, when it can no longer be read
import os

#: A user that owns nothing.
NOBODY = 65534
can_become = os.geteuid() == 0
WHY_NOT = "only root may start a process as another user"


def become_nobody() -> None:
    """This process is NOBODY's from now on. What it will need must be imported: it may read little after this."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
