"""How often a compare-and-set is tried: one number, and one error, for clusters and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Several services on one database do not cause so many conflicts in a row.
ATTEMPTS = 20


def attempts(what: str) -> Iterator[int]:
    """`next` counts an attempt; after ATTEMPTS it raises ABORTED: `what` is being changed by many at once."""
    yield from range(1, ATTEMPTS + 1)
    raise ApiError("too-many-changes", f"{what} is being changed by many at once; send the request again.")
