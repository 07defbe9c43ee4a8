"""Numbers of requests."""

from __future__ import annotations

from tenfold_core.request_id import new_request_id


def test_each_is_another_one_that_fits() -> None:
    ids = {new_request_id() for _ in range(100)}

    assert len(ids) == 100
    assert all(0 < number < 1 << 63 for number in ids)
