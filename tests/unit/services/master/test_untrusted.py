"""The nodes and functions of a graph that a caller may not run who may only compute."""

from __future__ import annotations

import pytest

from tenfold_core import errors
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
