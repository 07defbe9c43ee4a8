"""A registered graph made ready to run: kernels built, constants made, the schedule fixed. Immutable afterwards.

`compile_program` is called once per RegisterGraph (in the pool: kernels may compile), `Program.start` once per step;
what it returns is driven by driver.py. Parts without control flow become generated functions (codegen.py) run by
static_executor.py; parts with Switch and Merge run node by node in dynamic_executor.py. In TensorFlow: graph_mgr.cc
and executor.cc's ImmutableExecutorState.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import errors, opdefs
from tenfold_kernels import registry
from tenfold_protos import graph_pb2
from tenfold_services.graph.runtime_ops import ALIAS_OPS, CONSTANT_OPS, DYNAMIC_OPS, ORDER_OPS, RECV_OPS, SEND_OPS
from tenfold_services.worker.edges import Links, link
from tenfold_services.worker.fusion_tiers import FusionCompiler, Tier

from ..limits import DEFAULT_LIMITS, Limits
from .codegen import Generated, generate
from .dynamic_executor import DynamicExecution
from .execution import Execution, StepIO, Wanted, read_only
from .functions import FunctionRuntime
from .fuse import Fusion, fusible_nodes, nodes_of_shapes, worth_fusing
from .optimize import optimize
from .part import Part, PartNode, node_error, read_part
from .plan import Plan, Start
from .regions import Region, cut_regions
from .run_policy import RunPolicy
from .static_executor import StaticExecution
from .value_sizes import sized_by_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.state import ResourceManager
    from tenfold_protos.graph_pb2 import GraphDef

    from ..interfaces import Value

#: (node name, op, device) → the one kernel of that node in its session.
StatefulKernels: TypeAlias = dict[tuple[str, str, str], Callable[..., Any]]


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
        part: Part,
        kernels: Mapping[int, Any],
        constants: Mapping[int, tuple[Any, ...]],
        compiler: FusionCompiler | None = None,
        short_nanoseconds: int = DEFAULT_LIMITS.inline_nanoseconds,
    ) -> None:
        """With a `compiler`, the program is fused once it is hot (fusion_tiers.py). `short_nanoseconds`: RunPolicy."""
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
        self.generated: Generated | None = None
        #: The groups that `generated` runs as one; None before the program is fused.
        self.fusion: Fusion | None = None
        self.regions: list[Region] = []
        #: The region of each node.
        self.region_of: list[int] = []
        self.plan = Plan((), (), (), ())
        #: Some node may have to wait: no thread but the driver's may run it.
        self.blocks = any(node.blocking for node in part.nodes)
        #: The edges for executors that go node by node; made when one does.
        self._links: Links | None = None
        if part.is_dynamic:
            self.node_links()
        else:
            self.regions, self.region_of = cut_regions(part)
            self.generated = self._generate(tick=self._first_tier(compiler))
            self.plan = self._make_plan(self.generated)
            slot_of = self.generated.slot_of
            self.feed_slots = [(slot_of[feed.node.index], feed) for feed in self.feeds]
        #: Where its runs compute.
        self.policy = RunPolicy(short_nanoseconds, sized_by_values(part, constants), part.is_dynamic)

    def _generate(self, fusion: Fusion | None = None, tick: Callable[[], None] | None = None) -> Generated:
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
        )

    def _first_tier(self, compiler: FusionCompiler | None) -> Callable[[], None] | None:
        """What counts this program's steps; None for a program that is never fused."""
        if compiler is None or compiler.options.mode == "off":
            return None
        constants = dict(self.constants)
        nodes = fusible_nodes(self.part, constants)
        worth = worth_fusing(self.part, nodes) or nodes_of_shapes(self.part, constants)
        return Tier(self, compiler, nodes).tick if worth else None

    def swap(self, fusion: Fusion) -> None:
        """Steps from now on run the groups of `fusion` as one; those under way end as they began. Blocks: compiles."""
        self.generated = self._generate(fusion)
        self.fusion = fusion

    def _make_plan(self, generated: Generated) -> Plan:
        waits = tuple(len(region.after) + len(region.recvs) + len(region.awaited) for region in self.regions)
        successors: list[list[int]] = [[] for _ in self.regions]
        for region in self.regions:
            for before in sorted(region.after):
                successors[before].append(region.index)
        return Plan(
            waits=waits,
            first=tuple(index for index, count in enumerate(waits) if not count),
            successors=tuple(map(tuple, successors)),
            wanted=tuple(
                Wanted((generated.slot_of[node.index], region.index), self.keys[node.index])
                for region in self.regions
                for node in region.recvs
            ),
            starts=tuple(
                tuple(
                    Start(node, *generated.awaited_slots[node.index], self.region_of[node.index])
                    for node in region.starts
                )
                for region in self.regions
            )
            if self.blocks
            else (),
        )

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

    def node_links(self) -> Links:
        """The part's edges as propagator.py walks them, also for a part without control flow."""
        if self._links is None:
            self._links = link(self.part)
        return self._links

    @property
    def is_straight(self) -> bool:
        """True when one call of `advance` runs everything: nothing is received, no branches."""
        return self.generated is not None and len(self.regions) == 1 and not self.regions[0].recvs

    def start(self, io: StepIO) -> Execution:
        """A new step. Raises InvalidArgumentError for a feed that is missing or of the wrong type."""
        if self.generated is not None:
            return StaticExecution(self, self.generated, io)
        return DynamicExecution(self, io)

    def as_graph_def(self) -> GraphDef:
        """The partition as it was registered."""
        return graph_pb2.GraphDef(node=[node.node_def for node in self.part.nodes])

    def check_counts(self, feeds: int, fetches: int) -> None:
        """Whether a run may bring so many tensors and ask for so many, before any is decoded.

        Raises InvalidArgumentError.
        """
        if feeds > len(self.feeds) or fetches > len(self.fetch_keys):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"A run with {feeds} feeds and {fetches} fetches of a graph that takes {len(self.feeds)} and gives "
                f"{len(self.fetch_keys)}.",
            )

    def feed_value(self, feed: Feed, feeds: Mapping[str, Value]) -> Value:
        """The fed value as a read-only array of the right type. Raises InvalidArgumentError naming the feed."""
        value = feeds.get(feed.key)
        if type(value) is np.ndarray and value.dtype == feed.numpy_dtype:
            return read_only(value)
        if value is None:
            raise node_error(
                feed.node,
                errors.InvalidArgumentError(None, None, f"You must feed a value for {feed.key.split(';')[3]!r}."),
            )
        if type(value) is not np.ndarray:
            value = np.asarray(value)
        if value.dtype != feed.numpy_dtype:
            raise node_error(
                feed.node,
                errors.InvalidArgumentError(
                    None,
                    None,
                    f"The value fed for {feed.key.split(';')[3]!r} has dtype {value.dtype}; "
                    f"{feed.dtype.op_name} is expected.",
                ),
            )
        return read_only(value)


