"""The nodes and functions of a graph that a caller may not run who may only compute."""

from __future__ import annotations

import pytest

from tenfold_core import errors
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_services.master import untrusted


def graph(*ops: str, **functions: str) -> GraphDef:
    """Nodes of `ops`, and functions of one node each."""
    made = GraphDef()
    for op in ops:
        made.node.add(name=f"a_{op}", op=op)
    for name, op in functions.items():
        function = made.library.function.add()
        function.signature.name = name
        function.node_def.add(name="inner", op=op)
    return made


def test_roles_below_run_are_untrusted() -> None:
    assert [role for role in Role if untrusted.is_untrusted(role)] == [Role.NONE, Role.READ, Role.RUN_UNTRUSTED]


def test_a_call_of_a_function_is_what_its_nodes_are() -> None:
    known = untrusted.check_graph(graph("double", double="Mul"), frozenset())
    assert known == {"double"}
    # the client does not send it again
    assert untrusted.check_graph(graph("double", "Mul"), known) == {"double"}
    with pytest.raises(errors.PermissionDeniedError, match="'inner' of function 'read' is a ReadFile"):
        untrusted.check_graph(graph("read", read="ReadFile"), frozenset())


def test_a_function_that_is_named_like_an_op_allows_nothing() -> None:
    with pytest.raises(errors.PermissionDeniedError, match="'a_ReadFile' is a ReadFile"):
        untrusted.check_graph(graph("ReadFile", ReadFile="Mul"), frozenset())


def test_an_op_that_is_not_known_is_refused() -> None:
    with pytest.raises(errors.PermissionDeniedError, match=r"a_Nonsense.*not known here.*role run"):
        untrusted.check_graph(graph("Nonsense"), frozenset())


def test_containers_are_its_own_and_so_is_no_cluster() -> None:
    config = ConfigProto()
    untrusted.isolate(config)
    assert config.isolate_session_state
    config.cluster_def.job.add(name="ps")
    with pytest.raises(errors.PermissionDeniedError, match="cluster_def"):
        untrusted.isolate(config)


@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (Caller(Role.RUN_UNTRUSTED, "token guest"), True),
        (Caller(Role.RUN_UNTRUSTED, "token stranger"), False),
        (Caller(Role.READ, "token stranger"), False),
        (Caller(Role.RUN_UNTRUSTED, "token stranger", itself=Role.RUN_UNTRUSTED), False),
        (Caller(Role.RUN_UNTRUSTED, "token stranger", itself=Role.RUN), True),
    ],
)
def test_a_session_belongs_to_who_opened_it(caller: Caller, may: bool) -> None:
    owner = Caller(Role.RUN_UNTRUSTED, "token guest").principal
    if may:
        untrusted.check_owner("h", owner, caller)
        return
    with pytest.raises(errors.PermissionDeniedError) as caught:
        untrusted.check_owner("h", owner, caller)
    assert caught.value.message == (
        "Session h was opened by another caller than token stranger: that one may use it. "
        "A token of the role run is needed (tenfold token new --role run)."
    )


def test_what_a_guest_needs_is_said() -> None:
    needed = "A token of the role run is needed (tenfold token new --role run)."
    assert untrusted.not_his("h").message == f"Session h was not opened by the role run:untrusted. {needed}"
    with pytest.raises(errors.PermissionDeniedError) as caught:
        untrusted.check_graph(graph("Mul", f="ReadFile"), frozenset())
    assert caught.value.message.startswith(
        "Node 'inner' of function 'f' is a ReadFile, which a session of the role run:untrusted may not run: "
    )
    assert caught.value.message.endswith(needed)
