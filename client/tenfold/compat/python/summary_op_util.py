"""`tensorflow.python.ops.summary_op_util`: names and collections of summary ops."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import add_to_collection, name_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

_ILLEGAL = re.compile(r"[^-/\w\.]")


def collect(val: Any, collections: Any, default_collections: Any) -> None:
    """Adds `val` to the collections."""
    for key in default_collections if collections is None else collections:
        add_to_collection(key, val)


def clean_tag(name: str | None) -> str | None:
    """`name` without characters that the name of an op cannot have, which TensorFlow warns of."""
    if name is None:
        return None
    clean = _ILLEGAL.sub("_", name).lstrip("/")
    if clean != name:
        logging.info("Summary name %s is illegal; using %s instead.", name, clean)
    return clean


@contextlib.contextmanager
def summary_scope(
    name: str, family: str | None = None, default_name: str | None = None, values: Any = None
) -> Iterator[tuple[str, str]]:
    """(tag, scope) of a summary, with its family in front of both."""
    name, family = clean_tag(name) or "", clean_tag(family)
    base = name if family is None else f"{family}/{name}"
    with name_scope(base, default_name, values=values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def skip_summary() -> bool:
    """Always False: every replica writes its summaries."""
    return False
