"""Turns regions into Python functions: a line a node, values in local variables, freed at last use.

    def r0(s, send, fetch, stop):        s: values from outside the region, by slot
        v0 = s[2]
        v1 = k7(v0, c3)                  k: kernels, c: constants; both globals of the function
        v0 = k8(v1, v0.value)            a reference edge read by a consumer of values
        send(0, v0)

With a Fusion (fuse/) a group of nodes is one line, `v0, v1 = g3(v2, v4)`, and its nodes stand in a function of their
own, which g3 calls for arrays that it was not compiled for. Called by build.py. Decision 0005.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.regions import MOST_NODES, Region, rest_of
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, RECV_OPS, SEND_OPS
from tenfold_kernels import registry

from .flow_reads import FlowReads
from .flow_writer import FlowWriter, names_of_branches
from .generated_code import GeneratedCode
from .lines import Lines
from .region_writer import RegionWriter
from .slots import straight_slots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.fuse.fusion import Fusion, Group
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program

FILENAME = "<tenfold program>"
#: Lines that are compiled in one call, or one function if that is longer: it lets no other thread run.
_PIECE = 4_000
#: Ops that hand floating-point numbers on and compute nothing.
_MOVES = ALIAS_OPS | SEND_OPS


def generate(program: Program, fusion: Fusion | None = None, ticks: bool = False) -> GeneratedCode:
    """Compiles every region of a program whose regions are cut.

    The slots depend on the part alone: whatever `fusion` is, a step of one result goes on with another. With `ticks`,
    the first region that has something to do begins with a call of `tick`, which does nothing until it is replaced in
    the namespace: it is called once a step.
    """
    flow, nodes, regions = program.flow, program.part.nodes, program.regions
    lines = Lines(ticks)
    writer: RegionWriter | FlowWriter
    if flow is None:
        slots = straight_slots(program)
        writer = straight = RegionWriter(program, lines, slots)
    else:
        reads = FlowReads(program, flow)
        slots, straight = reads.slots, RegionWriter(program, lines, reads.slots)
        writer = FlowWriter(reads, fusion, straight)
    schedules: Sequence[Sequence[PartNode | Group]] = [region.nodes for region in regions]
    if fusion is not None and flow is None:
        schedules = fusion.schedule
    names = [writer.region(region, schedules[region.index]) for region in regions]
    lines.begin_rest()
    with straight.without_stores():
        rest = _write_rest(writer, rest_of(regions), schedules)
    groups = fusion.groups if fusion is not None else ()
    for group in groups:
        writer.unfused(group)
    namespace: dict[str, Any] = {f"k{index}": kernel for index, kernel in program.kernels.items()}
    namespace |= {f"b{index}": bind for index, k in program.kernels.items() if (bind := registry.binder(k))}
    namespace |= {f"c{n}_{port}": value for n, values in program.constants.items() for port, value in enumerate(values)}
    namespace["__builtins__"] = {}
    if flow is not None:
        namespace |= names_of_branches(program.part, program.transfers.fetch_keys, program.most_turns)
    _compile(lines, namespace)
    functions = [namespace[name] if name else None for name in names]
    all_rest = namespace[rest] if rest else None
    unfused = [namespace[f"f{group.number}"] for group in groups]
    for group, fallback in zip(groups, unfused, strict=True):
        namespace[f"g{group.number}"] = group.build(fallback, program.most_turns)
    if ticks:
        namespace["tick"] = lambda: None
    return GeneratedCode(
        nodes=nodes,
        functions=functions,
        rest=all_rest,
        computes=any(map(_computes, nodes)),
        slot_count=len(slots.numbers),
        slot_of={node: slot for (node, _), slot in slots.numbers.items() if nodes[node].op in RECV_OPS},
        awaited_slots={node: slots.awaited(nodes[node]) for node in slots.starts},
        node_at_line=lines.node_at_line,
        codes=frozenset(f.__code__ for f in (*functions, all_rest, *unfused) if isinstance(f, FunctionType)),
        namespace=namespace,
    )


def _write_rest(
    writer: RegionWriter | FlowWriter,
    regions: Sequence[Region],
    schedules: Sequence[Sequence[PartNode | Group]],
) -> str | None:
    """Writes these regions, in this order, as one function; its name, or None for too few, or too many nodes."""
    if len(regions) < 2 or sum(len(region.nodes) for region in regions) > MOST_NODES:
        return None
    work = [item for region in regions for item in schedules[region.index]]
    whole = Region(-1, nodes=[node for region in regions for node in region.nodes])
    return writer.region(whole, work, "rest")


def _computes(node: PartNode) -> bool:
    return node.op not in _MOVES and any(x.is_floating or x.is_complex for x in node.input_types)


def _compile(lines: Lines, namespace: dict[str, Any]) -> None:
    """Puts the functions into `namespace`, some at a time. Their lines keep the numbers that they have in the whole."""
    borders = [*lines.defs, len(lines.text)]
    begin = borders[0]
    for border, following in zip(borders, [*borders[1:], None], strict=True):
        if border > begin and (following is None or following - begin > _PIECE):
            text = "\n" * begin + "\n".join(lines.text[begin:border]) + "\n"
            exec(compile(text, FILENAME, "exec", dont_inherit=True), namespace)
            begin = border
