"""Lists in pages: `limit`, `after` and `next`, in one way for every list.

A page ends with a place: what the list is ordered by, of the last object that it shows. `next` is that place as text
that a client passes on and does not read, so that an object that comes or goes shifts no page.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Query

from tenfold_control_api.problems import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

#: Parts of a place: all lists are ordered by texts and numbers.
Place = tuple[str | float, ...]

Limit = Annotated[int, Query(ge=1, le=1000, description="Objects on a page.")]
After = Annotated[str | None, Query(max_length=500, description="`next` of the previous page.")]
#: The limit that holds without one.
LIMIT = 100


def place(after: str | None, *shape: type) -> Place | None:
    """The place that `after` names, made of `shape`. Raises `invalid-cursor` for what no page ended with."""
    if after is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(after.encode()))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    fits = isinstance(found, list) and [type(part) for part in found] == list(shape)
    if not fits or not all(part.isprintable() for part in found if isinstance(part, str)):
        raise ApiError("invalid-cursor", f"after={after!r} is not the `next` of a page of this list.")
    return tuple(found)


def following(found: Sequence[T], limit: int, place_of: Callable[[T], Place]) -> tuple[Sequence[T], str | None]:
    """The page and its `next`, of `limit` objects and perhaps one more: that one tells that there is another page."""
    page = found[:limit]
    if len(found) <= limit:
        return page, None
    return page, base64.urlsafe_b64encode(json.dumps(place_of(page[-1])).encode()).decode()


def page_of(
    objects: Iterable[T], place_of: Callable[[T], Place], after: Place | None, limit: int, *, newest_first: bool = False
) -> tuple[Sequence[T], str | None]:
    """The page of objects in memory, in the order of their places."""
    ordered = sorted(objects, key=place_of, reverse=newest_first)
    if after is not None:
        ordered = [each for each in ordered if (place_of(each) < after if newest_first else place_of(each) > after)]
    return following(ordered, limit, place_of)
