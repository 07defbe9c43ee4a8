"""A pool of helpers for large kernels that tells how often it was used."""

from __future__ import annotations

from typing import Any

from tenfold_kernels import chunks


class CountedPool:
    """A pool of one helper that counts the products it was given."""

    def __init__(self) -> None:
        self._pool = chunks._Pool(1)
        self.jobs = 0

    def share(self, *given: Any) -> bool:
        self.jobs += 1
        return self._pool.share(*given)
