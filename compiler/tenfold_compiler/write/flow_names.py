"""What lines of generated code with branches call by name, besides kernels: flow_writer.py writes them.

D       the value of a dead tensor, in slots and for `send`
case    the number of the branch that a _SwitchN takes
dead    raises the error of a fetch from a branch that was not taken
i0, i1  what a Merge says of which input it took
new_turns, no_more_turns
        the turns that loops may take in one call of a function; raises the error of one that goes on
some_of, no_more_of
        the same for a loop that pushes on stacks, which takes no more of them than a stack may have elements
"""

from __future__ import annotations

from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tenfold_compiler.values import DEAD, dead_fetch, read_only
from tenfold_core.opdefs.runtime_ops import MERGE_OPS
from tenfold_kernels import loop_turns
from tenfold_kernels.resources.tensor_arrays import MAX_ELEMENTS, check_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_compiler.part.part_graph import PartGraph


def names_of_branches(part: PartGraph, fetch_keys: Sequence[str], most_turns: int) -> dict[str, Any]:
    """The names, for the code of one part."""

    def dead(number: int) -> NoReturn:
        raise dead_fetch(fetch_keys[number])

    most = max((len(node.inputs) for node in part.nodes if node.op in MERGE_OPS), default=0)
    names: dict[str, Any] = {f"i{number}": read_only(np.array(number, dtype=np.int32)) for number in range(most)}

    def no_more_of(turns: Iterator[None]) -> NoReturn:
        if next(turns, names) is None:
            check_count(MAX_ELEMENTS + 1, "A stack of a loop")
        loop_turns.end(most_turns)

    names.update(D=DEAD, case=_case, dead=dead, some_of=_some_of, no_more_of=no_more_of)
    names.update(new_turns=partial(repeat, None, most_turns), no_more_turns=partial(loop_turns.end, most_turns))
    return names


def _some_of(turns: Iterator[None]) -> Iterator[None]:
    return islice(turns, MAX_ELEMENTS)


def _case(value: Any, count: int) -> int:
    """Which of `count` branches a value takes: a number that there is not means the last. 0 for none that came."""
    if value is None or value is DEAD:
        return 0
    number = int(value)
    return number if 0 <= number < count else count - 1
