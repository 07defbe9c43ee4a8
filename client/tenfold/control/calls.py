"""One description of a call, two clients: `@call` and `@stream` make it a blocking method of a `Blocking` object and a
coroutine (an async iterator) of an `Awaiting` one. Nothing is written twice.

To add a call, add a method to one of the `*_calls.py` beside this file:

    @call
    def task_status(self, cluster: str, job: str, index: int) -> Request[Task]:
        \"\"\"The task as it is now. Raises NotFoundError.\"\"\"
        return Request("GET", path_of("clusters", cluster, "jobs", job, "tasks", str(index)), one(Task))

It sends nothing itself. A call of several requests is a generator that sends one by `answer = yield from Request(…)`,
uses another call by `yield from RunCalls.run.of(self, name)`, and returns the result; what takes time on this
machine is `yield from Work(…)`. A `@stream` gives an item by `yield from Emit(…)`, or is what the service streams.
What the service answers is a class of answers.py's kind, with the members that docs/openapi.json says
(tests/unit/house/test_answers.py compares them).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from tenfold.control.exchange import Exchange
    from tenfold.control.request import Request, Requests, Stream, Updates
    from tenfold.control.transport import AsyncTransport, Transport

P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """Its calls block, and may be made from several threads."""

    _transport: Transport


class Awaiting:
    """Its calls are coroutines of one event loop."""

    _transport: AsyncTransport


class Call(Generic[P, T]):
    """A method of both clients."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Exchange[T]]) -> None:
        self._describe = describe
        self.__name__, self.__qualname__ = describe.__name__, describe.__qualname__
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    def __call__(self, client: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        """As any function of a class: `ControlClient.run(client, "run-1")`."""
        return self.__get__(client, type(client))(*args, **kwargs)

    def of(self, client: object, *args: P.args, **kwargs: P.kwargs) -> Requests[T]:
        """The call as a part of another one."""
        return iter(self._describe(client, *args, **kwargs))

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        describe = self._describe
        if client is None:
            return self
        if isinstance(client, Awaiting):

            @functools.wraps(describe.__get__(client))
            async def awaiting(*args: P.args, **kwargs: P.kwargs) -> T:
                return await client._transport.carry_out(describe(client, *args, **kwargs))

            return awaiting

        @functools.wraps(describe.__get__(client))
        def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
            return client._transport.carry_out(describe(client, *args, **kwargs))

        return blocking


class StreamCall(Generic[P, T]):
    """A method of both clients that gives an iterator."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Stream[T] | Updates[T]]) -> None:
        self._describe = describe
        self.__name__, self.__qualname__ = describe.__name__, describe.__qualname__
        self.__doc__ = describe.__doc__
        self.__wrapped__ = describe

    def __call__(self, client: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
        """As any function of a class: `ControlClient.run(client, "run-1")`."""
        return self.__get__(client, type(client))(*args, **kwargs)

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Blocking | Awaiting | None, owner: type) -> Any:
        if client is None:
            return self
        describe, follow = self._describe, client._transport.stream

        @functools.wraps(describe.__get__(client))
        def streaming(*args: P.args, **kwargs: P.kwargs) -> Any:
            return follow(describe(client, *args, **kwargs))

        return streaming


@overload
def call(describe: Callable[Concatenate[Any, P], Request[T]]) -> Call[P, T]: ...
@overload
def call(describe: Callable[Concatenate[Any, P], Requests[T]]) -> Call[P, T]: ...
def call(describe: Callable[Concatenate[Any, P], Any]) -> Call[P, Any]:
    """Makes a method that describes a call one that carries it out."""
    return Call(describe)


@overload
def stream(describe: Callable[Concatenate[Any, P], Stream[T]]) -> StreamCall[P, T]: ...
@overload
def stream(describe: Callable[Concatenate[Any, P], Updates[T]]) -> StreamCall[P, T]: ...
def stream(describe: Callable[Concatenate[Any, P], Any]) -> StreamCall[P, Any]:
    """The same for a method that describes a stream: it gives its items as they come."""
    return StreamCall(describe)
