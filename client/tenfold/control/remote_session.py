"""`RemoteSession` and `AsyncRemoteSession`: a session whose steps go over REST. Made by the clients' `create_session`;
calls.py says how the calls become methods of both.

Tensors travel in the Open Inference Protocol's binary form. For a training loop open `tf.Session` at the task's
own grpc:// address (`RemoteSession.target`): REST is slower, but any HTTP client can use it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tenfold.control.calls import Awaiting, Blocking, call
from tenfold.control.cluster_answers import SessionStatus
from tenfold.control.request import Request, milliseconds, nothing, one
from tenfold_core import errors, open_inference

if TYPE_CHECKING:
    import httpx

    from tenfold.control.request import Requests
    from tenfold.control.transport import AsyncTransport, Transport
    from tenfold_protos.config_pb2 import ConfigProto, RunOptions

_PROTOBUF = "application/x-protobuf"
BINARY = "application/octet-stream"
HEADER_LENGTH = "Inference-Header-Content-Length"


def graph_bytes(graph_def: Any) -> bytes:
    """A GraphDef, its bytes, a Graph (anything with `as_graph_def`), or None for an empty one."""
    if graph_def is None:
        return b""
    if isinstance(graph_def, (bytes, bytearray, memoryview)):
        return bytes(graph_def)
    if hasattr(graph_def, "as_graph_def"):
        graph_def = graph_def.as_graph_def()
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError(f"graph_def must be a GraphDef, its bytes or a Graph, not {type(graph_def).__name__}.")
    text: bytes = graph_def.SerializeToString()
    return text


def session_request(
    cluster: str,
    graph_def: Any,
    *,
    job: str | None,
    index: int | None,
    config: ConfigProto | None,
    timeout: float,
    wait: float,
) -> Request[str]:
    """POST /v1/sessions; gives the session's id."""
    from tenfold_protos import master_pb2

    request = master_pb2.CreateSessionRequest()
    try:
        request.graph_def.ParseFromString(graph_bytes(graph_def))
    except ValueError as error:
        raise errors.InvalidArgumentError(None, None, f"graph_def is not a GraphDef: {error}") from None
    if config is not None:
        request.config.CopyFrom(config)
    return Request(
        "POST",
        "/v1/sessions",
        lambda response: master_pb2.CreateSessionResponse.FromString(response.content).session_handle,
        content=request.SerializeToString(),
        params={"cluster": cluster, "job": job, "index": index, "wait": milliseconds(wait) if wait > 0 else None},
        headers={"Content-Type": _PROTOBUF},
        timeout=timeout,
        wait=max(0.0, wait),
    )


class SessionCalls:
    """The calls of one session, for both clients."""

    id: str

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{self.id}"

    @call
    def status(self) -> Request[SessionStatus]:
        """Its master, graph version, and whether it can be used."""
        return Request("GET", self._path, one(SessionStatus))

    @call
    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        *,
        options: RunOptions | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Request[Any]:
        """Runs one step; returns arrays in the structure of `fetches`.

        A fetch is a tensor or its name ("y:0"), an operation or its name ("train", gives None), or a list, tuple or
        dict of fetches. `timeout` bounds the step in seconds. With an `idempotency_key` the request is repeated when
        the connection breaks, and still runs at most once. Raises the error of the step.
        """
        names: dict[str, None] = {}
        targets: dict[str, None] = {}
        _collect(fetches, names, targets)
        feeds = [(_name(key), array_of(key, value), True) for key, value in (feed_dict or {}).items()]
        heads, parts = open_inference.write_tensors(feeds)
        request: dict[str, Any] = {
            "inputs": heads,
            "outputs": [{"name": name} for name in names],
            "targets": list(targets),
            "parameters": {"binary_data_output": True},
        }
        run_options = _options(options, timeout)
        if run_options:
            request["options"] = run_options
        text = json.dumps(request, separators=(",", ":")).encode()
        headers = {"Content-Type": BINARY, HEADER_LENGTH: str(len(text))}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        limit = run_options.get("timeout_in_ms", 600_000) / 1000

        def read(response: httpx.Response) -> Any:
            answer, binary = open_inference.split_body(response.content, response.headers.get(HEADER_LENGTH))
            values = open_inference.read_tensors(answer["outputs"], binary, "outputs")
            return _rebuild(fetches, {name: own(value) for name, value in values.items()})

        return Request(
            "POST",
            f"{self._path}/steps",
            read,
            content=b"".join([text, *parts]),
            headers=headers,
            wait=limit,
            repeatable=idempotency_key is not None,
        )

    @call
    def extend(
        self, graph_def: Any, *, current_graph_version: int | None = None, timeout: float = 120.0
    ) -> Requests[int]:
        """Adds nodes to the session's graph; returns its new version. Raises AbortedError when
        `current_graph_version` is given and another client extended the graph meanwhile."""
        from tenfold_protos import master_pb2

        if current_graph_version is None:
            current_graph_version = (yield from SessionCalls.status.of(self)).graph_version
        request = master_pb2.ExtendSessionRequest(current_graph_version=current_graph_version)
        request.graph_def.ParseFromString(graph_bytes(graph_def))
        return (
            yield from Request(
                "POST",
                f"{self._path}/graph:extend",
                lambda response: master_pb2.ExtendSessionResponse.FromString(response.content).new_graph_version,
                content=request.SerializeToString(),
                headers={"Content-Type": _PROTOBUF},
                timeout=timeout,
            )
        )

    @call
    def close(self) -> Requests[None]:
        """Closes the session. One that is gone already is no error."""
        with contextlib.suppress(errors.NotFoundError):
            yield from Request("DELETE", self._path, nothing)


