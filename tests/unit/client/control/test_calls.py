"""One description, two clients: what their methods look like from outside. Nothing is sent."""

from __future__ import annotations

import inspect

import pytest

from tenfold.control import AsyncControlClient, ControlClient
from tenfold.control.master_calls import MasterCalls
from tenfold.control.request import Request
from tenfold.control.run_calls import RunCalls
from tenfold_core import errors

NOWHERE = "http://127.0.0.1:1"


def test_methods_tell_how_they_are_called() -> None:
    parameters = "(run: 'str', *, after: 'int | None' = None, timeout: 'float' = 60.0)"
    with ControlClient(NOWHERE) as client:
        bound = client.wait_for_run

        assert str(inspect.signature(bound)).startswith(parameters)
        assert bound.__name__ == "wait_for_run"
        assert "DeadlineExceededError" in str(bound.__doc__)
        assert not inspect.iscoroutinefunction(bound)
        with pytest.raises(TypeError, match="unexpected keyword argument 'aftr'"):
            client.wait_for_run("run-1", aftr=3)  # type: ignore[call-arg]
    assert str(inspect.signature(ControlClient.wait_for_run)).startswith("(self, run: 'str'")
    assert ControlClient.wait_for_master.__doc__ == MasterCalls.wait_for_master.__doc__


async def test_the_other_client_has_coroutines_and_async_iterators() -> None:
    async with AsyncControlClient(NOWHERE) as client:
        assert inspect.iscoroutinefunction(client.run)
        assert inspect.isasyncgen(client.events())


def test_a_call_as_a_function_of_its_class_and_as_part_of_another() -> None:
    with ControlClient(NOWHERE, timeout=0.2) as client:
        with pytest.raises(errors.UnavailableError, match=r"127\.0\.0\.1:1 cannot be reached"):
            ControlClient.run(client, "run-1")

        (request,) = RunCalls.run.of(client, "a b/c")

    assert isinstance(request, Request)
    assert (request.method, request.path) == ("GET", "/v1/runs/a%20b%2Fc")
