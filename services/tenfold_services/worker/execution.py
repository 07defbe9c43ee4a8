"""What all executors share: the protocol of one step of one program, what it is fed, and how values change owners.

static_executor.py, dynamic_executor.py and loaded_program.py implement `Execution`; part_run.py drives it.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold_compiler.part.part_graph import node_error
from tenfold_compiler.values import read_only
from tenfold_core import buffer_pool, errors
from tenfold_core.node_names import node_reference
from tenfold_kernels.resources.messages import that_stays
from tenfold_link.memory import private_mappings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold_compiler.program import Feed, Program
    from tenfold_compiler.write.region_schedule import Wanted

    from ..interfaces import Value

#: What partitioning puts before the name of the sending node.
_EDGE = re.compile(r"^edge_\d+_")
#: The type of arrays whose elements are objects: strings, handles and variants.
OBJECTS = np.dtype(object)


def check_leaves(value: np.ndarray[Any, Any], key: str) -> None:
    """Raises UnimplementedError for an array with a variant that means something in its task only, and that leaves it
    by this rendezvous key; names the node."""
    sender, _, receiver, tensor, _ = key.split(";")
    here, there = sender.partition("/device:")[0], receiver.partition("/device:")[0]
    item = None if here == there else that_stays(value)
    if item is not None:
        node = _EDGE.sub("", tensor)
        raise errors.unimplemented(
            f"A variant of type {type(item).__name__} cannot leave its task: '{node}' is on {here}, and a node that "
            f"takes its output on {there}. Put both on one task.{node_reference(node)}"
        )


class Execution(Protocol):
    """One step of one program: a machine. Used by one thread at a time; never waits."""

    @property
    def ready(self) -> object:
        """True as a condition while something can run at once."""

    @property
    def done(self) -> bool:
        """True when every node has run or is dead."""

    @property
    def shapes(self) -> int:
        """A number for the shapes of all that has come from outside so far: feeds, and what was wanted.

        Steps of the same shapes have the same number, whatever the order; see RunPolicy.is_short. Numbers of each are
        combined by ^: sums are alike where two have exchanged their shapes, as a tuple's hash is almost linear.
        """

    @property
    def pairs(self) -> Sequence[int] | None:
        """The numbers that `shapes` combines, one for each tensor and its place; None where they are not kept."""

    @property
    def usual(self) -> frozenset[int] | None:
        """RunPolicy.usual as it was at the start, as long as all of `pairs` are in it; else None."""

    def take_wanted(self) -> Sequence[Wanted]:
        """The tensors to receive that were not handed out yet."""

    def arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        """A wanted tensor is here. Runs nothing."""

    def advance(self, careful: bool = False) -> None:
        """Runs what is ready, of a loop a good part. Raises the OpError of the node that failed; it is over then.

        `careful`, for an event loop's thread: returns as soon as it may take long from here on, because a loop has
        taken some milliseconds, or because a kernel has taken something of unknown size from a queue or the like.
        """

    def fetched(self) -> dict[str, Value]:
        """The fetched values by rendezvous key, once done. Raises InvalidArgumentError for a dead one."""


@dataclass(slots=True)
class StepIO:
    """What an execution may touch outside itself."""

    feeds: Mapping[str, Value]
    #: Rendezvous.send of the step: (key, value or the variable that a reference refers to, is_dead). Thread-safe, never
    #: blocks.
    send: Callable[[str, Any, bool], None]
    #: Not empty once the step is cancelled; looked at now and then by a program in the pool.
    stop: list[Any] = field(default_factory=list)


def no_send(key: object, *_: Any) -> None:
    """In the place of what sends, where a program sends nothing."""
    raise AssertionError(f"a program that sends ({key}) is not run by its caller")


def check_counts(program: Program, feeds: int, fetches: int) -> None:
    """Raises InvalidArgumentError if a run may not bring, or ask for, so many tensors; called before any is decoded."""
    takes, gives = len(program.transfers.feeds), len(program.transfers.fetch_keys)
    if feeds > takes or fetches > gives:
        raise errors.invalid_argument(
            f"A run with {feeds} feeds and {fetches} fetches of a graph that takes {takes} and gives {gives}."
        )


def feed_value(feed: Feed, feeds: Mapping[str, Value]) -> Value:
    """The fed value as a read-only array of the right type. Raises InvalidArgumentError naming the feed."""
    value = feeds.get(feed.key)
    if type(value) is not np.ndarray or value.dtype != feed.numpy_dtype:
        name = feed.key.split(";")[3]
        if value is None:
            raise node_error(feed.node, errors.invalid_argument(f"You must feed a value for {name!r}."))
        value = np.asarray(value)
        if value.dtype != feed.numpy_dtype:
            text = f"The value fed for {name!r} has dtype {value.dtype}; {feed.dtype.op_name} is expected."
            raise node_error(feed.node, errors.invalid_argument(text))
    return read_only(value)


def kept(value: Value) -> Value:
    """`value` as it is now, for a receiver: writable if nothing else uses it, read-only if it stays as it is for good
    (lent by its variable or by a peer), else a copy.
    """
    if type(value) is np.ndarray:
        if value.flags.writeable:
            return value
        stays = private_mappings.snapshot(value)
        return buffer_pool.copy(value) if stays is None else stays
    return np.asarray(value) if isinstance(value, np.generic) else value


@functools.lru_cache(4096)
def _bit_lengths(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(int.bit_length, shape))


def extent(value: Value) -> Any:
    """How large a value is, to compare: each size of its shape, and of strings how long they are together, to a factor
    of two. With exact sizes, steps whose numbers of rows differ (sparse gradients) would all be unknown."""
    if type(value) is not np.ndarray:
        return getattr(value, "shape", ())
    if not value.dtype.hasobject:
        return _bit_lengths(value.shape)
    length = sum(len(text) for text in value.ravel().tolist() if type(text) is bytes)
    return _bit_lengths(value.shape), length.bit_length()


def cancelled() -> errors.OpError:
    """What a program raises that was told to stop; the step's own error is kept by its rendezvous."""
    return errors.cancelled("Step was cancelled.")
