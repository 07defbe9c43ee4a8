"""Numbers of requests that must not be served twice, against a model: the last so many are known."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.machines import short_and_long
from tenfold_core import errors
from tenfold_services.rpc.worker_service import RequestIds

_REMEMBERED = 3


class RequestIdsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ids = RequestIds(_REMEMBERED)
        #: Oldest first.
        self.model: list[int] = []

    @rule(request_id=st.integers(0, 6))
    def check(self, request_id: int) -> None:
        if request_id in self.model:
            with pytest.raises(errors.AbortedError, match=f"same RunGraph request was received twice.* {request_id}"):
                self.ids.check(request_id, "RunGraph")
            return
        self.ids.check(request_id, "RunGraph")
        if request_id:
            self.model = [*self.model, request_id][-_REMEMBERED:]

    @invariant()
    def no_more_is_kept(self) -> None:
        assert len(self.ids._known) == len(self.ids._order) == len(self.model)


TestRequestIds, TestRequestIdsLong = short_and_long(RequestIdsMachine)


def test_a_number_that_came_before_is_refused() -> None:
    ids = RequestIds()
    for number in (7, 8, 0, 0):  # 0 is no number
        ids.check(number, "RunGraph")

    with pytest.raises(errors.AbortedError, match="The same RunGraph request was received twice: request_id 7"):
        ids.check(7, "RunGraph")
