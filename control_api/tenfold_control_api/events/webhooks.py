"""Alerts to webhooks: a run has ended, or a task was lost. Each is an HTTP POST of JSON to every URL of the settings.

Fed with the events that log.py gets, of changes that this service made: of services on one database one tells of each.
A queue for each URL, which is bounded, so a receiver that does not answer costs neither memory nor time of others.
An alert is news, not a promise: what has not been delivered when the service ends is lost. A URL may hold a secret, so
logs name its host alone. Made by control.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from tenfold_control_api.loops import end_loop
from tenfold_control_api.views import timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from tenfold_control_api.events.event import Event

log = logging.getLogger(__name__)

#: Alerts that wait for one URL; of more the oldest are dropped.
MOST = 500
#: Seconds for an answer, and between one attempt and the next.
TIMEOUT = 10.0
PAUSES = (1.0, 4.0, 15.0, 60.0)
#: What a receiver says that may take the alert later.
_LATER = (408, 425, 429)

#: (kind, action) of an event → the name of its alert.
ALERTS = {
    ("run", "FAILED"): "run.failed",
    ("run", "SUCCEEDED"): "run.succeeded",
    ("run", "STOPPED"): "run.stopped",
    ("task", "lost"): "task.lost",
}


def alert(event: Event) -> dict[str, Any] | None:
    """The JSON of an event's alert; None for an event that raises none. `text` is what chat services show."""
    name = ALERTS.get((event.kind, event.action))
    if name is None:
        return None
    became = name.partition(".")[2]
    return {
        "alert": name,
        "text": f"{event.kind} {event.object} {'is lost' if became == 'lost' else became}: {event.message}",
        "object": event.object,
        "message": event.message,
        "time": timestamp(event.time),
        "cluster": event.cluster,
        "run": event.run,
    }


#: Sends an alert to a URL and gives the status of the answer. Raises OSError without an answer.
Post: TypeAlias = "Callable[[str, Mapping[str, Any]], Awaitable[int]]"


class Webhooks:
    """Used on one event loop, between `start` and `stop`."""

    def __init__(
        self, urls: Sequence[str], post: Post | None = None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._post, self._sleep = post or _post, sleep
        self._waiting: dict[str, deque[dict[str, Any]]] = {url: deque() for url in dict.fromkeys(urls)}
        self._come = {url: asyncio.Event() for url in self._waiting}
        self._senders: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._senders = [
            asyncio.create_task(self._send_for_ever(url), name=f"webhook:{host(url)}") for url in self._waiting
        ]

    async def stop(self) -> None:
        """Gives up what waits."""
        for sender in self._senders:
            await end_loop(sender)

    def note(self, events: Iterable[Event]) -> None:
        """Queues the alerts among the events. Never blocks."""
        for told in filter(None, map(alert, events)):
            for url, waiting in self._waiting.items():
                if len(waiting) >= MOST:
                    dropped = waiting.popleft()
                    log.warning("%s does not keep up: its alert %s is dropped", host(url), dropped["text"][:200])
                waiting.append(told)
                self._come[url].set()

    async def _send_for_ever(self, url: str) -> None:
        waiting, come = self._waiting[url], self._come[url]
        while True:
            await come.wait()
            come.clear()
            while waiting:
                await self._deliver(url, waiting.popleft())

    async def _deliver(self, url: str, told: Mapping[str, Any]) -> None:
        why = ""
        for pause in (0.0, *PAUSES):
            if pause:
                await self._sleep(pause)
            try:
                status = await self._post(url, told)
            except OSError as error:
                why = type(error.__cause__ or error).__name__  # its text may repeat the URL
                continue
            if status < 300:
                return
            why = f"status {status}"
            if status < 500 and status not in _LATER:
                break
        log.warning("%s was not told: %s (%s)", host(url), told["text"][:200], why)


def host(url: str) -> str:
    """What a log may say of a webhook."""
    return f"webhook at {urlsplit(url).hostname}"


async def _post(url: str, told: Mapping[str, Any]) -> int:
    import httpx  # loaded by who has a webhook

    try:
        request = httpx.Request("POST", url, json=told, extensions={"timeout": httpx.Timeout(TIMEOUT).as_dict()})
        if request.url.userinfo:
            request = next(httpx.BasicAuth(request.url.username, request.url.password).auth_flow(request))
        # not by a client, which logs the URL
        async with asyncio.timeout(2 * TIMEOUT), httpx.AsyncHTTPTransport(trust_env=False) as transport:
            answer = await transport.handle_async_request(request)
            await answer.aclose()
            return answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        raise OSError("no answer") from error
