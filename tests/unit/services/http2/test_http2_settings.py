"""The server's bounds and its transport, from the environment. tests/unit/core/test_env_settings.py has the rules."""

from __future__ import annotations

from dataclasses import asdict

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


def test_the_bounds_as_docs_cli_has_them() -> None:
    """What a peer may take by default: changed on purpose, with docs/cli.md, or not at all."""
    mib = 1 << 20
    assert asdict(DEFAULT_HTTP2_SETTINGS) == {
        "frame_bytes": (1 << 24) - 1,
        "stream_window": (1 << 31) - 1,
        "connection_window": (1 << 31) - 1,
        "unread_bytes": 0,
        "message_bytes": (1 << 31) - 1,
        "buffered_bytes": 0,
        "keep_bytes": 64 * mib,
        "streams": 8_192,
        "calls": 16_384,
        "header_list_bytes": 16_384,
        "header_block_bytes": 32_768,
        "continuations": 16,
        "control_burst": 20_000,
        "control_per_second": 2_000.0,
        "strangers_burst": 200,
        "strangers_per_second": 50.0,
        "strangers_share": 0.2,
        "strangers_seconds": 0.005,
        "control_bytes": mib,
        "connections": 8_192,
        "handshake_seconds": 10.0,
        "handshakes": 1_024,
        "stall_seconds": 300.0,
        "least_bytes_per_second": 1_024.0,
        "keepalive_seconds": 60,
        "linger_seconds": 1.0,
    }
