"""The updates of several small variables by one optimizer, on one GPU, as one launch.

    ApplyAdam(a), ApplyAdam(b), …, with the same scalars   ─►   one kernel that has them all for arguments

A launch costs microseconds, whatever it computes, and a model has many biases. The worker groups the nodes
(tenfold_compiler/fuse/updates.py); here they become a call that behaves as they do one after the other: where
something is not as it should be, it runs them, `fallback`, and the one that fails says so.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels import optimizer_rules
from tenfold_kernels.cpu._variables import is_resource, variable_reader
from tenfold_kernels.cuda import update_text
from tenfold_kernels.cuda._launch import launch_over
from tenfold_kernels.cuda.state_apply import update_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.fusion.cache import FusionCache
    from tenfold_kernels.registry import KernelNode

#: Updates of one launch: a kernel may have 4 KB of arguments, and five arrays for each update.
MOST = 32


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One update, and where the call has its variables, its gradient and its scalars."""

    node: KernelNode
    variables: tuple[int, ...]
    gradient: int
    #: And whether that is a reference.
    scalars: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceUpdates:
    """What `Group.run` is for at most MOST dense updates of one kind, none of which waits for another.

    That they have the same scalars is seen in each call: each of them may have read the same variable for itself.
    """

    members: tuple[Member, ...]
    #: The members whose references are the call's results.
    outputs: tuple[int, ...]
    source: None = None

    def build(self, fallback: Callable[..., Any], cache: FusionCache) -> Callable[..., Any]:
        """Inputs by position → nothing, a reference, or a tuple of references. Compiles at the first call."""
        layout = optimizer_rules.layout_of(self.members[0].node.op)
        update = update_of(self.members[0].node, layout)
        readers = [[variable_reader(each.node) for _ in each.variables] for each in self.members]
        resource = [is_resource(each.node) for each in self.members]
        #: Once those that are the same inputs anyhow: for each scalar the places where members have it.
        every = zip(*(each.scalars for each in self.members), strict=True)
        scalar_places = [tuple(dict.fromkeys(places)) for places in every]

        def variables_of(inputs: Sequence[Any]) -> list[list[Any]]:
            return [
                [read(inputs[place]) for read, place in zip(read_all, each.variables, strict=True)]
                for each, read_all in zip(self.members, readers, strict=True)
            ]

        def scalars_of(inputs: Sequence[Any]) -> list[DeviceArray] | None:
            """Those that all members have, in one place of the memory."""
            found = []
            for places in scalar_places:
                values = [inputs[place].value if is_ref else inputs[place] for place, is_ref in places]
                first = values[0]
                if any(each.buffer is not first.buffer or each.offset != first.offset for each in values):
                    return None
                found.append(first)
            return None if any(each.ndim for each in found) else found

        def fits(variables: Sequence[Any], gradient: DeviceArray) -> bool:
            held = [each.held() for each in variables]
            return all(each is not None and each.shape == gradient.shape for each in held)

        def call(*inputs: Any) -> Any:
            try:
                found = variables_of(inputs)
            except errors.OpError:
                return fallback(*inputs)
            locks = {id(each): each.lock for variables in found for each in variables}
            gradients = [inputs[each.gradient] for each in self.members]
            with ExitStack() as held:
                for number in sorted(locks):
                    held.enter_context(locks[number])
                scalars = scalars_of(inputs)
                # a variable that is updated twice is so in some order
                is_once = len(locks) == sum(map(len, found))
                if scalars is None or not is_once or not all(map(fits, found, gradients)):
                    return fallback(*inputs)
                arrays: list[DeviceArray] = []
                sizes = []
                for variables, gradient, exclusive in zip(found, gradients, resource, strict=True):
                    buffers = [each.buffer(exclusive=exclusive) for each in variables]
                    if gradient.size:
                        arrays += [*buffers, gradient]
                        sizes.append(gradient.size)
                if sizes:
                    *ends, total = accumulate(sizes)
                    launch_over(update_text.compiled_many(update, len(sizes)), total, ends, (*arrays, *scalars))
            given = [found[number][0] for number in self.outputs]
            return given[0] if len(given) == 1 else tuple(given) if given else None

        return call
