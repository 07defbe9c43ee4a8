"""A call that belongs to a trace: what is put before its header, and taken off again."""

from __future__ import annotations

import pytest

from tenfold_core import errors, telemetry
from tenfold_link.wire.trace_prefix import TRACED, in_trace, without_trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "traceparent", lambda: PARENT)
    method, header = in_trace(5, b"header")
    assert (method, header) == (5 | TRACED, PARENT.encode() + b"header")
    assert without_trace(header) == (PARENT, b"header")


def test_the_bit_is_one_that_every_release_knows() -> None:
    assert TRACED == 0x4000_0000


def test_where_no_span_is_open_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "traceparent", lambda: "")
    assert in_trace(5, b"header") == (5, b"header")


def test_a_header_may_be_no_more_than_the_parent_and_not_less() -> None:
    assert without_trace(PARENT.encode()) == (PARENT, b"")
    with pytest.raises(errors.InvalidArgumentError, match="malformed: a traceparent has 55 bytes"):
        without_trace(PARENT.encode()[:-1])
