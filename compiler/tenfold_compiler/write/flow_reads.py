"""What the lines of a part with branches read and test. Writes nothing; asked by the writers of this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_compiler.fuse.fusion import Group
from tenfold_compiler.part.guards import ANY, Guard, Literal
from tenfold_compiler.part.loop_tree import Loop
from tenfold_compiler.part.part_graph import Edge, PartNode, is_variable
from tenfold_core.opdefs import runtime_ops as ops
from tenfold_core.opdefs.runtime_ops import BRANCH_OPS, MERGE_OPS, SEND_OPS

from .slots import Slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tenfold_compiler.part.structured_flow import ControlFlow
    from tenfold_compiler.program import Program

#: Handed on or told by others; nothing to write unless a reference is read.
NAMES_ONLY = ops.BRANCH_OPS | ops.ENTER_OPS | ops.EXIT_OPS | ops.NEXT_ITERATION_OPS | ops.TRIGGER_OPS


class FlowReads:
    """Of one part. A member is a node, a loop or a group."""

    def __init__(self, program: Program, flow: ControlFlow) -> None:
        self.program, self.flow, self.guards = program, flow, flow.guards
        literals = list(self._literals(flow.tree.members, None))
        #: What lines test, with the number of its values, and the frames that these lines stand in.
        self.tested: dict[Edge, int] = {literal.edge: literal.values for literal, _ in literals}
        self._tested_in = {(literal.edge, frame) for literal, frame in literals}
        self.slots = Slots(program, flow.origin)
        self.resolve = self.slots.resolve
        #: The outputs that nodes read, which need a variable.
        self.used = {self.resolve(edge) for node in program.part.nodes for edge in node.inputs}
        for member in flow.tree.members:
            first = next(iter(member.nodes())) if isinstance(member, Loop) else member
            self.slots.note_reads(first.index, self.reads(member))
        self.slots.note_outside()

    def is_silent(self, member: Any) -> bool:
        """Whether there is nothing to write for the member."""
        if isinstance(member, (Loop, Group)):
            return False
        if member.op in NAMES_ONLY:
            return not any(member.deref)
        return is_variable(self.program.part.nodes, member) if member.op in MERGE_OPS else self.slots.is_silent(member)

    def _literals(self, members: Iterable[Any], frame: Loop | None) -> Iterator[tuple[Literal, Loop | None]]:
        """All that some line tests, and the frame of that line."""
        for member in members:
            yield from ((literal, frame) for literal in self.guard(member))
            if isinstance(member, Loop):
                goes_on = self.flow.sections[member].goes_on
                if self.program.part.nodes[goes_on.edge[0]].op in BRANCH_OPS:
                    yield goes_on, member
                yield from self._literals(member.members, member)
            elif member.op in MERGE_OPS and not is_variable(self.program.part.nodes, member):
                yield from ((literal, frame) for case in self.cases(member) for literal in case)

    def is_tested_behind(self, loop: Loop, edge: Edge) -> bool:
        """Whether a line that does not stand in the loop tests that."""
        return any(tested == edge and not _is_in(loop, frame) for tested, frame in self._tested_in)

    def guard(self, member: Any) -> Guard:
        """What has to be tested where the member stands: in a loop's body, the loop goes on."""
        if isinstance(member, Group):
            member = member.members[0]
        guard = self.guards.of_member(member)
        loop = member.parent if isinstance(member, Loop) else self.flow.tree.frame_of[member.index]
        if member.index in self.guards.flagged:
            guard = frozenset(literal for literal in guard if literal.edge != (member.index, ANY))
        if loop is None or not guard:
            return guard
        literal = self.flow.sections[loop].goes_on
        return guard - {literal, literal.other}

    def cases(self, merge: PartNode) -> list[Guard]:
        """Per input of a Merge: what has to be tested where it stands to know that it is alive."""
        own = self.guards.of[merge.index]
        return [self.guards.of_edge(source, port) - own for source, port in merge.inputs]

    def reads(self, member: Any) -> set[Edge]:
        """Outputs, and what is tested of them, that are read by the member or by what is in it."""
        tested = (literal.edge for literal in self.guard(member))
        if isinstance(member, Loop):
            found = {edge for inner in member.members for edge in self.reads(inner)}
            found.update(tested)
            return found.union(self.resolve(enter.inputs[0]) for enter in member.enters)
        if isinstance(member, Group):
            return {*member.inputs, *tested}
        found = {self.resolve(edge) for edge in member.inputs}
        found.update(tested)
        if member.op in MERGE_OPS and not is_variable(self.program.part.nodes, member):
            found.update(literal.edge for case in self.cases(member) for literal in case)
        return found

    def has_else(self, member: Any) -> bool:
        """Whether there is something to do for a node where it does not run."""
        if isinstance(member, (Loop, Group)) or not self.guard(member):
            return False
        return member.op in SEND_OPS or member.index in self.slots.starts

    def borders(self, loop: Loop) -> tuple[list[Edge], list[Edge]]:
        """What comes into the loop, but for constants, and what is read of it when it has ended."""
        read = {self.resolve(enter.inputs[0]) for enter in loop.enters if not enter.attrs.get("is_constant")}
        turns = self.flow.sections[loop]
        read.update(edge for member in (*turns.head, *turns.body) for edge in self.reads(member))
        # a constant has its name everywhere, what is tested of it has one in a function
        constants = self.program.constants
        inputs = [e for e in read if not self.is_made_in(loop, e) and not (e[1] >= 0 and e[0] in constants)]
        return sorted(inputs), sorted(edge for edge in self.left(loop) if self.is_made_in(loop, edge))

    def is_made_in(self, loop: Loop, edge: Edge) -> bool:
        """Whether a node of the loop gives that, or of one in it."""
        return edge[0] not in self.program.constants and _is_in(loop, self.flow.tree.frame_of[edge[0]])

    def is_there(self, loop: Loop, source: int) -> bool:
        """Whether a node outside of the loop has run wherever the loop runs."""
        if source in self.program.constants:
            return True
        frame = self.flow.tree.frame_of[source]
        guard = self.guards.of[source]
        around = (loop, *loop.around)
        while frame is not None and frame not in around:
            # behind an Exit
            guard, frame = self.guards.of_loop[frame], frame.parent
        return guard <= next(self.guards.of_loop[inner] for inner in around if inner.parent is frame)

    def left(self, loop: Loop) -> set[Edge]:
        """What has to be there after the turns."""
        left = {self.resolve(node.inputs[0]) for node in loop.exits}
        left.update(edge for member in self.flow.sections[loop].tail for edge in self.reads(member))
        return left


def _is_in(loop: Loop, frame: Loop | None) -> bool:
    return frame is not None and loop in (frame, *frame.around)
