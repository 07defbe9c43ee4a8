"""The groups of a part, and the order in which groups and the other nodes run.

The last step of this package: components of one level become groups, too long ones are cut, too short ones are
left alone, and each region gets its schedule. codegen.py writes both down.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.loop_tree import Loop
from tenfold_compiler.pending import in_order
from tenfold_core.opdefs.runtime_ops import METADATA_OPS
from tenfold_kernels.fusion.expressions import SEVERAL_PASSES
from tenfold_kernels.fusion.remembered import Remembered
from tenfold_kernels.fusion.runs import is_cut
from tenfold_kernels.fusion.shares import LARGE, LARGE_OF_SEVERAL

from .alike import alike, are_alike, together
from .fusion import Fusion, Group
from .levels import OF_SHAPES, Levels
from .nodes import MIN_ARRAY_OPS, MIN_SCALAR_OPS, Shape, Shapes, nodes_of_shapes
from .run import RunWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_compiler.program import Program
    from tenfold_kernels.cuda.fused_runs import DeviceRun
    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.fusion.runs import FusedRun
    from tenfold_kernels.resources.state import ResourceManager

#: LLVM's time grows faster than a run's length.
MAX_OPS = 512
#: A call with more arguments than this spends its time on them.
MAX_ARGUMENTS = 64


def find_groups(
    program: Program,
    nodes: Sequence[PartNode],
    shapes: Shapes,
    cache: FusionCache,
    loops: Sequence[Group] = (),
    resources: ResourceManager | None = None,
) -> Fusion:
    """Groups the fusible `nodes` whose shapes are known and puts everything in an order that keeps all waits. In a part
    with branches, what runs under other conditions, or in another loop, is no group.
    `loops` are those that are compiled as a whole. With `resources`, those of the part, what runs on a GPU is recorded,
    and what does the same to many tables is one call.
    """
    part, constants, flow = program.part, program.constants, program.flow
    compiled = {node.index for group in loops if group.loop is not None for node in group.loop.nodes()}
    nodes = [node for node in nodes if node.index not in compiled]
    levels = Levels(program, nodes, shapes, nodes_of_shapes(part, constants))
    grouping = _Grouping(levels, cache, loops)
    for members, space in levels.components():
        for chunk in _chunks(members):
            if space is OF_SHAPES:
                grouping.remember(chunk)
            else:
                grouping.fuse(chunk, space)
    if not any(node.memory is not None for node in part.nodes):
        if resources is not None and flow is None and are_alike(part, constants):
            for region in program.regions:
                grouping.join_alike(region, resources)
        resources = None
    if flow is not None:
        if resources is not None:
            grouping.join_updates(_outermost(part, flow, grouping.of), resources)
        return Fusion(grouping.groups, [], [levels.before(node) for node in part.nodes])
    schedule = [grouping.order(region) for region in program.regions]
    if resources is not None:
        schedule = [grouping.join_updates(order, resources) for order in schedule]
        schedule = [grouping.record(order, resources) for order in schedule]
    return Fusion(grouping.groups, schedule)


def _outermost(part: PartGraph, flow: ControlFlow, group_of: Mapping[int, Group]) -> list[PartNode | Group | Loop]:
    """What the part consists of: nodes, groups, and loops with all that is in them."""
    members = (flow.tree.standing_in(None, node) or node for node in part.nodes)
    return list(dict.fromkeys(each if isinstance(each, Loop) else group_of.get(each.index, each) for each in members))


def _chunks(members: list[PartNode]) -> list[list[PartNode]]:
    """A group too long for one function, cut in topological order."""
    count = -(-len(members) // MAX_OPS)
    size = -(-len(members) // count)
    return [members[i : i + size] for i in range(0, len(members), size)]


class _Grouping:
    """The groups of one part, one after the other."""

    def __init__(self, levels: Levels, cache: FusionCache, loops: Sequence[Group]) -> None:
        self._levels, self._cache = levels, cache
        self.groups = list(loops)
        #: Node → the group that it is fused in.
        self.of: dict[int, Group] = {}

    def _add(
        self, members: list[PartNode], run: Any, inputs: list[Edge], outputs: list[Edge], items: Any = ()
    ) -> Group:
        self.groups.append(Group(len(self.groups), members, run, inputs, outputs, self._cache, items=items))
        return self.groups[-1]

    def fuse(self, members: list[PartNode], space: Shape) -> None:
        """Makes a group of members that are worth a call."""
        on_gpu = members[0].memory is not None
        large = not on_gpu and math.prod(space) >= (LARGE_OF_SEVERAL if members[0].op in SEVERAL_PASSES else LARGE)
        # a GPU's launch costs the same whatever it computes
        if len(members) < (MIN_ARRAY_OPS if space or on_gpu else MIN_SCALAR_OPS) and not large:
            return
        inside = {node.index for node in members}
        outputs = [n.index for n in members if any(reader not in inside for reader in self._levels.readers[n.index])]
        writer = RunWriter(members, space, self._levels)
        run = writer.run(outputs)
        uncut = large and len(members) < MIN_ARRAY_OPS and not is_cut(run)
        if not outputs or uncut or len(run.inputs) + len(outputs) > MAX_ARGUMENTS:
            return
        what: FusedRun | DeviceRun = run
        if on_gpu:
            from tenfold_kernels.cuda.fused_runs import DeviceRun

            what = DeviceRun(run)
        group = self._add(members, what, [edge for edge, _ in writer.inputs], [(index, 0) for index in outputs])
        self.of.update(dict.fromkeys(inside, group))

    def remember(self, members: list[PartNode]) -> None:
        """Makes a group of members that depend on shapes alone, unless no node outside reads anything of them, or they
        look at other values or too many shapes.
        """
        inside = {node.index for node in members}
        inputs: dict[Edge, None] = {}
        for node in members:
            outside = self._from_outside(node, inside)
            if outside and node.op not in METADATA_OPS:
                return
            inputs.update(dict.fromkeys(outside))
        read = self._levels.edges_read_outside(inside)
        if inputs and read and len(inputs) <= MAX_ARGUMENTS:
            group = self._add(members, Remembered(len(inputs), len(read)), list(inputs), read)
            self.of.update(dict.fromkeys(inside, group))

    def _from_outside(self, item: PartNode | Group, inside: Collection[int]) -> list[Edge]:
        edges = map(self._levels.resolve, item.inputs)
        return [edge for edge in edges if edge[0] not in inside and edge[0] not in self._levels.constants]

    def order(self, region: Region) -> list[PartNode | Group]:
        """The region's nodes and groups, each after what it waits for, near the place it had."""
        # a group stands where its last member stood
        items = list(dict.fromkeys(self.of.get(node.index, node) for node in reversed(region.nodes)))[::-1]
        order = in_order(range(len(items)), self._levels.between(items))
        assert len(order) == len(items), "the groups of a region wait for each other"
        return [items[place] for place in order]

    def join_alike(self, region: Region, resources: ResourceManager) -> None:
        """Makes groups of the region's nodes that do the same to many tables."""
        for members in alike(self.order(region), self._levels):
            group = self._add(members, *together(members, self._levels, resources))
            self.of.update(dict.fromkeys((node.index for node in members), group))

    def join_updates(
        self, order: Sequence[PartNode | Group | Loop], resources: ResourceManager
    ) -> list[PartNode | Group]:
        """The schedule, but for loops, with updates of small variables on a GPU as groups."""
        from .updates import join_updates, updates_of

        found: list[PartNode | Group] = []
        for item in join_updates(order, self._levels):
            if isinstance(item, list):
                found.append(self._add(item, *updates_of(item, self._levels, resources)))
            elif not isinstance(item, Loop):
                found.append(item)
        return found

    def record(self, order: Sequence[PartNode | Group], resources: ResourceManager) -> list[PartNode | Group]:
        """The schedule with each long stretch on a GPU as a group."""
        from .captures import Capture, Stretch, stretches

        found: list[PartNode | Group] = []
        for item in stretches(order, self._levels):
            if not isinstance(item, Stretch):
                found.append(item)
            elif item.is_worth_it:
                members = [node for each in item.items for node in getattr(each, "members", [each])]
                inside = {node.index for node in members}
                inputs = dict.fromkeys(edge for each in item.items for edge in self._from_outside(each, inside))
                outputs = self._levels.edges_read_outside(inside)
                capture = Capture(item.device, resources, len(outputs))
                found.append(self._add(members, capture, list(inputs), outputs, item.items))
            else:
                found.extend(item.items)
        return found
