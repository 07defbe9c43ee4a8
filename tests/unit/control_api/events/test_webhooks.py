"""Alerts: which events are some, retries and when they end, bounded queues, and no URL in a log."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_control_api.events.event import Event
from tenfold_control_api.events.webhooks import MOST, PAUSES, Webhooks, alert
from tenfold_control_api.service_settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

URL = "https://hooks.example.test/T0/secret?token=secret"


def ended(name: str = "r", action: str = "FAILED") -> Event:
    return Event("run", action, name, "worker/0 ended with exit code 1", 1.0, run=name)


class Receiver:
    """Answers with the given statuses by alert, and then with 200; notes what came and when, by its own clock, which
    goes on to what is due next. An exception is raised."""

    def __init__(self, **answers: list[int | OSError]) -> None:
        self.answers, self.told, self.at = answers, [], []  # type: ignore[var-annotated]
        self.now = 0.0

    async def post(self, url: str, told: Mapping[str, Any]) -> int:
        self.told.append((url, told["object"]))
        self.at.append(self.now)
        left = self.answers.get(told["object"])
        answer = left.pop(0) if left else 200
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def get(self, *events: Event, urls: tuple[str, ...] = (URL,)) -> None:
        """Delivers the events, until nothing waits."""
        hooks = Webhooks(urls, self.post, lambda: self.now)
        hooks.note(events)
        hooks.start()
        while True:
            for _ in range(3 * MOST):
                await asyncio.sleep(0)  # the senders do what is due
            due = [each.due for waiting in hooks._waiting.values() for each in waiting]
            if not due:
                break
            self.now = min(due)
            for come in hooks._come.values():
                come.set()
        await hooks.stop()

    def moments(self, name: str) -> list[float]:
        return [at for (_, each), at in zip(self.told, self.at, strict=True) if each == name]


#: Seconds from the first attempt to each.
ATTEMPTS = [0.0, *itertools.accumulate(PAUSES)]


def test_what_an_alert_says() -> None:
    lost = Event("task", "lost", "/job:ps/task:0", "no heartbeat for 10 s", 1.0, "default")

    assert alert(ended()) == {
        **{"alert": "run.failed", "text": "run r failed: worker/0 ended with exit code 1", "object": "r"},
        **{"message": "worker/0 ended with exit code 1", "time": "1970-01-01T00:00:01.000Z"},
        **{"cluster": None, "run": "r"},
    }
    assert (alert(lost) or {})["text"] == "task /job:ps/task:0 is lost: no heartbeat for 10 s"
    assert [(alert(ended(action=each)) or {}).get("alert") for each in ("SUCCEEDED", "STOPPED", "RUNNING")] == [
        *("run.succeeded", "run.stopped", None)
    ]


async def test_every_receiver_gets_every_alert_in_order() -> None:
    receiver = Receiver()
    await receiver.get(ended("a"), ended("b", "RUNNING"), ended("c"), urls=("http://x/", "http://y/", "http://x/"))

    assert [name for url, name in receiver.told if url == "http://x/"] == ["a", "c"]
    assert [name for url, name in receiver.told if url == "http://y/"] == ["a", "c"]
    assert receiver.now == 0


async def test_it_is_tried_again_until_it_is_taken_and_holds_up_nobody() -> None:
    receiver = Receiver(a=[OSError("no answer"), 503, 429])
    await receiver.get(ended("a"), ended("b"))

    assert receiver.moments("a") == ATTEMPTS[:4]
    assert receiver.moments("b") == [0.0]


@pytest.mark.parametrize(("status", "posts"), [(404, 1), (302, 1), (500, len(PAUSES) + 1)])
async def test_it_is_given_up(status: int, posts: int, caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(a=[status] * 9)
    with caplog.at_level(logging.WARNING):
        await receiver.get(ended("a"), ended("b"))

    assert receiver.moments("a") == ATTEMPTS[:posts]
    assert receiver.moments("b") == [0.0]
    assert "webhook at hooks.example.test was not told: run a failed" in caplog.text
    assert f"(status {status})" in caplog.text
    assert "secret" not in caplog.text


async def test_a_queue_drops_its_oldest(caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver()
    with caplog.at_level(logging.WARNING):
        await receiver.get(*(ended(str(at)) for at in range(MOST + 2)))

    assert [name for _, name in receiver.told] == [str(at) for at in range(2, MOST + 2)]
    assert caplog.text.count("is dropped") == 2
    assert "secret" not in caplog.text


async def test_one_that_waits_for_its_next_attempt_is_the_oldest_too(caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(old=[503])
    hooks = Webhooks((URL,), receiver.post, lambda: receiver.now)
    hooks.note([ended("old")])
    hooks.start()
    for _ in range(9):
        await asyncio.sleep(0)
    assert receiver.told == [(URL, "old")]
    with caplog.at_level(logging.WARNING):
        hooks.note([ended(str(at)) for at in range(MOST)])
    await hooks.stop()

    assert caplog.text.count("is dropped") == 1
    assert "run old failed" in caplog.text


@pytest.mark.parametrize("url", ["ftp://a/secret", "secret", "https:///secret", "file:///secret", "http://[secret"])
def test_a_webhook_is_a_url_of_the_web_and_is_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"webhook 2 of 2 must be a URL of http or https") as caught:
        Settings(webhooks=("http://a/", url))

    assert "secret" not in str(caught.value)
    assert "secret" not in repr(Settings(webhooks=(URL,)))
