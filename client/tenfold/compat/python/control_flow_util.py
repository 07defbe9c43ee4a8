"""`tensorflow.python.ops.control_flow_util`: what an operation's place in conditionals and loops is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.opdefs.runtime_ops import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS

if TYPE_CHECKING:
    from tenfold.graph.control_flow_context import ControlFlowContext

#: Conditionals and loops are built of Switch and Merge.
ENABLE_CONTROL_FLOW_V2 = False


def EnableControlFlowV2(graph: Any) -> bool:
    """Always False."""
    return False


def IsSwitch(op: Any) -> bool:
    return op.type in SWITCH_OPS


def IsMerge(op: Any) -> bool:
    return op.type in MERGE_OPS


def IsLoopEnter(op: Any) -> bool:
    return op.type in ENTER_OPS


def IsLoopExit(op: Any) -> bool:
    return op.type in EXIT_OPS


def IsLoopNextIteration(op: Any) -> bool:
    return op.type in NEXT_ITERATION_OPS


def GetContainingWhileContext(ctxt: ControlFlowContext | None, stop_ctxt: Any = None) -> Any:
    """The innermost loop that a context is, or is in; None outside of loops."""
    return None if ctxt is None else ctxt.while_context()


def IsInWhileLoop(op: Any) -> bool:
    """Whether an operation is in a loop."""
    return GetContainingWhileContext(op._get_control_flow_context()) is not None


def GraphOrParentsInXlaContext(graph: Any) -> bool:
    """Always False: there is no XLA."""
    return False


def IsInXLAContext(op: Any) -> bool:
    """Always False: there is no XLA."""
    return False
