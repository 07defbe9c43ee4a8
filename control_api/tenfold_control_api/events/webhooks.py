"""Alerts to webhooks: a run has ended, or a task was lost. Each is an HTTP POST of JSON to every URL of the settings.

Fed with the events that log.py gets, of changes that this service made: of services on one database one tells of each.
A queue for each URL, which is bounded, so a receiver that does not answer costs neither memory nor time of others; an
alert that is to be tried again waits beside the queue, and those behind it go out.
An alert is news, not a promise: what has not been delivered when the service ends is lost. A URL may hold a secret, so
logs name its host alone. Made by control.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from tenfold_control_api.loops import end_loop
from tenfold_control_api.views import timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from tenfold_control_api.events.event import Event
    from tenfold_control_api.leases import Clock

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


@dataclass(order=True, slots=True)
class _Alert:
    """One alert for one URL. Ordered by when it is due, and then as it came."""

    due: float
    number: int
    told: Mapping[str, Any] = field(compare=False)
    #: How often it was tried.
    tries: int = field(default=0, compare=False)


class Webhooks:
    """Used on one event loop, between `start` and `stop`."""

    def __init__(self, urls: Sequence[str], post: Post | None = None, clock: Clock = time.monotonic) -> None:
        self._post, self._clock = post or _post, clock
        #: By URL, a heap.
        self._waiting: dict[str, list[_Alert]] = {url: [] for url in dict.fromkeys(urls)}
        self._come = {url: asyncio.Event() for url in self._waiting}
        self._numbers = itertools.count()
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
            for url in self._waiting:
                self._keep(url, _Alert(self._clock(), next(self._numbers), told))

    def _keep(self, url: str, one: _Alert) -> None:
        waiting = self._waiting[url]
        if len(waiting) >= MOST:
            oldest = min([*waiting, one], key=lambda each: each.number)
            log.warning("%s does not keep up: its alert %s is dropped", host(url), oldest.told["text"][:200])
            if oldest is one:
                return
            waiting.remove(oldest)
            heapq.heapify(waiting)
        heapq.heappush(waiting, one)
        self._come[url].set()

    async def _send_for_ever(self, url: str) -> None:
        waiting, come = self._waiting[url], self._come[url]
        while True:
            left = waiting[0].due - self._clock() if waiting else None
            if left is not None and left <= 0:
                await self._deliver(url, heapq.heappop(waiting))
                continue
            come.clear()
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await come.wait()

    async def _deliver(self, url: str, one: _Alert) -> None:
        """One attempt; an alert that the receiver may take later is kept for that."""
        why, again = "", True
        try:
            status = await self._post(url, one.told)
        except OSError as error:
            why = type(error.__cause__ or error).__name__  # its text may repeat the URL
        else:
            if status < 300:
                return
            why, again = f"status {status}", status >= 500 or status in _LATER
        if not again or one.tries >= len(PAUSES):
            log.warning("%s was not told: %s (%s)", host(url), one.told["text"][:200], why)
            return
        self._keep(url, _Alert(self._clock() + PAUSES[one.tries], one.number, one.told, one.tries + 1))


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
