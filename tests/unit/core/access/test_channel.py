"""Channels that show the token with every call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenfold_core import protocol, telemetry
from tenfold_core.access.channel import AS_ROLE, TokenChannel, open_channel
from tenfold_core.access.credentials import Credentials
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import Token, TokenSet, digest_of

if TYPE_CHECKING:
    import pytest

SPOKEN = (protocol.HEADER, protocol.calls().text())


class Call:
    def __init__(self, made: tuple[Any, ...]) -> None:
        self.made = made

    def __call__(self, request: Any, **keywords: Any) -> Any:
        return ("call", *self.made, request, keywords)

    def with_call(self, request: Any, **keywords: Any) -> Any:
        return ("with_call", *self.made, request, keywords)


class Channel:
    def __init__(self) -> None:
        self.done: list[Any] = []

    def unary_unary(self, method: str, *arguments: Any, **keywords: Any) -> Call:
        return Call((method, arguments, keywords))

    def close(self) -> str:
        return "closed"

    def __enter__(self) -> None:
        self.done.append("enter")

    def __exit__(self, *error: Any) -> bool:
        self.done.append(error)
        return True

    async def __aenter__(self) -> None:
        self.done.append("aenter")

    async def __aexit__(self, *error: Any) -> bool:
        self.done.append(error)
        return True


def tokens(*texts: str) -> TokenSet:
    return TokenSet((text, Token(digest_of(text))) for text in texts)


def test_a_call_shows_what_is_the_token_then_the_role_and_what_is_spoken() -> None:
    held = [tokens("the-first", "the-second")]
    channel: Any = TokenChannel(Channel(), lambda: held[0], Role.RUN_UNTRUSTED)
    call = channel.unary_unary("/tenfold.MasterService/RunStep", "to", response="from")

    first = call("request", timeout=3)
    held[0] = tokens("the-second")
    second = call.with_call("request", timeout=4)

    told = (SPOKEN, (AS_ROLE, "run:untrusted"))
    method = ("/tenfold.MasterService/RunStep", ("to",), {"response": "from"}, "request")
    assert first == ("call", *method, {"metadata": (("authorization", "Bearer the-first"), *told), "timeout": 3})
    assert second == ("with_call", *method, {"metadata": (("authorization", "Bearer the-second"), *told), "timeout": 4})


def test_another_service_is_not_told_what_is_spoken_and_without_anything_there_is_no_metadata() -> None:
    channel: Any = TokenChannel(Channel(), TokenSet)
    assert channel.unary_unary("/grpc.health.v1.Health/Check")("request")[-1] == {"metadata": None}
    assert channel.unary_unary("/tenfold.X/Y")("request")[-1] == {"metadata": (SPOKEN,)}


def test_a_trace_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "headers", lambda: (("traceparent", "00-1"),))
    channel: Any = TokenChannel(Channel(), lambda: tokens("the-token"))
    metadata = channel.unary_unary("/other/Call")("request")[-1]["metadata"]
    assert metadata == (("authorization", "Bearer the-token"), ("traceparent", "00-1"))


async def test_it_closes_as_the_channel_does() -> None:
    inner = Channel()
    channel: Any = TokenChannel(inner, TokenSet)
    assert channel.close() == "closed"
    with channel as entered:
        assert entered is channel
        raise KeyError
    async with channel as entered:
        assert entered is channel
        raise IndexError
    assert [each if isinstance(each, str) else each[0] for each in inner.done] == [
        *("enter", KeyError),
        *("aenter", IndexError),
    ]


def test_tls_is_for_the_addresses_that_want_it() -> None:
    opened: list[Any] = []

    def secure(address: str, shown: Any, options: Any) -> Channel:
        opened.append(("secure", address, shown is not None, options))
        return Channel()

    def insecure(address: str, options: Any) -> Channel:
        opened.append(("insecure", address, options))
        return Channel()

    library = SimpleNamespace(secure_channel=secure, insecure_channel=insecure)
    certificates: Any = SimpleNamespace(
        wanted_at=lambda address: address.startswith("far"), contents=lambda: (None, None, None)
    )
    credentials = Credentials(lambda: tokens("the-token"), certificates)

    for address in ("far:1", "near:1"):
        channel: Any = open_channel(library, address, [("a", 1)], credentials, Role.READ)
        metadata = channel.unary_unary("/other/Call")("request")[-1]["metadata"]
        assert metadata == (("authorization", "Bearer the-token"), (AS_ROLE, "read"))

    assert opened == [("secure", "far:1", True, [("a", 1)]), ("insecure", "near:1", [("a", 1)])]
