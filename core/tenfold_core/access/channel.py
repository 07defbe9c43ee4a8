"""Opens gRPC channels, blocking or asyncio, that show this process's token with every call, over TLS where that is due.

Used by the client's GrpcMaster and by the task's connections to other tasks. The token is looked up with each call, the
certificates with each channel: their files may change under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import protocol, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.roles import Role
    from tenfold_core.access.tokens import TokenSet

    from .credentials import Credentials

#: Methods of Tenfold's own services; their calls say which versions of them the caller speaks.
_OWN = "/tenfold."
#: The metadata by which a call shows its token; gate.bearer reads it.
AUTHORIZATION = "authorization"
#: The metadata by which a caller says that it asks for somebody of a lesser role; and by which CreateSession's answer
#: says what its session may do.
AS_ROLE = "tenfold-role"


def open_channel(
    library: Any, address: str, options: Any, credentials: Credentials, as_role: Role | None = None
) -> TokenChannel:
    """A channel of `library`, which is grpc or grpc.aio, to "host:port". Never blocks. Must be closed. With `as_role`
    its calls may do what that role may, and no more."""
    certificates = credentials.of(address)
    if certificates is None:
        return TokenChannel(library.insecure_channel(address, options=options), credentials.tokens, as_role)
    import grpc

    cert, key, ca = certificates.contents()
    shown: Any = grpc.ssl_channel_credentials(ca, key, cert)
    return TokenChannel(library.secure_channel(address, shown, options=options), credentials.tokens, as_role)


class TokenChannel:
    """`channel`, whose unary calls show the first token of `tokens()`, if there is one, and `as_role`. Closing is the
    channel's."""

    def __init__(self, channel: Any, tokens: Callable[[], TokenSet], as_role: Role | None = None) -> None:
        self._channel, self._tokens = channel, tokens
        self._as_role: tuple[tuple[str, str], ...] = () if as_role is None else ((AS_ROLE, as_role.word),)

    def unary_unary(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """As the channel's."""
        said = self._as_role
        if method.startswith(_OWN):
            said = ((protocol.HEADER, protocol.calls().text()), *said)
        return _TokenCall(self._channel.unary_unary(method, *arguments, **keywords), self._tokens, said)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def __enter__(self) -> TokenChannel:
        self._channel.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._channel.__exit__(*error)

    async def __aenter__(self) -> TokenChannel:
        await self._channel.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._channel.__aexit__(*error)


class _TokenCall:
    """A method of a channel, with the token."""

    __slots__ = ("_call", "_said", "_tokens")

    def __init__(self, call: Any, tokens: Callable[[], TokenSet], said: tuple[tuple[str, str], ...]) -> None:
        self._call, self._tokens, self._said = call, tokens, said

    def __call__(self, request: Any, **keywords: Any) -> Any:
        return self._call(request, metadata=self._metadata(), **keywords)

    def with_call(self, request: Any, **keywords: Any) -> Any:
        return self._call.with_call(request, metadata=self._metadata(), **keywords)

    def _metadata(self) -> tuple[tuple[str, str], ...] | None:
        shown, told = self._tokens().shown, (*self._said, *telemetry.headers())
        if shown is None:
            return told or None
        return ((AUTHORIZATION, f"Bearer {shown}"), *told)
