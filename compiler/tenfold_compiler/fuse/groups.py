"""The groups of a part, and the order in which groups and the other nodes run.

The last step of fuse/__init__.py: components of one level become groups, too long ones are cut, too short ones are
left alone, and each region gets its schedule. codegen.py writes both down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_compiler.part.pending import in_order
from tenfold_core.opdefs.runtime_ops import METADATA_OPS
from tenfold_kernels.fusion.remembered import Remembered

from .fusion import Fusion, Group
from .levels import OF_SHAPES, Levels
from .nodes import MIN_ARRAY_OPS, MIN_SCALAR_OPS, Shape, Shapes, nodes_of_shapes
from .run import RunWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_compiler.part.part_graph import Edge, PartGraph, PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_compiler.program import Program
    from tenfold_kernels.cuda.fused_runs import DeviceRun
    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.fusion.runs import FusedRun
    from tenfold_kernels.resources.state import ResourceManager

    from .captures import Stretch

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
    `loops` are those that are compiled as a whole. With `resources`, those of the part, what runs on a GPU is recorded.
    """
    part, constants, flow = program.part, program.constants, program.flow
    compiled = {node.index for group in loops if group.loop is not None for node in group.loop.nodes()}
    nodes = [node for node in nodes if node.index not in compiled]
    levels = Levels(part, program.region_of, constants, nodes, shapes, nodes_of_shapes(part, constants), flow)
    groups = list(loops)
    group_of: dict[int, Group] = {}
    for members, space in levels.components():
        for chunk in _chunks(members):
            if space is OF_SHAPES:
                group = _make_remembered(len(groups), chunk, levels, cache)
            else:
                group = _make_group(len(groups), chunk, space, levels, cache)
            if group is not None:
                groups.append(group)
                group_of.update((node.index, group) for node in chunk)
    on_gpu = resources is not None and any(node.memory is not None for node in part.nodes)
    if flow is not None:
        if resources is not None and on_gpu:
            _with_updates(_outermost(part, flow, group_of), groups, levels, cache, resources)
        return Fusion(groups, [], [levels.before(node) for node in part.nodes])
    schedule = [_order(region, group_of, levels) for region in program.regions]
    if resources is not None and on_gpu:
        schedule = [_with_updates(order, groups, levels, cache, resources) for order in schedule]
        schedule = [_recorded(order, groups, levels, cache, resources) for order in schedule]
    return Fusion(groups, schedule)


@dataclass(slots=True, eq=False)
class _WholeLoop:
    members: list[PartNode] = field(default_factory=list)


def _outermost(
    part: PartGraph, flow: ControlFlow, group_of: Mapping[int, Group]
) -> list[PartNode | Group | _WholeLoop]:
    """What the part consists of: nodes, groups, and loops with all that is in them."""
    loops: dict[int, _WholeLoop] = {}
    items: dict[PartNode | Group | _WholeLoop, None] = {}
    for node in part.nodes:
        loop = flow.tree.entered.get(node.index) or flow.tree.frame_of[node.index]
        if loop is None:
            items[group_of.get(node.index, node)] = None
            continue
        while loop.parent is not None:
            loop = loop.parent
        whole = loops.setdefault(id(loop), _WholeLoop())
        whole.members.append(node)
        items[whole] = None
    return list(items)


def _with_updates(
    order: Sequence[PartNode | Group | _WholeLoop],
    groups: list[Group],
    levels: Levels,
    cache: FusionCache,
    resources: ResourceManager,
) -> list[PartNode | Group]:
    """The schedule, but for loops, with updates of small variables on a GPU as groups, which are added to `groups`."""
    from .updates import join_updates, updates_of

    found: list[PartNode | Group] = []
    for item in join_updates(order, levels):
        if isinstance(item, list):
            run, inputs, outputs = updates_of(item, levels, resources)
            groups.append(Group(len(groups), item, run, inputs, outputs, cache))
            found.append(groups[-1])
        elif not isinstance(item, _WholeLoop):
            found.append(item)
    return found


