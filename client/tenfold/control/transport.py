"""One HTTP request to the control service: sent, repeated where that is allowed, its failure turned into a tf.errors
exception.

Under client.py and remote_session.py. Blocking and thread-safe. Proxies of the environment are ignored: cluster
traffic stays in the cluster.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx

from tenfold.control.event_stream import Event, parse_events
from tenfold.control.problem import error_of
from tenfold.control.retry import NO_RETRY, RetryPolicy
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Statuses of a request that did nothing and may succeed later.
_NOT_NOW = (429, 503)
#: A stream of events that is silent for longer than this is broken: the service writes something more often.
_SILENCE_S = 60.0


class Transport:
    """A connection pool to one control service."""

    def __init__(self, url: str, token: str | None, timeout: float, retry: RetryPolicy) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._retry = retry
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            trust_env=False,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
        )

    def close(self) -> None:
        self._http.close()

    def json(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        """The answer's JSON object."""
        answer = self.send(method, path, **more).json()
        return answer if isinstance(answer, dict) else {"items": answer}

    def send(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        repeatable: bool | None = None,
    ) -> httpx.Response:
        """Sends one request; blocks at most `timeout` seconds an attempt. `repeatable` (default: all but POST) permits
        to send it again when the connection broke.

        Raises the `tf.errors` class of a problem answer, with a ControlProblem as its cause, UnavailableError
        when the service cannot be reached, and DeadlineExceededError when it does not answer in time.
        """
        if repeatable is None:
            repeatable = method != "POST"
        pauses = (self._retry if repeatable else NO_RETRY).pauses()
        connect_pauses = self._retry.pauses()
        while True:
            try:
                response = self._http.request(
                    method,
                    path,
                    json=json,
                    content=content,
                    params={k: v for k, v in (params or {}).items() if v is not None},
                    headers=dict(headers or {}),
                    timeout=self.timeout if timeout is None else timeout,
                )
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                if (pause := next(connect_pauses, None)) is None:
                    raise self._unreachable(method, path, error) from error
            except httpx.TimeoutException as error:
                if (pause := next(pauses, None)) is None:
                    text = f"{self.url} did not answer {method} {path} within {timeout or self.timeout:g} s."
                    raise errors.DeadlineExceededError(None, None, text) from error
            except httpx.TransportError as error:
                if (pause := next(pauses, None)) is None:
                    raise self._unreachable(method, path, error) from error
            else:
                if response.is_success:
                    return response
                if response.status_code not in _NOT_NOW or (pause := next(pauses, None)) is None:
                    raise self._refused(response)
            time.sleep(pause)

    def events(self, path: str, params: Mapping[str, Any]) -> Iterator[Event]:
        """The events of a stream (SSE), until the caller has enough. A stream that breaks, or ends by itself, goes on
        after the last event that came; raises as `send` does once that has failed as often as requests are repeated."""
        last: str | None = None
        pauses = self._retry.pauses()
        wanted = {k: v for k, v in params.items() if v is not None}
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last is not None else {})}
            problem: Exception | None = None
            try:
                # no time-out between events: the service writes a comment every few seconds
                with self._http.stream("GET", path, params=wanted, headers=headers, timeout=_SILENCE_S) as response:
                    if not response.is_success:
                        response.read()
                        if response.status_code not in _NOT_NOW:
                            raise self._refused(response)
                        problem = self._refused(response)
                    else:
                        for event in parse_events(response.iter_lines()):
                            last = event.id if event.id is not None else last
                            pauses = self._retry.pauses()
                            if event.data:
                                yield event
            except httpx.TransportError as error:
                problem = self._unreachable("GET", path, error)
            if (pause := next(pauses, None)) is None:
                raise problem or self._unreachable("GET", path, ConnectionError("the stream ended"))
            time.sleep(pause)

    def _unreachable(self, method: str, path: str, error: Exception) -> errors.OpError:
        reason = str(error) or type(error).__name__
        text = f"the control service at {self.url} cannot be reached ({method} {path}: {reason})."
        return errors.UnavailableError(None, None, text)

    def _refused(self, response: httpx.Response) -> errors.OpError:
        members: Any = None
        if response.headers.get("content-type", "").partition(";")[0].endswith("json"):
            try:
                members = response.json()
            except ValueError:
                members = None
        return error_of(response.status_code, members if isinstance(members, dict) else {}, response.text)
