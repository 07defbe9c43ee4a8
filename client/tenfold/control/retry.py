"""When and how often a request is sent again. Data and arithmetic; transport.py does the sending."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter. Only requests that may be repeated are: GET, PUT, DELETE, and a POST that
    carries an Idempotency-Key or is repeatable by nature; any request that never reached the service, too."""

    #: Requests in all, the first one included. 1 turns retries off.
    attempts: int = 4
    first_pause: float = 0.1
    factor: float = 2.0
    longest_pause: float = 2.0

    def pauses(self) -> Iterator[float]:
        """Seconds to wait before each further attempt."""
        pause = self.first_pause
        for _ in range(self.attempts - 1):
            yield random.uniform(pause / 2, pause)
            pause = min(pause * self.factor, self.longest_pause)


DEFAULT_RETRY = RetryPolicy()
NO_RETRY = RetryPolicy(attempts=1)
