"""Methods that a peer may not call say so; a future tells its end at once, and once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_link.aio.methods import Deferred, LinkMethod, PeerLink, permitted


def handle(link: Any, header: bytes, buffers: list[Any]) -> Any:
    return header, buffers


def test_what_a_role_may_not_call_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(
        audit.refusals, "note", lambda caller, action, why, address: noted.append((caller, action, why, address))
    )
    methods = {
        1: LinkMethod("Run", handle, Role.RUN),
        2: LinkMethod("Push", handle),
        3: LinkMethod("Read", handle, Role.READ),
    }
    found = permitted(methods, Role.RUN, "/job:ps")
    assert (found[1], found[3]) == (methods[1], methods[3])
    assert found[2].name == "Push"
    link: Any = SimpleNamespace(peer="the client with pid 7")
    with pytest.raises(errors.PermissionDeniedError) as caught:
        found[2].handle(link, b"", [])
    assert caught.value.message == (
        "Push is refused by /job:ps: it needs the role register, and the peer of this link has run."
    )
    assert noted == [(Caller(Role.RUN, "the client with pid 7"), "Push", "it needs the role register", "over a link")]
    assert permitted(methods, Role.REGISTER, "x") == methods


def _result(future: Deferred) -> None:
    future.set_result(1)


def _error(future: Deferred) -> None:
    future.set_exception(errors.unknown("x"))


def _cancel(future: Deferred) -> None:
    assert future.cancel("why")
    assert not future.cancel()


@pytest.mark.parametrize("end", [_result, _error, _cancel])
async def test_a_deferred_tells_its_end_at_once(end: Any) -> None:
    future, told = Deferred(loop=asyncio.get_running_loop()), []
    future.then = lambda done: told.append((done, done.done(), future.then))
    end(future)
    assert told == [(future, True, None)]
    if end is _error:
        assert future.exception() is not None
    without = Deferred(loop=asyncio.get_running_loop())
    end(without)
    if end is _error:
        without.exception()


def test_what_a_link_does_is_its_own_affair() -> None:
    link = PeerLink.__new__(PeerLink)
    for call in (
        lambda: link.call(1).send(None),
        lambda: link.call_nowait(1),
        lambda: link.notify(1).send(None),
        lambda: link.notify_nowait(1),
        lambda: link.on_close(print),
        lambda: link.abort("why"),
        lambda: link.close().send(None),
    ):
        with pytest.raises(NotImplementedError):
            call()
