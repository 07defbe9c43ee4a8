"""What the tests of the master share: a graph over three tasks, an open session, limits that end soon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support.graph_text import parse_text
from tenfold_protos import config_pb2
from tenfold_services.master.limits import MasterLimits

if TYPE_CHECKING:
    from support.fake_cluster import FakeCluster
    from tenfold_services.master.master import Master

MASTER, PS, OTHER = "/job:worker/task:0", "/job:ps/task:0", "/job:worker/task:1"
PS_FULL, OTHER_FULL = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"

GRAPH = """
    x = Placeholder() dtype=float
    w = VariableV2() dtype=float shape=[] @/job:ps/task:0
    read = Identity(w) colocate=w
    y = Add(read, x)
    z = Neg(x)
    remote = Neg(x) @/job:worker/task:1
    init = NoOp() @/job:ps/task:0
"""

X = {"x:0": np.float32(3)}
NO_OPTIONS = config_pb2.RunOptions()
FAST = MasterLimits(
    create_session_seconds=0.2,
    first_retry_seconds=0.01,
    abort_seconds=0.05,
    close_seconds=0.2,
    cleanup_seconds=0.2,
    diagnose_seconds=0.2,
    register_seconds=0.2,
    register_node_seconds=0.0,
    list_devices_seconds=0.2,
)


def config(**kwargs: Any) -> config_pb2.ConfigProto:
    return config_pb2.ConfigProto(**kwargs)


async def session(cluster: FakeCluster, master: Master, text: str = GRAPH, **kwargs: Any) -> str:
    handle, version = await master.create_session(parse_text(text), config(**kwargs))
    assert version == 0
    return handle


class OpenSession:
    """A cluster, its master and an open session."""

    def __init__(self, cluster: FakeCluster, master: Master, handle: str) -> None:
        self.cluster, self.master, self.handle = cluster, master, handle

    async def run(
        self,
        feeds: dict[str, Any] | None = None,
        fetches: tuple[str, ...] = (),
        targets: tuple[str, ...] = (),
        **options: Any,
    ) -> list[Any]:
        request_id = options.pop("request_id", 0)
        values, _ = await self.master.run_step(
            self.handle, feeds or {}, fetches, targets, config_pb2.RunOptions(**options), request_id
        )
        return values
