"""`python -m support.faults.crowd_main TASK CONTROL VERSION EACH`: many clients in one process, to be killed at once.

So many of each kind: sessions over a link and over gRPC, each in the middle of a step that waits in a queue; long polls
and event streams at the control service; requests of which half has come. It says `ready` once all of them are under
way, and waits for its end. The graph is `graph()`, for who looks at the task meanwhile.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from urllib.parse import urlsplit

import tenfold as tf
from tenfold.session.grpc_master import GrpcMaster
from tenfold.session.link_master import LinkMaster
from tenfold_protos.config_pb2 import ConfigProto, RunOptions

_SECONDS = 60.0


def graph() -> tf.Graph:
    """Of the crowd and of who looks at it: `entered` counts the steps that have come to the queue, `taken` is such a
    step, `size` how many values wait, `put` adds one, `init` begins."""
    with tf.Graph().as_default() as made, tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1000, tf.float32, [], shared_name="crowd")
        entered = tf.Variable(0, name="count")
        tf.group(entered.initializer, name="init")
        tf.identity(entered.read_value(), name="entered")
        queue.size(name="size")
        queue.enqueue(1.0, name="put")
        with tf.control_dependencies([tf.assign_add(entered, 1)]):
            queue.dequeue(name="taken")
    return made


def _step(master: GrpcMaster, opened: threading.Semaphore) -> None:
    """Body of a thread: a session, and a step that does not end."""
    handle, _ = master.create_session(graph().as_graph_def(), ConfigProto(), _SECONDS)
    opened.release()
    master.run_step(handle, {}, ["taken:0"], [], RunOptions(), None)


def _request(control: str, text: str) -> socket.socket:
    address = urlsplit(control)
    made = socket.create_connection((address.hostname or "", address.port or 0), timeout=_SECONDS)
    made.sendall(text.replace("\n", "\r\n").encode())
    return made


def main() -> None:
    task, control, version, each = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    opened = threading.Semaphore(0)
    for kind in (LinkMaster, GrpcMaster):
        for _ in range(each):
            threading.Thread(target=_step, args=(kind(task), opened), daemon=True).start()
    head = "HTTP/1.1\nHost: 127.0.0.1\n"
    held = [_request(control, f"GET /v1/clusters/c/spec?after={version}&wait=60s {head}\n") for _ in range(each)]
    streams = [_request(control, f"GET /v1/events?after=0 {head}Accept: text/event-stream\n\n") for _ in range(each)]
    halves = [_request(control, f"POST /v1/sessions {head}Content-Type: application/json\nConte") for _ in range(each)]
    for stream in streams:
        assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200")
    for _ in range(2 * each):
        assert opened.acquire(timeout=_SECONDS)
    print("ready", len(held) + len(streams) + len(halves), flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
