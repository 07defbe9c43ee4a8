"""A program: a partition compiled for execution on one task. Frozen data, made by build.py.

The runtime of a task (services: worker/loaded_program.py) runs it: as generated functions (write/codegen.py), or node
by node where branches and loops cannot be written so. That is a piece of the part (part/split_part.py), or all of it
where splitting is not worth it. In TensorFlow: ImmutableExecutorState.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.part.part_graph import node_error
from tenfold_core import errors
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS
from tenfold_protos import graph_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_compiler.fuse.fusion import Fusion
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph, PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_compiler.write.generated_code import GeneratedCode
    from tenfold_compiler.write.region_schedule import RegionSchedule
    from tenfold_core.dtypes import DType
    from tenfold_protos.graph_pb2 import GraphDef


@dataclass(frozen=True, slots=True)
class Feed:
    """A client-terminated _Recv."""

    node: PartNode
    key: str
    dtype: DType
    numpy_dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Transfers:
    """What a part takes from elsewhere and gives away, by rendezvous key."""

    #: Of each Send and Recv, by node.
    keys: Mapping[int, str]
    feeds: tuple[Feed, ...]
    #: Of the fetches, and of all that is sent to other partitions, numbered.
    fetch_keys: tuple[str, ...]
    send_keys: tuple[str, ...]
    #: Of what is received from other partitions outside of loops.
    recv_keys: frozenset[str]
    #: Send node → its number among the fetches, or among what is sent to other partitions.
    fetch_of: Mapping[int, int]
    send_of: Mapping[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled partition."""

    part: PartGraph
    #: By node: its kernel, and the outputs of a node that is known beforehand.
    kernels: Mapping[int, Any]
    constants: Constants
    transfers: Transfers
    #: Turns that its loops take in a step.
    most_turns: int
    #: Some kernel runs on a GPU.
    uses_gpu: bool
    #: Some node may have to wait, for as long as its resource likes.
    blocks: bool
    #: Its nodes may run more than once in a step.
    has_loops: bool
    #: Its running time may be any, whatever the shapes of what it gets (part/graph_sizes.py).
    sized_by_values: bool
    #: Bytes that it keeps, about.
    size: int
    #: How its branches and loops are written; None for a part without, and where they cannot be.
    flow: ControlFlow | None = None
    regions: Sequence[Region] = ()
    #: The region of each node.
    region_of: Sequence[int] = ()
    #: Nodes that may be fused once the program is hot; None where that is not worth it.
    fusible: Sequence[PartNode] | None = None
    #: None for a part that runs node by node, and for one in halves.
    generated: GeneratedCode | None = None
    #: The groups that `generated` runs as one; None before the program is fused.
    fusion: Fusion | None = None
    schedule: RegionSchedule | None = None
    #: The feeds with the slot of each, for the executors of generated code.
    feed_slots: Sequence[tuple[int, Feed]] = ()
    #: The rest and the piece of a part of which one piece cannot be written; they are programs of their own.
    halves: tuple[Program, ...] = ()
    #: Rendezvous keys of the edges that are cut between them.
    cut_keys: frozenset[str] = frozenset()

    @property
    def is_straight(self) -> bool:
        """True when one call of `Execution.advance` runs everything: nothing is received, no branches."""
        return self.generated is not None and len(self.regions) == 1 and not self.regions[0].recvs

    def as_graph_def(self) -> GraphDef:
        """The partition as it was registered."""
        return graph_pb2.GraphDef(node=[node.node_def for node in self.part.nodes if node.copy_of is None])


def transfers_of(part: PartGraph) -> Transfers:
    """Reads the Sends and Recvs of a part. Raises InvalidArgumentError for one whose key cannot be made."""
    keys: dict[int, str] = {}
    feeds: list[Feed] = []
    fetches: dict[int, str] = {}
    sends: dict[int, str] = {}
    received: set[str] = set()
    for node in part.nodes:
        if node.op not in RECV_OPS and node.op not in SEND_OPS:
            continue
        try:
            key = keys[node.index] = node.rendezvous_key()
        except (UnicodeDecodeError, TypeError, ValueError) as error:
            raise node_error(node, errors.invalid_argument(f"Its attributes make no key: {error}")) from error
        if node.op in SEND_OPS:
            (fetches if node.client_terminated else sends)[node.index] = key
        elif node.client_terminated:
            dtype = node.output_types[0].base_dtype
            feeds.append(Feed(node, key, dtype, np.dtype(dtype.as_numpy_dtype)))
        else:
            received.add(key)
    return Transfers(
        keys,
        tuple(feeds),
        fetch_keys=tuple(fetches.values()),
        send_keys=tuple(sends.values()),
        recv_keys=frozenset(received),
        fetch_of={index: number for number, index in enumerate(fetches)},
        send_of={index: number for number, index in enumerate(sends)},
    )
