"""A hostile peer: malformed and malicious requests to all doors of a cluster. hostile.py sends as many as wanted.

Each run of the tests has the same few requests; `make test-long` and `python tests/process/hostile.py` send 100,000.
"""

from __future__ import annotations

import pytest

from .hostile import attack_cluster

REQUESTS, ALL_REQUESTS = 150, 100_000


@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_hostile_requests_neither_crash_nor_hang_nor_grow_the_servers() -> None:
    _attack(REQUESTS, seed=3)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_of_them_neither() -> None:
    _attack(ALL_REQUESTS, seed=0)


def _attack(requests: int, seed: int) -> None:
    result, works = attack_cluster(requests, seed)
    print(result.summary(seed, works))
    assert result.requests == requests
    assert result.hung == []
    assert result.grown() == []
    assert result.answers["INVALID_ARGUMENT"] > requests // 5
    assert result.answers["OK"] > requests // 10
    assert works
