"""A registered graph made ready to run: kernels, constants, the schedule. Immutable but for fusion and the policy.

Made by program_compiler.py; `Program.start` is called once per step, by part_run.py, which drives what it returns.
Parts become generated functions (codegen.py), run by static_executor.py. Branches and loops that cannot be written so
(control_flow.py) run node by node in dynamic_executor.py: that piece of the part (split_part.py), or all of it where
that is not worth it. In TensorFlow: ImmutableExecutorState.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.fuse import Fusion, fusible_nodes, nodes_of_shapes, worth_fusing
from tenfold_compiler.part.edges import Edges, edges_of
from tenfold_compiler.part.loop_tree import Unstructured
from tenfold_compiler.part.part_graph import PartGraph, PartNode, node_error
from tenfold_compiler.part.regions import Region, cut_regions
from tenfold_compiler.part.split_part import split_part
from tenfold_compiler.part.structured_flow import read_control_flow
from tenfold_compiler.part.value_sizes import sized_by_values
from tenfold_compiler.values import read_only
from tenfold_compiler.write.codegen import GeneratedCode, generate
from tenfold_compiler.write.region_schedule import RegionSchedule, schedule
from tenfold_core import errors
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS
from tenfold_kernels import contexts
from tenfold_protos import graph_pb2
from tenfold_services.worker.fusion_tiers import Tier

from ..limits import DEFAULT_LIMITS
from .dynamic_executor import DynamicExecution
from .run_policy import RunPolicy
from .split_executor import SplitExecution
from .static_executor import StaticExecution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_compiler.part.split_part import Half
    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_core.dtypes import DType
    from tenfold_kernels.fusion.compiler import FusionCompiler
    from tenfold_kernels.resources.state import ResourceManager
    from tenfold_protos.graph_pb2 import GraphDef

    from ..interfaces import Value
    from .execution import Execution, StepIO


@dataclass(slots=True)
class Feed:
    """A client-terminated _Recv."""

    node: PartNode
    key: str
    dtype: DType
    numpy_dtype: np.dtype[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.numpy_dtype = np.dtype(self.dtype.as_numpy_dtype)


class Program:
    """A compiled partition. Immutable but for its policy, which learns how long runs take."""

    def __init__(
        self,
        part: PartGraph,
        kernels: Mapping[int, Any],
        constants: Mapping[int, tuple[Any, ...]],
        compiler: FusionCompiler | None = None,
        short_nanoseconds: int = DEFAULT_LIMITS.inline_nanoseconds,
        is_piece: bool = False,
        most_turns: int = DEFAULT_LIMITS.loop_turns,
        resources: ResourceManager | None = None,
    ) -> None:
        """With a `compiler`, the program is fused once it is hot (fusion_tiers.py). `short_nanoseconds`: RunPolicy. One
        that `is_piece` runs its branches and loops node by node. Loops take `most_turns` in a step.
        """
        self.most_turns = most_turns
        #: Those that its kernels use; None where nothing of it runs on a GPU.
        self.resources = resources
        self.part = part
        self.kernels = kernels
        self.constants = constants
        #: Bytes that it keeps, about.
        self.size = part.size + sum(getattr(value, "nbytes", 0) for values in constants.values() for value in values)
        self.keys: dict[int, str] = {}
        self.feeds: list[Feed] = []
        #: With the slot of each, for the executors of generated code.
        self.feed_slots: list[tuple[int, Feed]] = []
        #: Rendezvous keys of the fetches, and of all that is sent to other partitions, numbered.
        self.fetch_keys: list[str] = []
        self.send_keys: list[str] = []
        #: Of what is received from other partitions outside of loops.
        self.recv_keys: set[str] = set()
        self.fetch_of: dict[int, int] = {}
        self.send_of: dict[int, int] = {}
        for node in part.nodes:
            self._note_transfer(node)
        #: What steps that begin now run; replaced as a whole by `swap`.
        self.generated: GeneratedCode | None = None
        #: The groups that `generated` runs as one; None before the program is fused.
        self.fusion: Fusion | None = None
        self.regions: list[Region] = []
        #: The region of each node.
        self.region_of: list[int] = []
        self.schedule = RegionSchedule((), (), (), ())
        #: Some node may have to wait, for as long as its resource likes.
        self.blocks = any(node.blocking for node in part.nodes)
        #: The edges for executors that go node by node; made when one does.
        self._edges: Edges | None = None
        #: How its branches and loops are written; None for a part without, and where they cannot be.
        self.flow: ControlFlow | None = None
        #: The rest and the piece of a part of which one piece cannot be; they are programs of their own.
        self.halves: tuple[Program, ...] = ()
        #: Rendezvous keys of the edges that are cut between them.
        self.cut_keys: frozenset[str] = frozenset()
        if part.is_dynamic and not is_piece:
            try:
                self.flow = read_control_flow(part, constants)
            except Unstructured as why:
                self._split(split_part(part, constants, why), compiler, short_nanoseconds)
        if self.halves:
            self.size += part.size
        elif part.is_dynamic and self.flow is None:
            self.node_edges()
        else:
            self.regions, self.region_of = cut_regions(part, None if self.flow is None else self.flow.tree.members)
            self.generated = self._generate(tick=self._first_tier(compiler))
            self.schedule = schedule(self.regions, self.region_of, self.generated, self.keys)
            slot_of = self.generated.slot_of
            self.feed_slots = [(slot_of[feed.node.index], feed) for feed in self.feeds]
        #: Where its runs compute.
        loops = part.is_dynamic if self.flow is None else bool(self.flow.tree.loops)
        sized = sized_by_values(part, constants) or (self.flow is not None and loops)
        # its thread waits for a GPU, whose time is not the processor's
        sized = sized or any(node.memory is not None for node in part.nodes)
        self.policy = RunPolicy(short_nanoseconds, sized, loops)

    def _split(self, halves: tuple[Half, Half] | None, compiler: FusionCompiler | None, short_nanoseconds: int) -> None:
        for half in halves or ():
            kernels = {new: self.kernels[old] for new, old in half.origin.items() if old in self.kernels}
            constants = {new: self.constants[old] for new, old in half.origin.items() if old in self.constants}
            constants.update(half.constants)
            is_piece = bool(self.halves)
            self.halves += (
                Program(half.part, kernels, constants, compiler, short_nanoseconds, is_piece, self.most_turns),
            )
            self.cut_keys |= half.keys

    def _generate(self, fusion: Fusion | None = None, tick: Callable[[], None] | None = None) -> GeneratedCode:
        return generate(
            self.part,
            self.regions,
            self.region_of,
            self.kernels,
            self.constants,
            self.send_of,
            self.fetch_of,
            fusion,
            tick,
            self.flow,
            self.fetch_keys,
            self.most_turns,
        )

    def _first_tier(self, compiler: FusionCompiler | None) -> Callable[[], None] | None:
        """What counts this program's steps; None for a program that is never fused."""
        if compiler is None or compiler.options.mode == "off":
            return None
        constants = dict(self.constants)
        nodes = fusible_nodes(self.part, constants)
        loops = self.flow is not None and self.flow.tree.loops
        worth = loops or worth_fusing(self.part, nodes) or nodes_of_shapes(self.part, constants) or self.resources
        return Tier(self, compiler, nodes).tick if worth else None

    def swap(self, fusion: Fusion) -> None:
        """Steps from now on run the groups of `fusion` as one; those under way end as they began. Blocks: compiles."""
        self.generated = self._generate(fusion)
        self.fusion = fusion
        contexts.watch_next_calls()

    def _note_transfer(self, node: PartNode) -> None:
        if node.op not in RECV_OPS and node.op not in SEND_OPS:
            return
        key = self.keys[node.index] = node.rendezvous_key()
        if node.op in RECV_OPS:
            if node.client_terminated:
                self.feeds.append(Feed(node, key, node.output_types[0].base_dtype))
            else:
                self.recv_keys.add(key)
        elif node.client_terminated:
            self.fetch_of[node.index] = len(self.fetch_keys)
            self.fetch_keys.append(key)
        else:
            self.send_of[node.index] = len(self.send_keys)
            self.send_keys.append(key)

    def node_edges(self) -> Edges:
        """The part's edges as propagator.py walks them, also for a part without control flow."""
        if self._edges is None:
            self._edges = edges_of(self.part)
        return self._edges

    @property
    def is_straight(self) -> bool:
        """True when one call of `advance` runs everything: nothing is received, no branches."""
        return self.generated is not None and len(self.regions) == 1 and not self.regions[0].recvs

    def start(self, io: StepIO) -> Execution:
        """A new step. Raises InvalidArgumentError for a feed that is missing or of the wrong type."""
        if self.generated is not None:
            return StaticExecution(self, self.generated, io)
        if self.halves:
            return SplitExecution(self.halves, self.cut_keys, io)
        return DynamicExecution(self, io)

    def as_graph_def(self) -> GraphDef:
        """The partition as it was registered."""
        return graph_pb2.GraphDef(node=[node.node_def for node in self.part.nodes if node.copy_of is None])

    def check_counts(self, feeds: int, fetches: int) -> None:
        """Whether a run may bring so many tensors and ask for so many, before any is decoded.

        Raises InvalidArgumentError.
        """
        if feeds > len(self.feeds) or fetches > len(self.fetch_keys):
            raise errors.invalid_argument(
                f"A run with {feeds} feeds and {fetches} fetches of a graph that takes {len(self.feeds)} and gives "
                f"{len(self.fetch_keys)}."
            )

    def feed_value(self, feed: Feed, feeds: Mapping[str, Value]) -> Value:
        """The fed value as a read-only array of the right type. Raises InvalidArgumentError naming the feed."""
        value = feeds.get(feed.key)
        if type(value) is np.ndarray and value.dtype == feed.numpy_dtype:
            return read_only(value)
        if value is None:
            raise node_error(
                feed.node,
                errors.invalid_argument(f"You must feed a value for {feed.key.split(';')[3]!r}."),
            )
        if type(value) is not np.ndarray:
            value = np.asarray(value)
        if value.dtype != feed.numpy_dtype:
            raise node_error(
                feed.node,
                errors.invalid_argument(
                    f"The value fed for {feed.key.split(';')[3]!r} has dtype {value.dtype}; "
                    f"{feed.dtype.op_name} is expected."
                ),
            )
        return read_only(value)
