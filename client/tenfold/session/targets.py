"""From a session's target to the master behind it.

"" is the shared server of this process; "grpc://host:port" is a server of this process if one listens there, else one
over the network; "tenfold://host:port/cluster" is what the control service there knows to be the cluster's master.
Called by session_at_master.py and `Session.reset`; loads grpc and httpx only for targets that need them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenfold.session import inprocess
from tenfold.session.arguments import step_timeout
from tenfold_core import errors, telemetry

if TYPE_CHECKING:
    from tenfold.session.master_interface import MasterInterface
    from tenfold_protos.config_pb2 import ConfigProto

_GRPC = re.compile(r"^grpc://(?P<host>\[[^\]]+\]|[^/:\s]+):(?P<port>[0-9]{1,5})/?\Z")


#: Before the control service that knows the master, and the name of its cluster.
_BY_CONTROL = "tenfold://"


def check_scheme(target: str) -> None:
    """Raises NotFoundError for a scheme that is not served."""
    if target and not target.startswith(("grpc://", _BY_CONTROL)):
        raise errors.NotFoundError(
            None,
            None,
            f"No session factory registered for the given session options: {{target: {target!r}}}. "
            'A target is "" (in this process), "grpc://host:port" or "tenfold://host:port/cluster".',
        )


def connect(target: str, config: ConfigProto | None = None) -> MasterInterface:
    """The master that `target` names; `config` sets the devices of the shared server.

    Does not wait for a remote server: its first call does. Blocks to start the shared server of this process, and until
    a control service knows a ready master: `operation_timeout_in_ms` of `config`, or two minutes. Raises NotFoundError
    for a scheme that is not served, InvalidArgumentError for a malformed address, and what `find_master` raises; and as
    `telemetry.start`, which decides here whether this program writes traces.
    """
    telemetry.start("tenfold-client")
    asked = target
    if not target:
        from tenfold.session.direct_master import DirectMaster

        return DirectMaster(inprocess.shared_server(config))
    check_scheme(target)
    if target.startswith(_BY_CONTROL):
        from tenfold.control.targets import find_master

        target = find_master(target, None if config is None else step_timeout(None, config))
    found = _GRPC.match(target)
    if found is None or not int(found["port"]) < 65536:
        raise errors.InvalidArgumentError(
            None, None, f'Session target {target!r} is malformed: a server\'s target is "grpc://host:port"'
        )
    server = inprocess.find(target.rstrip("/"))
    if server is not None:
        from tenfold.session.direct_master import DirectMaster

        return DirectMaster(server, target.rstrip("/"), shown=asked)
    from tenfold.session.link_master import LinkMaster

    return LinkMaster(target.rstrip("/"), shown=asked)
