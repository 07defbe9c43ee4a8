"""A real TensorFlow client whose requests come twice and whose replies are lost: what it ran was run once.

A proxy between client and server does that (support/faults/call_proxy.py); tests/chaos/test_lost_calls.py has all
methods and fates, with our own clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.faults.call_proxy import CallProxy
from support.faults.fates import Fate
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable

_SCRIPT = """
import json, sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
proxy, server, by = sys.argv[1:]
count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), use_resource=False)
bump = tf.identity(tf.assign_add(count, 1))
with tf.Session(server) as sess:
    sess.run(count.initializer)
with tf.Session(proxy) as sess:
    if by == "RunCallable":
        from tensorflow.core.protobuf import config_pb2
        call = sess._make_callable_from_options(config_pb2.CallableOptions(fetch=[bump.name]))
    else:
        call = lambda: [sess.run(bump)]
    try:
        got = int(call()[0])
    except tf.errors.OpError as error:
        got = type(error).__name__
with tf.Session(server) as sess:
    print(json.dumps([got, int(sess.run(count))]))
"""


@pytest.mark.parametrize("method", ["RunStep", "RunCallable"])
@pytest.mark.parametrize(
    ("fate", "got", "count"),
    [
        (Fate.REPEATED, 1, 1),
        (Fate.SENT_AGAIN, 1, 1),
        # it sends the same request again, over a new connection
        (Fate.REPLY_LOST, 1, 1),
        (Fate.REQUEST_LOST, 1, 1),
    ],
    ids=lambda value: value.name if isinstance(value, Fate) else "",
)
def test_a_step_of_tensorflows_is_done_once(
    ask_tensorflow: Callable[..., Any], method: str, fate: Fate, got: object, count: int
) -> None:
    with (
        BackgroundServer(TaskServer({"localhost": {0: ""}}, "localhost", 0)) as server,
        CallProxy(server.port) as proxy,
    ):
        proxy.script.set(method, fate)

        assert ask_tensorflow(_SCRIPT, f"grpc://{proxy.address}", server.target, method) == [got, count]
        assert proxy.script.happened.is_set()
