"""Names inside a graph: "a", "a:1" and "^a", and what to suggest where one is wrong.

Used by the services' passes, by their master, which takes feeds and fetches by such names, and where a client's graph
is imported.
Follows TensorFlow's tensor_id.cc and node_def_util.cc.
"""

from __future__ import annotations

import difflib
import heapq
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What TensorFlow takes as the name of a client's node; names with a leading underscore are the runtime's own.
_NODE_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")

#: More candidates than this are not searched for near misses: an error must stay cheap on a huge graph.
_MAX_SUGGESTION_POOL = 20_000
#: Comparing two names takes time in proportion to the product of their lengths. If that comes to more than this for all
#: candidates, only these few are compared: those that begin and end most like the wrong name.
_MOST_COMPARED, _FEW = 500_000, 20


class TensorName(NamedTuple):
    """One output of a node. Prints in the canonical spelling, always with the output number."""

    node: str
    output: int

    def __str__(self) -> str:
        return f"{self.node}:{self.output}"


def parse_tensor_name(name: str) -> TensorName:
    """Splits "a:1"; "a" means "a:0". Text after a colon that is not a number belongs to the node's name."""
    node, colon, index = name.rpartition(":")
    # Bounded: a longer number is no index of anything, and int() of a long text is slow.
    if colon and index.isascii() and index.isdigit() and len(index) <= 9:
        return TensorName(node, int(index))
    return TensorName(name, 0)


def is_valid_node_name(name: str) -> bool:
    return _NODE_NAME.match(name) is not None


def free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, with a number behind it where it is taken; it is taken from now on."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """ "; did you mean 'a' or 'b'?" for the nearest known names, or "" where nothing is near."""
    pool = list(known)
    if len(pool) > _MAX_SUGGESTION_POOL or len(wrong) > 200:
        return ""
    if len(wrong) * sum(map(len, pool)) > _MOST_COMPARED:
        short = (name for name in pool if len(name) < 2 * len(wrong))  # a name twice as long is never near
        pool = heapq.nlargest(_FEW, short, lambda name: _like(wrong, name))
    near = difflib.get_close_matches(wrong, pool, n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


def _like(one: str, other: str) -> int:
    """How many characters two names have in common at both ends."""
    return _alike(one, other) + _alike(one[::-1], other[::-1])


def _alike(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def node_reference(name: str) -> str:
    """The end of an error text: clients find the failing operation by it."""
    return f"\n\t [[{{{{node {name}}}}}]]"


def at_node(node: Any, text: str, kind: type[errors.OpError] = errors.InvalidArgumentError) -> errors.OpError:
    """The error of one node, a NodeDef or what has a `node_def`: `text` with the reference to it behind."""
    return kind(getattr(node, "node_def", node), None, text + node_reference(node.name))
