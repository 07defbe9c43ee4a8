"""How long a compare-and-set is tried: one bound, and one error, for clusters and runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: So often at least, and for so many seconds: of several services on one database the one that has just changed an
#: object is ahead of those that have to read it first, and may be so many times in a row.
ATTEMPTS, PATIENCE = 20, 5.0


def attempts(what: str) -> Iterator[int]:
    """`next` counts an attempt; after ATTEMPTS and PATIENCE it raises ABORTED: `what` is being changed by many."""
    end, number = time.monotonic() + PATIENCE, 0
    while number < ATTEMPTS or time.monotonic() < end:
        number += 1
        yield number
    raise ApiError("too-many-changes", f"{what} is being changed by many at once; send the request again.")
