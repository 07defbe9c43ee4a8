"""A link's bounds and its mode, from the environment. tests/unit/core/test_env_settings.py has the rules."""

from __future__ import annotations

import sys
from dataclasses import asdict

import pytest

from tenfold_core import errors
from tenfold_link import link_settings
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings

read = LinkSettings.from_environment


def test_the_bounds_as_docs_cli_has_them() -> None:
    """What a peer may take by default: changed on purpose, with docs/cli.md, or not at all."""
    mib = 1 << 20
    assert read({}) == DEFAULT_LINK_SETTINGS
    assert asdict(DEFAULT_LINK_SETTINGS) == {
        "mode": "auto",
        "shared_memory": sys.platform == "linux",
        "shared_threshold": 131_072,
        "port": 0,
        "streams": 4,
        "far_seconds": 0.001,
        "arena_bytes": 1024 * mib,
        "arena_keep_bytes": 256 * mib,
        "receive_keep_bytes": 256 * mib,
        "frame_bytes": 16_384 * mib,
        "header_bytes": 64 * mib,
        "buffers_per_frame": 65_536,
        "calls_in_flight": 16_384,
        "outbound_high_water": 4 * mib,
        "outbound_bytes": 4096 * mib,
        "peer_outbound_bytes": 0,
        "peer_inbound_bytes": 0,
        "inbound_bytes": 0,
        "mapping_bytes": 0,
        "hello_seconds": 5.0,
        "handshakes": 256,
        "tokens": 4096,
        "links": 4096,
        "links_per_peer": 2048,
        "token_seconds": 30.0,
        "ping_every_seconds": 2.5,
        "ping_answer_seconds": 7.0,
        "retry_seconds": 30.0,
    }


@pytest.mark.parametrize(
    ("platform", "text", "shared"),
    [
        ("linux", None, True),
        ("linux", "auto", True),
        ("linux", "", True),
        ("linux", "off", False),
        ("darwin", "auto", False),
    ],
)
def test_shared_memory_is_used_where_there_is_some(
    monkeypatch: pytest.MonkeyPatch, platform: str, text: str | None, shared: bool
) -> None:
    monkeypatch.setattr(link_settings.sys, "platform", platform)
    assert read({} if text is None else {"TENFOLD_SHARED_MEMORY": text}).shared_memory is shared


def test_names_of_their_own() -> None:
    found = read({"TENFOLD_LINK": "tcp", "TENFOLD_SHARED_MEMORY_THRESHOLD": "5", "TENFOLD_LINK_PORT": "65535"})
    assert (found.mode, found.shared_threshold, found.port) == ("tcp", 5, 65_535)


@pytest.mark.parametrize(
    ("name", "value", "may"),
    [
        ("TENFOLD_SHARED_MEMORY", "on", "auto or off"),
        ("TENFOLD_LINK", "udp", "auto"),
        ("TENFOLD_LINK_PORT", "65536", "a port from 1 to 65535, or 0"),
    ],
)
def test_what_may_not_be(name: str, value: str, may: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as caught:
        read({name: value})
    assert name in caught.value.message
    assert value in caught.value.message
    assert may in caught.value.message
