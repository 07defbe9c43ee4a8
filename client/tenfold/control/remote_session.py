"""`RemoteSession`: a session whose steps go over REST. Made by `ControlClient.create_session`.

Tensors travel in the Open Inference Protocol's binary form. For a training loop open `tf.Session` at the task's
own grpc:// address (`RemoteSession.target`): REST is slower, but any HTTP client can use it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tenfold_core import errors, open_inference

if TYPE_CHECKING:
    from tenfold.control.transport import Transport
    from tenfold_protos.config_pb2 import ConfigProto, RunOptions

_PROTOBUF = "application/x-protobuf"
_BINARY = "application/octet-stream"
_HEADER_LENGTH = "Inference-Header-Content-Length"


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


def open_session(
    transport: Transport,
    cluster: str,
    graph_def: Any,
    *,
    job: str | None,
    index: int | None,
    config: ConfigProto | None,
    timeout: float,
) -> RemoteSession:
    """POST /v1/sessions. Blocks until the master opened the session, at most `timeout` seconds."""
    from tenfold_protos import master_pb2

    request = master_pb2.CreateSessionRequest()
    try:
        request.graph_def.ParseFromString(graph_bytes(graph_def))
    except ValueError as error:
        raise errors.InvalidArgumentError(None, None, f"graph_def is not a GraphDef: {error}") from None
    if config is not None:
        request.config.CopyFrom(config)
    response = transport.send(
        "POST",
        "/v1/sessions",
        content=request.SerializeToString(),
        params={"cluster": cluster, "job": job, "index": index},
        headers={"Content-Type": _PROTOBUF},
        timeout=timeout,
    )
    answer = master_pb2.CreateSessionResponse.FromString(response.content)
    return RemoteSession(transport, answer.session_handle)


class RemoteSession:
    """One session at the control service. `with` closes it at the end. Blocking; steps may run from several threads."""

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self.id = session_id

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{self.id}"

    def status(self) -> dict[str, Any]:
        """The session's JSON object: its master, graph version, and whether it can be used."""
        return self._transport.json("GET", self._path)

    @property
    def target(self) -> str:
        """The grpc:// address of the session's master."""
        return str(self.status()["target"])

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        *,
        options: RunOptions | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Runs one step; returns arrays in the structure of `fetches`.

        A fetch is a tensor or its name ("y:0"), an operation or its name ("train", gives None), or a list, tuple or
        dict of fetches. `timeout` bounds the step in seconds. With an `idempotency_key` the request is repeated when
        the connection breaks, and still runs at most once. Raises the error of the step.
        """
        names: dict[str, None] = {}
        targets: dict[str, None] = {}
        _collect(fetches, names, targets)
        feeds = [(_name(key), _array(key, value), True) for key, value in (feed_dict or {}).items()]
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
        headers = {"Content-Type": _BINARY, _HEADER_LENGTH: str(len(text))}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        limit = run_options.get("timeout_in_ms", 600_000) / 1000
        response = self._transport.send(
            "POST",
            f"{self._path}/steps",
            content=b"".join([text, *parts]),
            headers=headers,
            timeout=limit + self._transport.timeout,
            repeatable=idempotency_key is not None,
        )
        answer, binary = open_inference.split_body(response.content, response.headers.get(_HEADER_LENGTH))
        values = open_inference.read_tensors(answer["outputs"], binary, "outputs")
        return _rebuild(fetches, {name: _own(value) for name, value in values.items()})

    def extend(self, graph_def: Any, *, current_graph_version: int | None = None, timeout: float = 120.0) -> int:
        """Adds nodes to the session's graph; returns its new version. Raises AbortedError when
        `current_graph_version` is given and another client extended the graph meanwhile."""
        from tenfold_protos import master_pb2

        if current_graph_version is None:
            current_graph_version = int(self.status()["graph_version"])
        request = master_pb2.ExtendSessionRequest(current_graph_version=current_graph_version)
        request.graph_def.ParseFromString(graph_bytes(graph_def))
        response = self._transport.send(
            "POST",
            f"{self._path}/graph:extend",
            content=request.SerializeToString(),
            headers={"Content-Type": _PROTOBUF},
            timeout=timeout,
        )
        return master_pb2.ExtendSessionResponse.FromString(response.content).new_graph_version

    def close(self) -> None:
        """Closes the session. One that is gone already is no error."""
        with contextlib.suppress(errors.NotFoundError):
            self._transport.send("DELETE", self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _array(key: Any, value: Any) -> np.ndarray[Any, Any]:
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


def _own(array: np.ndarray[Any, Any]) -> Any:
    """A fetched array belongs to the caller; a scalar comes as numpy's scalar, as from `tf.Session`."""
    if array.ndim == 0:
        return array[()]
    return array if array.flags.writeable else array.copy()