class RemoteSession(SessionCalls, Blocking):
    """One session at the control service. `with` closes it at the end. Blocking; steps may run from several threads."""

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self.id = session_id

    @property
    def target(self) -> str:
        """The grpc:// address of the session's master. Blocks: the service is asked."""
        return self.status().target

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncRemoteSession(SessionCalls, Awaiting):
    """The same with coroutines; `async with` closes it at the end. Its master is at `(await status()).target`."""

    def __init__(self, transport: AsyncTransport, session_id: str) -> None:
        self._transport = transport
        self.id = session_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _options(options: RunOptions | None, timeout: float | None) -> dict[str, Any]:
    from google.protobuf import json_format

    told: dict[str, Any] = {}
    if options is not None:
        told = json_format.MessageToDict(options, preserving_proto_field_name=True)
        if options.timeout_in_ms:
            told["timeout_in_ms"] = options.timeout_in_ms  # protobuf JSON writes 64-bit numbers as text
    if timeout is not None:
        told["timeout_in_ms"] = max(1, round(timeout * 1000))
    return told


def _name(thing: Any) -> str:
    name = thing if isinstance(thing, str) else getattr(thing, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"{thing!r} is neither a tensor or operation nor the name of one.")
    return name


def array_of(key: Any, value: Any) -> np.ndarray[Any, Any]:
    dtype = getattr(getattr(key, "dtype", None), "as_numpy_dtype", None)
    array = np.asarray(value) if dtype is None else np.asarray(value, dtype=dtype)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8").astype(object)
    return array


def _collect(fetches: Any, names: dict[str, None], targets: dict[str, None]) -> None:
    """Tensors have a ":" in their name, operations have not."""
    if isinstance(fetches, (list, tuple)):
        for fetch in fetches:
            _collect(fetch, names, targets)
    elif isinstance(fetches, Mapping):
        for fetch in fetches.values():
            _collect(fetch, names, targets)
    else:
        name = _name(fetches)
        (names if ":" in name else targets)[name] = None


def _rebuild(fetches: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(fetches, tuple) and hasattr(fetches, "_fields"):
        return type(fetches)(*(_rebuild(fetch, values) for fetch in fetches))
    if isinstance(fetches, (list, tuple)):
        return type(fetches)(_rebuild(fetch, values) for fetch in fetches)
    if isinstance(fetches, Mapping):
        return {key: _rebuild(fetch, values) for key, fetch in fetches.items()}
    return values.get(_name(fetches))


def own(array: np.ndarray[Any, Any]) -> Any:
    """A fetched array belongs to the caller; a scalar comes as numpy's scalar, as from `tf.Session`."""
    if array.ndim == 0:
        return array[()]
    return array if array.flags.writeable else array.copy()
