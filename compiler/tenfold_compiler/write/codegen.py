"""Turns regions into Python functions: a line a node, values in local variables, freed at last use.

    def r0(s, send, fetch, stop):        s: values from outside the region, by slot
        v0 = s[2]
        v1 = k7(v0, c3)                  k: kernels, c: constants; both globals of the function
        v0 = k8(v1, v0.value)            a reference edge read by a consumer of values
        send(0, v0)

The interpreter's own dispatch (30–50 ns a node) replaces a loop over tables (150–250 ns). The text is made of numbers
only, nothing of a graph's names gets into it. An exception's line number tells the node. With a Fusion (fuse/) a
group of nodes is one line, `v0, v1 = g3(v2, v4)`, and its nodes stand in a function of their own, which g3 calls for
arrays that it was not compiled for. Used by program.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_compiler.part.part_graph import node_error
from tenfold_compiler.part.regions import Region, rest_of
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, RECV_OPS, SEND_OPS
from tenfold_kernels import contexts, denormals, registry
from tenfold_kernels.loop_turns import MOST_TURNS
from tenfold_kernels.resources.tensor_arrays import empty_stack

from .flow_names import names_of_branches
from .flow_writer import FlowWriter
from .region_writer import RegionWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.fuse import Fusion
    from tenfold_compiler.part.part_graph import PartGraph, PartNode
    from tenfold_compiler.part.structured_flow import ControlFlow

#: (slots, send(index, value), fetch(index, value), stop) → None. `stop` is a list that is not empty once cancelled.
RegionFunction: TypeAlias = Callable[[list[Any], Callable[..., None], Callable[..., None], list[Any]], None]

FILENAME = "<tenfold program>"
#: Lines that are compiled in one call, or one function if that is longer: it lets no other thread run.
_PIECE = 4_000
#: Ops whose bound form says by IndexError that there is nothing left.
_POPS = frozenset(("StackPop", "StackPopV2"))
#: Ops that hand floating-point numbers on and compute nothing.
_MOVES = ALIAS_OPS | SEND_OPS


@dataclass(slots=True)
class GeneratedCode:
    """What `generate` made of a part."""

    #: The part's nodes, for errors.
    nodes: Sequence[PartNode]
    #: By region; None for a region in which nothing is left to do.
    functions: list[RegionFunction | None]
    #: All regions that wait for something, as one: for a step in which everything has come before they run. None where
    #: that would be no more than one of them.
    rest: RegionFunction | None = None
    #: Whether a node does arithmetic with floating-point numbers; where none does, denormals are nobody's business.
    computes: bool = True
    #: Slots that a step needs, and which of them each Recv or feed node (by index) fills.
    slot_count: int = 0
    slot_of: dict[int, int] = field(default_factory=dict)
    #: Per node that may have to wait: the slot for what its kernel returns, and those of its outputs.
    awaited_slots: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    #: Line → node index, and the code objects that these lines belong to.
    node_at_line: dict[int, int] = field(default_factory=dict)
    codes: frozenset[CodeType] = frozenset()
    #: The globals of the functions: kernels as k7, what binds their resources as b7, groups as g3, `tick`. A kernel may
    #: be replaced here at any time.
    namespace: dict[str, Any] = field(default_factory=dict)

    def call(
        self,
        function: RegionFunction,
        slots: list[Any],
        send: Callable[..., None],
        fetch: Callable[..., None],
        stop: list[Any],
    ) -> None:
        """Calls one of the functions: the only place that does. Any thread, many at once.

        Raises the OpError of the node that failed.
        """
        free = contexts.free_contexts
        try:
            context = free.pop()
        except IndexError:
            context = contexts.new_context()
        before: Any = None
        restore: Any = None
        if self.computes:
            flush, restore = denormals.mode
            before = flush()
        try:
            context.run(function, slots, send, fetch, stop)
        except Exception as error:
            index = self._failed_node(error.__traceback__)
            if index is None:
                raise
            if type(error) is IndexError and self.nodes[index].op in _POPS:
                error = empty_stack()
            raise node_error(self.nodes[index], error) from error
        finally:
            if before:
                restore(before)
            free.append(context)

    def _failed_node(self, traceback: TracebackType | None) -> int | None:
        """The node whose line raised, the innermost one, or None when the exception came from elsewhere."""
        found = None
        while traceback is not None:
            if traceback.tb_frame.f_code in self.codes:
                found = self.node_at_line.get(traceback.tb_lineno)
            traceback = traceback.tb_next
        return found


def generate(
    part: PartGraph,
    regions: list[Region],
    region_of: list[int],
    kernels: Mapping[int, Callable[..., Any]],
    constants: Mapping[int, tuple[Any, ...]],
    sends: Mapping[int, int],
    fetches: Mapping[int, int],
    fusion: Fusion | None = None,
    tick: Callable[[], None] | None = None,
    flow: ControlFlow | None = None,
    fetch_keys: Sequence[str] = (),
    most_turns: int = MOST_TURNS,
) -> GeneratedCode:
    """Compiles every region.

    `kernels` and `constants` (a tuple of outputs) are by node, `sends` and `fetches` number the Send nodes. `tick` is
    called once a step, at the beginning of the first region that has something to do. The slots depend on the part
    alone: whatever `fusion` is, a step of one result goes on with another. `flow` is that of a part with branches, and
    `fetch_keys` are what its errors call the fetches; its loops take `most_turns` in one call.
    """
    starts = {node.index: region.index for region in regions for node in region.starts}
    writer = (
        RegionWriter(part, region_of, kernels, constants, sends, fetches, starts)
        if flow is None
        else FlowWriter(part, flow, region_of, kernels, constants, sends, fetches, starts, fusion)
    )
    schedules = None if fusion is None or flow is not None else fusion.schedule
    writer.tick = tick is not None
    names = [writer.region(region, None if schedules is None else schedules[region.index]) for region in regions]
    rest = writer.rest(rest_of(regions), schedules)
    groups = fusion.groups if fusion is not None else ()
    for group in groups:
        writer.unfused(group)
    namespace: dict[str, Any] = {f"k{index}": kernel for index, kernel in kernels.items()}
    namespace.update((f"b{index}", bind) for index, kernel in kernels.items() if (bind := registry.binder(kernel)))
    namespace.update((f"c{n}_{port}", v) for n, values in constants.items() for port, v in enumerate(values))
    namespace["__builtins__"] = {}
    if flow is not None:
        namespace.update(names_of_branches(part, fetch_keys, most_turns))
    _compile(writer, namespace)
    functions = [namespace[name] if name else None for name in names]
    all_rest = namespace[rest] if rest else None
    unfused = [namespace[f"f{group.number}"] for group in groups]
    for group, fallback in zip(groups, unfused, strict=True):
        namespace[f"g{group.number}"] = group.build(fallback, most_turns)
    if tick is not None:
        namespace["tick"] = tick
    return GeneratedCode(
        nodes=part.nodes,
        functions=functions,
        rest=all_rest,
        computes=any(map(_computes, part.nodes)),
        slot_count=len(writer.slots),
        slot_of={node: slot for (node, _), slot in writer.slots.items() if part.nodes[node].op in RECV_OPS},
        awaited_slots={node: writer.awaited_slots(part.nodes[node]) for node in starts},
        node_at_line=writer.node_at_line,
        codes=frozenset(f.__code__ for f in (*functions, all_rest, *unfused) if isinstance(f, FunctionType)),
        namespace=namespace,
    )


def _computes(node: PartNode) -> bool:
    return node.op not in _MOVES and any(x.is_floating or x.is_complex for x in node.input_types)


def _compile(writer: RegionWriter, namespace: dict[str, Any]) -> None:
    """Puts the functions into `namespace`, some at a time. Their lines keep the numbers that they have in the whole."""
    borders = [*writer.defs, len(writer.lines)]
    begin = borders[0]
    for border, following in zip(borders, [*borders[1:], None], strict=True):
        if border > begin and (following is None or following - begin > _PIECE):
            text = "\n" * begin + "\n".join(writer.lines[begin:border]) + "\n"
            exec(compile(text, FILENAME, "exec", dont_inherit=True), namespace)
            begin = border
