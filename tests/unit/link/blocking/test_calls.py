"""A pending call's gate: shut while its caller waits, opened once."""

from __future__ import annotations

from tenfold_link.blocking.calls import PendingCall


def test_a_gate_is_shut_and_opened() -> None:
    call = PendingCall(7)
    assert (call.number, call.answer, call.error, call.gate) == (7, None, None, None)
    call.open_gate()
    gate = call.shut_gate()
    assert call.gate is gate
    assert gate.locked()
    call.open_gate()
    assert not gate.locked()
    assert call.gate is None
    assert call.shut_gate() is not gate