def compile_program(
    graph_def: GraphDef,
    task: str,
    resources: ResourceManager,
    limits: Limits = DEFAULT_LIMITS,
    stateful: StatefulKernels | None = None,
    compiler: FusionCompiler | None = None,
    functions: FunctionRuntime | None = None,
) -> Program:
    """Compiles a partition. Blocks while kernels are built, so call it in a thread.

    `stateful` keeps the kernels of a session's stateful ops: a random op goes on in its sequence when another run
    signature uses it. TensorFlow's OpSegment does the same. `compiler` fuses the program once it is hot. `functions` is
    given for the body of a function, which shares its caller's; else they are those of the graph's library.

    Raises InvalidArgumentError, NotFoundError or UnimplementedError naming the node that cannot be compiled.
    """
    part = read_part(graph_def, task, limits.nodes_per_graph)

    if functions is None and graph_def.library.function:
        functions = FunctionRuntime(
            graph_def.library,
            lambda body, runtime: compile_program(body, task, resources, limits, None, compiler, runtime),
        )

    def build(node: PartNode) -> Callable[..., Any]:
        return build_kernel(node, task, resources, stateful, functions)

    constants = build_constants(part, task, resources)
    optimize(part, constants, build)
    kernels: dict[int, Any] = {}
    for node in part.nodes:
        if _is_executors_own(node):
            _check_transfer(node)
        elif node.index not in constants:
            kernels[node.index] = build(node)
            node.blocking = registry.is_blocking(node.op)
    return Program(part, kernels, constants, compiler, limits.inline_nanoseconds)


def build_constants(part: Part, task: str, resources: ResourceManager) -> dict[int, tuple[Any, ...]]:
    """The values of a part's constants, a variable's handle among them. Raises what `compile_program` raises."""
    return {
        node.index: (read_only(np.asarray(build_kernel(node, task, resources, None)())),)
        for node in part.nodes
        if node.op in CONSTANT_OPS
    }


def _is_executors_own(node: PartNode) -> bool:
    return node.op in RECV_OPS | SEND_OPS | DYNAMIC_OPS | ALIAS_OPS | ORDER_OPS


def _check_transfer(node: PartNode) -> None:
    """Raises InvalidArgumentError for a Send or Recv whose key cannot be made."""
    if node.op in RECV_OPS or node.op in SEND_OPS:
        try:
            node.rendezvous_key()
        except (UnicodeDecodeError, TypeError, ValueError) as error:
            raise node_error(
                node, errors.InvalidArgumentError(None, None, f"Its attributes make no key: {error}")
            ) from error


def build_kernel(
    node: PartNode,
    task: str,
    resources: ResourceManager,
    stateful: StatefulKernels | None,
    functions: FunctionRuntime | None = None,
) -> Callable[..., Any]:
    """The node's kernel. Raises the OpError of the look-up or the builder, naming the node."""
    try:
        return _build_kernel(node, task, resources, stateful, functions)
    except Exception as error:
        raise node_error(node, error) from error


def _build_kernel(
    node: PartNode,
    task: str,
    resources: ResourceManager,
    stateful: StatefulKernels | None,
    functions: FunctionRuntime | None,
) -> Callable[..., Any]:
    device = node.node_def.device or f"{task}/device:CPU:0"
    kernel_node = registry.KernelNode(
        name=node.name,
        op=node.op,
        attrs=node.attrs,
        input_types=node.input_types,
        output_types=node.output_types,
        device=device,
        resources=resources,
        functions=functions,
    )
    device_type = device.rpartition("/device:")[2].partition(":")[0] or "CPU"
    builder = registry.lookup(kernel_node, device_type)
    if stateful is None or not opdefs.get(node.op).is_stateful:
        return builder(kernel_node)
    key = (node.name, node.op, device)
    kernel = stateful.get(key)
    if kernel is None:
        # Two graphs may be compiled at once; the first kernel made is everybody's.
        kernel = stateful.setdefault(key, builder(kernel_node))
    return kernel
