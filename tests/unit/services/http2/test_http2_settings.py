"""The server's bounds and its transport, from the environment. tests/unit/core/test_env_settings.py has the rules."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_services.http2.http2_settings import DEFAULT_HTTP2_SETTINGS, Http2Settings, transport_from_environment


@pytest.mark.parametrize(
    ("environment", "transport"),
    [({}, "http2"), ({"TENFOLD_GRPC": ""}, "http2"), ({"TENFOLD_GRPC": "http2"}, "http2"),
     ({"TENFOLD_GRPC": "grpcio"}, "grpcio")],
)  # fmt: skip
def test_what_serves(environment: dict[str, str], transport: str) -> None:
    assert transport_from_environment(environment) == transport


def test_there_is_no_third() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"TENFOLD_GRPC is 'quic'; it may be http2 or grpcio\."):
        transport_from_environment({"TENFOLD_GRPC": "quic"})


@pytest.mark.parametrize(("calls", "streams"), [(10, 5), (1, 1), (0, 1), (3, 1)])
def test_a_connection_gets_half_of_the_calls(calls: int, streams: int) -> None:
    found = Http2Settings.from_environment(calls, {})
    assert (found.calls, found.streams) == (calls, streams)
    assert Http2Settings.from_environment(calls, {"TENFOLD_HTTP2_STREAMS": "7"}).streams == 7


def test_what_a_frame_and_a_window_may_be() -> None:
    """gRPC's clients are told these numbers; a message is bounded by what protocol buffers take."""
    assert DEFAULT_HTTP2_SETTINGS.frame_bytes == (1 << 24) - 1
    assert DEFAULT_HTTP2_SETTINGS.stream_window == DEFAULT_HTTP2_SETTINGS.connection_window == (1 << 31) - 1
    assert DEFAULT_HTTP2_SETTINGS.message_bytes == (1 << 31) - 1
    assert DEFAULT_HTTP2_SETTINGS.streams * 2 == DEFAULT_HTTP2_SETTINGS.calls
