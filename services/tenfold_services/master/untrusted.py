"""What a session may do that a caller of the role run:untrusted opened: graphs of ops that only compute.

Checked once, where nodes come in (create, extend), functions among them; a step of such a session costs nothing more.
Its state is isolated: containers that no other session sees, and that go with it. The ops are
tenfold_core/opdefs/compute_only.py's to say; master.py asks here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_core.opdefs import compute_only, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_core.access.gate import Caller
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.node_def_pb2 import NodeDef

_refusal = cache(compute_only.refusal)
_NEEDED = f"A token of the role {Role.RUN.word} is needed (tenfold token new --role {Role.RUN.word})."


def is_untrusted(role: Role) -> bool:
    return role < Role.RUN


def check_graph(graph_def: GraphDef, known: frozenset[str]) -> frozenset[str]:
    """The functions that the graph may call, those `known` before among them.

    Raises PermissionDeniedError naming the first node whose op does more than compute. Linear in nodes.
    """
    known |= {function.signature.name for function in graph_def.library.function}
    _check(graph_def.node, known, "")
    for function in graph_def.library.function:
        _check(function.node_def, known, f" of function '{function.signature.name}'")
    return known


def _check(nodes: Iterable[NodeDef], functions: frozenset[str], where: str) -> None:
    for node in nodes:
        why = _refusal(node.op)
        # a function that is called has its own nodes checked
        if why is not None and (node.op not in functions or table.has(node.op)):
            raise errors.permission_denied(
                f"Node '{node.name}'{where} is a {node.op}, which a session of the role {Role.RUN_UNTRUSTED.word} may "
                f"not run: {why}. {_NEEDED}"
            )


def isolate(config: ConfigProto) -> None:
    """Gives the session containers of its own. Raises PermissionDeniedError for one that brings its own cluster."""
    if config.cluster_def.job:
        raise errors.permission_denied(
            f"A session of the role {Role.RUN_UNTRUSTED.word} may not bring a cluster of its own "
            f"(ConfigProto.cluster_def): this task would dial its addresses. {_NEEDED}"
        )
    config.isolate_session_state = True


def check_owner(handle: str, owner: str, caller: Caller) -> None:
    """Raises PermissionDeniedError where such a caller may not use the session that the principal `owner` opened: it is
    neither that one nor acts for others, as the control service does, which looks whose it is."""
    if caller.itself < Role.RUN and caller.principal != owner:
        raise errors.permission_denied(
            f"Session {handle} was opened by another caller than {caller.name}: that one may use it. {_NEEDED}"
        )


def not_his(handle: str) -> errors.OpError:
    """For a caller that names a session which no untrusted caller opened, or none."""
    return errors.permission_denied(f"Session {handle} was not opened by the role {Role.RUN_UNTRUSTED.word}. {_NEEDED}")
