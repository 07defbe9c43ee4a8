"""A task that only listens, and keeps what callers show to it: what an attacker who may register would start."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import grpc

if TYPE_CHECKING:
    from collections.abc import Sequence


class FakeTask:
    """Refuses every call. Listens within `with`, at `address`."""

    def __init__(self) -> None:
        #: Tokens that were shown, in their order.
        self.shown: list[str] = []
        #: Methods that were called.
        self.called: list[str] = []
        self.met = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(2), handlers=[_Recording(self)])
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()


class _Recording(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, fake: FakeTask) -> None:
        self._fake = fake

    def service(self, details: Any) -> Any:
        metadata: Sequence[tuple[str, str]] = details.invocation_metadata
        tokens = [value.partition(" ")[2] for key, value in metadata if key == "authorization"]
        self._fake.shown += tokens
        self._fake.called.append(details.method)
        self._fake.met.set()

        def refuse(_request: bytes, context: Any) -> None:
            context.abort(grpc.StatusCode.INTERNAL, "this is no task")

        return grpc.unary_unary_rpc_method_handler(refuse)
