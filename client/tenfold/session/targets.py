"""From a session's target to the master behind it.

"" is the shared server of this process; "grpc://host:port" is a server of this process if one listens there, else one
over the network. Called by base_session.py and `Session.reset`; loads grpc only for the last of the three.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenfold.session import inprocess
from tenfold_core import errors

if TYPE_CHECKING:
    from tenfold.session.master_interface import MasterInterface
    from tenfold_protos.config_pb2 import ConfigProto

_GRPC = re.compile(r"^grpc://(?P<host>\[[^\]]+\]|[^/:\s]+):(?P<port>\d{1,5})/?$")


def check_scheme(target: str) -> None:
    """Raises NotFoundError for a scheme that is not served."""
    if target and not target.startswith("grpc://"):
        raise errors.NotFoundError(
            None,
            None,
            f"No session factory registered for the given session options: {{target: {target!r}}}. "
            'A target is "" (in this process) or "grpc://host:port".',
        )


def connect(target: str, config: ConfigProto | None = None) -> MasterInterface:
    """The master that `target` names; `config` sets the devices of the shared server.

    Does not wait for a remote server: its first call does. Blocks only to start the shared server of this process.
    Raises NotFoundError for a scheme that is not served, InvalidArgumentError for a malformed address.
    """
    if not target:
        from tenfold.session.direct_master import DirectMaster

        return DirectMaster(inprocess.shared_server(config))
    check_scheme(target)
    found = _GRPC.match(target)
    if found is None or not int(found["port"]) < 65536:
        raise errors.InvalidArgumentError(
            None, None, f'Session target {target!r} is malformed: a server\'s target is "grpc://host:port"'
        )
    server = inprocess.find(target.rstrip("/"))
    if server is not None:
        from tenfold.session.direct_master import DirectMaster

        return DirectMaster(server)
    from tenfold.session.link_master import LinkMaster

    return LinkMaster(target.rstrip("/"))