def _recorded(
    order: list[PartNode | Group], groups: list[Group], levels: Levels, cache: FusionCache, resources: ResourceManager
) -> list[PartNode | Group]:
    """The schedule with each long stretch on a GPU as a group, which is added to `groups`."""
    from .captures import Stretch, stretches

    found: list[PartNode | Group] = []
    for item in stretches(order, levels):
        if not isinstance(item, Stretch):
            found.append(item)
        elif item.is_worth_it:
            groups.append(_of_stretch(len(groups), item, levels, cache, resources))
            found.append(groups[-1])
        else:
            found.extend(item.items)
    return found


def _of_stretch(number: int, stretch: Stretch, levels: Levels, cache: FusionCache, resources: ResourceManager) -> Group:
    members = [node for item in stretch.items for node in (item.members if isinstance(item, Group) else (item,))]
    inside = {node.index for node in members}
    inputs: dict[Edge, None] = {}
    for item in stretch.items:
        for edge in map(levels.resolve, item.inputs):
            if edge[0] not in inside and edge[0] not in levels.constants:
                inputs[edge] = None
    outputs = levels.edges_read_outside(inside)
    from .captures import Capture

    capture = Capture(stretch.device, resources, len(outputs))
    return Group(number, members, capture, list(inputs), outputs, cache, items=stretch.items)


def _chunks(members: list[PartNode]) -> list[list[PartNode]]:
    """A group too long for one function, cut in topological order."""
    count = -(-len(members) // MAX_OPS)
    size = -(-len(members) // count)
    return [members[i : i + size] for i in range(0, len(members), size)]


def _make_group(number: int, members: list[PartNode], space: Shape, levels: Levels, cache: FusionCache) -> Group | None:
    """None for members that are not worth a call."""
    # a GPU's launch costs the same whatever it computes
    if len(members) < (MIN_ARRAY_OPS if space or members[0].memory is not None else MIN_SCALAR_OPS):
        return None
    inside = {node.index for node in members}
    outputs = [node for node in members if any(reader not in inside for reader in levels.readers(node.index))]
    writer = RunWriter(members, space, levels)
    run = writer.run([node.index for node in outputs])
    if not outputs or len(run.inputs) + len(outputs) > MAX_ARGUMENTS:
        return None
    what: FusedRun | DeviceRun = run
    if members[0].memory is not None:
        from tenfold_kernels.cuda.fused_runs import DeviceRun

        what = DeviceRun(run)
    inputs = [edge for edge, _ in writer.inputs]
    return Group(number, members, what, inputs, [(node.index, 0) for node in outputs], cache)


def _make_remembered(number: int, members: list[PartNode], levels: Levels, cache: FusionCache) -> Group | None:
    """None for members of which no node outside reads anything, and for those that look at too many shapes."""
    inside = {node.index for node in members}
    inputs: dict[Edge, None] = {}
    for node in members:
        for source in map(levels.resolve, node.inputs):
            if source[0] not in inside and source[0] not in levels.constants:
                inputs[source] = None
                if node.op not in METADATA_OPS:
                    return None
    read = levels.edges_read_outside(inside)
    if not inputs or not read or len(inputs) > MAX_ARGUMENTS:
        return None
    return Group(number, members, Remembered(len(inputs), len(read)), list(inputs), read, cache)


def _order(region: Region, group_of: Mapping[int, Group], levels: Levels) -> list[PartNode | Group]:
    """The region's nodes and groups, each after what it waits for, near the place it had."""
    # a group stands where its last member stood
    items = list(dict.fromkeys(group_of.get(node.index, node) for node in reversed(region.nodes)))[::-1]
    order = in_order(range(len(items)), levels.between(items))
    assert len(order) == len(items), "the groups of a region wait for each other"
    return [items[place] for place in order]
