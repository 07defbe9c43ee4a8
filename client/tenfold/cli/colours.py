"""Whether this command's output has colours: what NO_COLOR and CLICOLOR_FORCE say of it, else whether it is a terminal.

NO_COLOR (https://no-color.org) set to anything wins; CLICOLOR_FORCE colours what is no terminal, but for "0".
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def asked_for(environment: Mapping[str, str] = os.environ) -> bool | None:
    """True or False where the environment says so; None: only on a terminal. In the form of click's `color`."""
    if environment.get("NO_COLOR"):
        return False
    return True if environment.get("CLICOLOR_FORCE", "0") not in ("", "0") else None
