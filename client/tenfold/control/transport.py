"""Does what exchange.py decides: `Transport` blocks (httpx.Client, thread-safe), `AsyncTransport` awaits
(httpx.AsyncClient, one event loop). No decisions here.

Proxies of the environment are ignored: cluster traffic stays in the cluster.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from tenfold.control.addresses import Addresses
from tenfold.control.exchange import Action, Close, Exchange, NextLine, Open, Pause, Peer, Send, steps, streamed
from tenfold.control.request import Emit
from tenfold.control.request_spans import send, send_async
from tenfold_core import protocol
from tenfold_core.access.https import https_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator, Mapping

    from tenfold.control.request import Request, Stream, Updates
    from tenfold.control.retry import RetryPolicy
    from tenfold_core.access.credentials import Shown

T = TypeVar("T")

#: A stream of events that is silent for longer than this is broken: the service writes something more often.
_SILENCE_S = 60.0
#: A connection that is not there after so long will not come; where a request may be sent again, it is tried again.
_CONNECT_S = 3.0


class Transport:
    """A connection pool to a control service, or to several that share a database."""

    def __init__(self, url: str, token: Shown, timeout: float, retry: RetryPolicy) -> None:
        self.peer = Peer(Addresses(url), timeout, retry, token)
        self._http = httpx.Client(**_options(self.peer))

    def close(self) -> None:
        self._http.close()

    def carry_out(self, exchange: Exchange[T]) -> T:
        """The call's result. Blocks; raises its errors."""
        machine = steps(exchange, self.peer)
        try:
            action = next(machine)
            while True:
                try:
                    result = self._do(action)
                except Exception as error:
                    action = machine.throw(error)
                else:
                    action = machine.send(result)
        except StopIteration as end:
            answer: T = end.value
            return answer

    def stream(self, source: Stream[T] | Updates[T]) -> Iterator[T]:
        """A stream's items. Blocks between them; the connection is closed with the iterator."""
        machine = streamed(source, self.peer)
        reading = _Reading()
        try:
            action = next(machine)
            while True:
                try:
                    result = None
                    if isinstance(action, Emit):
                        yield action.item
                    else:
                        result = self._do(action, reading)
                except Exception as error:
                    action = machine.throw(error)
                else:
                    action = machine.send(result)
        except StopIteration:
            return
        finally:
            if reading.response is not None:
                reading.response.close()

    def _do(self, action: Action, reading: _Reading | None = None) -> Any:
        match action:
            case Send(request, timeout, url):
                return send(self._http, _built(self._http, request, timeout, url))
            case Pause(seconds):
                time.sleep(seconds)
            case Open(path, params, headers, url):
                assert reading is not None
                response = send(self._http, _stream_request(self._http, url + path, params, headers), stream=True)
                reading.response = response
                if response.is_success:
                    reading.lines = response.iter_lines()
                else:
                    response.read()
                return response
            case NextLine():
                assert reading is not None
                return next(reading.lines, None)
            case Close():
                if reading is not None and reading.response is not None:
                    reading.response.close()
            case _:
                return action.do()
        return None


class _Reading:
    """The stream that is open, if one is."""

    response: httpx.Response | None = None
    lines: Iterator[str]


class AsyncTransport:
    """The same for one event loop."""

    def __init__(self, url: str, token: Shown, timeout: float, retry: RetryPolicy) -> None:
        self.peer = Peer(Addresses(url), timeout, retry, token)
        self._http = httpx.AsyncClient(**_options(self.peer))

    async def close(self) -> None:
        await self._http.aclose()

    async def carry_out(self, exchange: Exchange[T]) -> T:
        """The call's result; raises its errors. Cancelling it gives up the request, whatever became of it."""
        machine = steps(exchange, self.peer)
        try:
            action = next(machine)
            while True:
                try:
                    result = await self._do(action)
                except Exception as error:
                    action = machine.throw(error)
                else:
                    action = machine.send(result)
        except StopIteration as end:
            answer: T = end.value
            return answer

    async def stream(self, source: Stream[T] | Updates[T]) -> AsyncIterator[T]:
        """A stream's items; the connection is closed with the iterator."""
        machine = streamed(source, self.peer)
        reading = _AsyncReading()
        try:
            action = next(machine)
            while True:
                try:
                    result = None
                    if isinstance(action, Emit):
                        yield action.item
                    else:
                        result = await self._do(action, reading)
                except Exception as error:
                    action = machine.throw(error)
                else:
                    action = machine.send(result)
        except StopIteration:
            return
        finally:
            if reading.response is not None:
                await reading.response.aclose()

    async def _do(self, action: Action, reading: _AsyncReading | None = None) -> Any:
        match action:
            case Send(request, timeout, url):
                return await send_async(self._http, _built(self._http, request, timeout, url))
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Open(path, params, headers, url):
                assert reading is not None
                opening = _stream_request(self._http, url + path, params, headers)
                response = await send_async(self._http, opening, stream=True)
                reading.response = response
                if response.is_success:
                    reading.lines = response.aiter_lines()
                else:
                    await response.aread()
                return response
            case NextLine():
                assert reading is not None
                return await anext(reading.lines, None)
            case Close():
                if reading is not None and reading.response is not None:
                    await reading.response.aclose()
            case _:
                return await asyncio.to_thread(action.do)
        return None


class _AsyncReading:
    response: httpx.Response | None = None
    lines: AsyncIterator[str]


class _Showing(httpx.Auth):
    """Each request shows the token that is to be shown when it is sent."""

    def __init__(self, token: Shown) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._token() if callable(self._token) else self._token
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        yield request


def _options(peer: Peer) -> dict[str, Any]:
    secure = any(url.startswith("https:") for url in peer.addresses.urls)
    return {
        "verify": https_context() if secure else True,
        "auth": _Showing(peer.token),
        "headers": {protocol.HEADER: protocol.rest().text()},
        "timeout": peer.timeout,
        "trust_env": False,
        "limits": httpx.Limits(max_connections=64, max_keepalive_connections=16),
    }


def _built(http: httpx.Client | httpx.AsyncClient, request: Request[Any], timeout: float, url: str) -> httpx.Request:
    return http.build_request(
        request.method,
        url + request.path,
        json=request.json,
        content=request.content,
        params=_known(request.params or {}),
        headers=dict(request.headers or {}),
        timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_S)),
    )


def _stream_request(
    http: httpx.Client | httpx.AsyncClient, url: str, params: Mapping[str, Any], headers: Mapping[str, str]
) -> httpx.Request:
    # no time-out between events: the service writes a comment every few seconds
    return http.build_request("GET", url, params=_known(params), headers=dict(headers), timeout=_SILENCE_S)


def _known(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
