"""The functions that codegen.py has made of a part, and the one place that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_compiler.part.part_graph import PartNode, node_error
from tenfold_kernels import contexts, denormals
from tenfold_kernels.resources.tensor_arrays import empty_stack

if TYPE_CHECKING:
    from types import CodeType, TracebackType

#: (slots, send(index, value), fetch(index, value), stop) → None. `stop` is a list that is not empty once cancelled.
RegionFunction: TypeAlias = Callable[[list[Any], Callable[..., None], Callable[..., None], list[Any]], None]

#: Ops whose bound form says by IndexError that there is nothing left.
_POPS = frozenset(("StackPop", "StackPopV2"))


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
