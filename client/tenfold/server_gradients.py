"""The gradient rules that this package gives to the servers it makes, for graphs with SymbolicGradient.

Handed in where servers are made: train/server_lib.py, session/inprocess.py and the task command. The rules, and with
them the whole graph API, are loaded when a graph first asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_core.op_gradients import OpGradient
    from tenfold_protos.node_def_pb2 import NodeDef


def gradient_of_op(operation: NodeDef) -> OpGradient | None:
    """An OpGradients of tenfold_core/op_gradients.py."""
    # Imported here, because most servers never need the rules.
    from tenfold.gradients import of_op

    return of_op.gradient_of_op(operation)
