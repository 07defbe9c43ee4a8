"""A place that a control service gives: to who names a service and a job; handed to the server of that task alone."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold.runs import given_place
from tenfold_core import errors


@pytest.mark.parametrize("environment", [{}, {"TENFOLD_CONTROL": "http://c:1"}, {"TENFOLD_JOB": "worker"}])
def test_who_names_no_service_or_no_job_gets_nothing(environment: dict[str, str]) -> None:
    assert given_place.tf_config(environment) == {}


def test_what_cannot_be_is_refused_before_anything_is_asked() -> None:
    told = {"TENFOLD_CONTROL": "http://127.0.0.1:1", "TENFOLD_JOB": "worker"}

    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_INDEX must be a number from 0, not 'first'"):
        given_place.tf_config({**told, "TENFOLD_INDEX": "first"})
    with pytest.raises(errors.InvalidArgumentError, match="cannot listen on TENFOLD_BIND=nowhere"):
        given_place.tf_config({**told, "TENFOLD_BIND": "nowhere"})


def test_the_server_of_the_task_takes_the_place_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    port = socket.create_server(("127.0.0.1", 0))
    nothing: Any = SimpleNamespace()
    config = {"task": {"type": "worker", "index": 1}}
    made = given_place.GivenPlace(nothing, nothing, "a:1", port, config)
    monkeypatch.setattr(given_place, "_given", made)

    others = [given_place.take_over("worker", 0), given_place.take_over("ps", 1)]
    assert port.fileno() >= 0
    mine, again = given_place.take_over("worker", 1), given_place.take_over("worker", 1)

    assert (others, mine, again) == ([None, None], made, None)
    # the port is free for the server
    assert port.fileno() == -1
