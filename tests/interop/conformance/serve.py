"""One server in a process of its own, of TensorFlow or of Tenfold: the interpreter that runs this file decides which.

`python serve.py tensorflow|tenfold [ServerDef, in hex]`. Prints one line of JSON, {"target": …} or
{"code": …, "message": …}, and serves until standard input ends, so that no server outlives the program that wanted it.
Started by processes.py and, for tests that start servers of their own, by shims.py.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def tensorflow_server(definition: bytes | None) -> str:
    from tensorflow.core.protobuf import tensorflow_server_pb2
    from tensorflow.python.training import server_lib

    if definition is None:
        server = server_lib.Server.create_local_server()
    else:
        server = server_lib.Server(tensorflow_server_pb2.ServerDef.FromString(definition))
    _KEPT.append(server)
    return str(server.target)


def tenfold_server(definition: bytes | None) -> str:
    from tenfold.train.server_lib import Server
    from tenfold_protos import tensorflow_server_pb2

    # TensorFlow 2.x names the job of a local server "localhost"; tests write that into device names.
    what: Any = {"localhost": ["localhost:0"]}
    if definition is not None:
        what = tensorflow_server_pb2.ServerDef.FromString(definition)
    server = Server(what, start=True)
    _KEPT.append(server)
    return server.target


#: A server that is collected stops.
_KEPT: list[Any] = []


def main() -> None:
    kind = {"tensorflow": tensorflow_server, "tenfold": tenfold_server}[sys.argv[1]]
    definition = bytes.fromhex(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        print(json.dumps({"target": kind(definition)}), flush=True)
    except Exception as error:
        code = getattr(error, "error_code", None)
        print(json.dumps({"code": code, "message": str(error), "type": type(error).__name__}), flush=True)
        return
    sys.stdin.read()
    # Neither runtime's orderly end matters any more, and a stuck one must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
