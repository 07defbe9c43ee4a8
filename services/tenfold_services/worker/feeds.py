"""What a run brings for a program's feeds, checked before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_compiler.part.part_graph import node_error
from tenfold_compiler.values import read_only
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_compiler.program import Feed, Program

    from ..interfaces import Value


def check_counts(program: Program, feeds: int, fetches: int) -> None:
    """Whether a run may bring so many tensors and ask for so many, before any is decoded.

    Raises InvalidArgumentError.
    """
    transfers = program.transfers
    if feeds > len(transfers.feeds) or fetches > len(transfers.fetch_keys):
        raise errors.invalid_argument(
            f"A run with {feeds} feeds and {fetches} fetches of a graph that takes {len(transfers.feeds)} and gives "
            f"{len(transfers.fetch_keys)}."
        )


def feed_value(feed: Feed, feeds: Mapping[str, Value]) -> Value:
    """The fed value as a read-only array of the right type. Raises InvalidArgumentError naming the feed."""
    value = feeds.get(feed.key)
    if type(value) is np.ndarray and value.dtype == feed.numpy_dtype:
        return read_only(value)
    if value is None:
        raise node_error(
            feed.node,
            errors.invalid_argument(f"You must feed a value for {feed.key.split(';')[3]!r}."),
        )
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.dtype != feed.numpy_dtype:
        raise node_error(
            feed.node,
            errors.invalid_argument(
                f"The value fed for {feed.key.split(';')[3]!r} has dtype {value.dtype}; "
                f"{feed.dtype.op_name} is expected."
            ),
        )
    return read_only(value)
