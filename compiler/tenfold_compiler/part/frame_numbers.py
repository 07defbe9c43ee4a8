"""The numbers that name loops' frames in rendezvous keys, and which of TensorFlow's two ways a graph uses.

A frame's number follows MakeFrameId and hash.cc, so that a Send in a loop meets the Recv of a TensorFlow task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.runtime_ops import ENTER_OPS
from tenfold_kernels.hashes import hash64

if TYPE_CHECKING:
    from tenfold_protos.graph_pb2 import GraphDef

_MASK = 0xFFFFFFFFFFFFFFFF

#: What our master says on every Enter of a loop over tasks: whether its frames are numbered as TensorFlow 1.x does.
OLD_NUMBERS = "_old_frame_numbers"
#: In a graph of another master: GraphDef producers of TensorFlow 2.3 and later number frames as `frame_id` does,
#: earlier ones as `old_frame_id`. Clients and servers are mostly of one release, and nothing else there tells what the
#: others are.
NUMBERS_SINCE = 430


def has_old_numbers(graph_def: GraphDef) -> bool:
    """Whether the frames of a part are numbered by `old_frame_id`."""
    for node in graph_def.node:
        if node.op in ENTER_OPS and OLD_NUMBERS in node.attr:
            return node.attr[OLD_NUMBERS].b
    return 0 < graph_def.versions.producer < NUMBERS_SINCE


def set_numbers(graph_def: GraphDef, old: bool) -> None:
    """Writes that into a part that is not registered yet."""
    for node in graph_def.node:
        if node.op in ENTER_OPS:
            node.attr[OLD_NUMBERS].b = old


def old_frame_id(path: str) -> int:
    """The number of a frame for TensorFlow 1.x: of its path, "PARENT'S PATH;ITERATION;NAME"."""
    return hash64(path.encode())


def frame_id(parent: int, parent_iteration: int, name: str) -> int:
    """The number of a frame: the same in every task that takes part in the loop."""
    return hash64_combine(parent, hash64_combine(parent_iteration, hash64(name.encode())))


def hash64_combine(a: int, b: int) -> int:
    return (a ^ (b + 0x9E3779B97F4A7800 + (a << 10) + (a >> 4))) & _MASK
