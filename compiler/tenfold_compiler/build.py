"""The compiler's pipeline: a partition in, a program out.

    read_part       nodes and edges, every one checked          part/
    optimize        fewer nodes                                  optimize/
    kernels         a function for each node                     node_kernels.py
    flow, regions   branches and loops, and what waits for what  part/
    generate        Python functions, a line a node              write/

A program that is hot is written once more with groups of nodes in one call (`fused`). Called in a thread, because
kernels may compile. In TensorFlow: graph_mgr.cc's InitItem.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tenfold_compiler.fuse.alike import are_alike
from tenfold_compiler.fuse.groups import find_groups
from tenfold_compiler.fuse.nodes import fusible_nodes, nodes_of_shapes, worth_fusing
from tenfold_compiler.optimize import optimize
from tenfold_compiler.part.creation_order import keep_order
from tenfold_compiler.part.cross_memory import device_type_of, insert_copies, note_memory
from tenfold_compiler.part.graph_sizes import sized_by_values
from tenfold_compiler.part.loop_tree import Unstructured
from tenfold_compiler.part.node_facts import (
    independent_host_functions,
    steered_by_others,
    views_of_references,
    with_copies,
)
from tenfold_compiler.part.read_part import read_part
from tenfold_compiler.part.regions import cut_regions
from tenfold_compiler.part.split_part import split_part
from tenfold_compiler.part.structured_flow import read_control_flow
from tenfold_compiler.program import Program, transfers_of
from tenfold_compiler.write.codegen import generate
from tenfold_compiler.write.loop_writer import find_loops
from tenfold_compiler.write.region_schedule import schedule
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, COPY_OPS, DYNAMIC_OPS, ORDER_OPS, RECV_OPS, SEND_OPS
from tenfold_core.tensor_util import held_bytes
from tenfold_kernels import contexts, registry
from tenfold_kernels.cuda import copies
from tenfold_kernels.host_threads import on_a_thread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_compiler.fuse.fusion import Fusion
    from tenfold_compiler.fuse.nodes import Shapes
    from tenfold_compiler.node_kernels import Target
    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import PartGraph
    from tenfold_compiler.part.split_part import PartHalf
    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.resources.state import ResourceManager
    from tenfold_protos.graph_pb2 import GraphDef

#: What the executors do themselves.
_EXECUTORS_OWN = RECV_OPS | SEND_OPS | DYNAMIC_OPS | ALIAS_OPS | ORDER_OPS


def build(graph_def: GraphDef, target: Target) -> Program:
    """Compiles a partition. Blocks while kernels are built, so call it in a thread.

    Raises InvalidArgumentError, NotFoundError, UnimplementedError or ResourceExhaustedError naming the node that cannot
    be compiled, or the limit.
    """
    part = read_part(graph_def, target.task, target.most_nodes)
    uses_gpu = note_memory(part)
    constants = target.constants(part)
    optimize(part, constants, lambda node: target.kernel(node, "CPU"))
    if uses_gpu:
        insert_copies(part, constants, views_of_references(part, constants))
    kernels = _kernels(part, constants, target)
    keep_order(part)
    return written(structured(part, kernels, constants, target.most_turns, uses_gpu=uses_gpu), target.fuses)


def fused(program: Program, shapes: Shapes, cache: FusionCache, resources: ResourceManager | None) -> Fusion:
    """What of a program could run as one, by the shapes that a step had. `resources`: those of its session."""
    return find_groups(program, program.fusible or (), shapes, cache, find_loops(program, cache), resources)


def with_fusion(program: Program, fusion: Fusion) -> Program:
    """The program with the groups of `fusion` as one call each. Its slots stay, so that a step that is under way may go
    on with either. Blocks: compiles."""
    return replace(program, generated=generate(program, fusion), fusion=fusion)


def _kernels(part: PartGraph, constants: Constants, target: Target) -> dict[int, Any]:
    """The kernel of each node that has one; notes which nodes may have to wait."""
    views = views_of_references(part, constants)
    kernels: dict[int, Any] = {}
    for node in part.nodes:
        if node.op in _EXECUTORS_OWN or node.index in constants:
            continue
        if node.op in COPY_OPS:
            place = node.node_def.device if node.op == "_CopyToDevice" else ""
            kernels[node.index] = copies.begin if node.op == "_BeginCopyToHost" else copies.kernel(place)
        else:
            kernels[node.index] = target.kernel(node)
            if views and (places := steered_by_others(node, views)):
                kernels[node.index] = with_copies(kernels[node.index], places)
            device_type = device_type_of(node.node_def.device)
            node.blocking = registry.is_blocking(node.op, device_type)
            if target.with_files is not None and registry.uses_files(node.op, device_type):
                kernels[node.index], node.blocking = target.with_files(kernels[node.index]), True
    contexts.watch_next_calls()
    for index in independent_host_functions(part):
        kernels[index], part.nodes[index].blocking = on_a_thread(kernels[index]), True
    return kernels


def structured(
    part: PartGraph,
    kernels: Mapping[int, Any],
    constants: Constants,
    most_turns: int,
    *,
    uses_gpu: bool = False,
    is_piece: bool = False,
) -> Program:
    """The program of a part whose kernels and constants, by node, are there, but for its code. One that `is_piece` of
    another runs its branches and loops node by node."""
    flow, halves = None, None
    if part.is_dynamic and not is_piece:
        try:
            flow = read_control_flow(part, constants)
        except Unstructured as why:
            halves = split_part(part, constants, why)
    loops = part.is_dynamic if flow is None else bool(flow.tree.loops)
    on_gpu = any(node.memory is not None for node in part.nodes)
    program = Program(
        part,
        kernels,
        constants,
        transfers_of(part),
        most_turns,
        uses_gpu=uses_gpu,
        blocks=any(node.blocking for node in part.nodes),
        has_loops=loops,
        # the thread of what runs on a GPU waits for it, whose time is not the processor's
        sized_by_values=sized_by_values(part, constants) or (flow is not None and loops) or on_gpu,
        size=part.size + sum(held_bytes(value) for values in constants.values() for value in values),
        flow=flow,
    )
    if halves is not None:
        programs = tuple(_half(program, half, is_piece=half is halves[1]) for half in halves)
        keys = halves[0].keys | halves[1].keys
        return replace(program, halves=programs, cut_keys=frozenset(keys), size=program.size + part.size)
    if part.is_dynamic and flow is None:
        return program
    regions, region_of = cut_regions(part, None if flow is None else flow.tree.members)
    return replace(program, regions=regions, region_of=region_of)


def _half(whole: Program, half: PartHalf, is_piece: bool) -> Program:
    kernels = {new: whole.kernels[old] for new, old in half.origin.items() if old in whole.kernels}
    constants = {new: whole.constants[old] for new, old in half.origin.items() if old in whole.constants}
    return structured(half.part, kernels, {**constants, **half.constants}, whole.most_turns, is_piece=is_piece)


def written(program: Program, fuses: bool) -> Program:
    """The program with its code, and its halves with theirs. Blocks: Python compiles the code."""
    if program.halves:
        return replace(program, halves=tuple(written(half, fuses) for half in program.halves))
    if program.part.is_dynamic and program.flow is None:
        return program
    fusible = None
    if fuses:
        # counting steps is not worth it for each program
        nodes = fusible_nodes(program.part, program.constants)
        worth = bool(program.flow and program.flow.tree.loops) or program.uses_gpu or worth_fusing(nodes)
        worth = worth or bool(nodes_of_shapes(program.part, program.constants))
        fusible = nodes if worth or are_alike(program.part, program.constants) else None
    generated = generate(program, ticks=fusible is not None)
    return replace(
        program,
        fusible=fusible,
        generated=generated,
        schedule=schedule(program.regions, program.region_of, generated, program.transfers.keys),
        feed_slots=[(generated.slot_of[feed.node.index], feed) for feed in program.transfers.feeds],
    )
