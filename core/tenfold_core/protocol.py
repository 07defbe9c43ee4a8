"""The versions of Tenfold's own protocols: what this release speaks, and what two ends come to.

Three protocols have a version: links (tenfold_link/wire), calls between Tenfold processes over gRPC (the services of
the package `tenfold`), and REST. Each end says which versions it speaks and what it can do besides; both use the newest
version that both speak, and abilities that both have. Who says nothing is a release from before, which spoke version
1. TensorFlow's own protocol has no such thing, and is left alone. docs/decisions/0085-versions-on-the-wire.md.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The metadata of a gRPC call, and the header of an HTTP request or answer, that says what its sender speaks.
HEADER = "tenfold-protocol"
#: Abilities that are looked at of a peer, and characters of its text.
_MOST_ABILITIES, _MOST_CHARACTERS = 64, 1024
_TEXT = re.compile(r"(\d{1,6})-(\d{1,6})((?:; *[a-z]+=[A-Za-z0-9.,+_-]*)*)")


class Speaks(NamedTuple):
    """What one end says of itself."""

    oldest: int
    newest: int
    #: Names of what it can do that not every release of these versions can.
    can: frozenset[str] = frozenset()
    #: Of Tenfold, "0.1.0"; empty where it does not say.
    release: str = ""

    def text(self) -> str:
        """As it stands in HEADER: "1-1; release=0.1.0; can=trace"."""
        parts = [f"{self.oldest}-{self.newest}"]
        if self.release:
            parts.append(f"release={self.release}")
        if self.can:
            parts.append(f"can={','.join(sorted(self.can))}")
        return "; ".join(parts)


class Agreed(NamedTuple):
    """What two ends come to."""

    version: int
    can: frozenset[str]


class VersionError(errors.FailedPreconditionError):
    """Two ends speak no version in common."""


#: A release from before versions were told.
SILENT = Speaks(1, 1)

#: Protocol → the versions that this release speaks and what it can. A change that an older release would misread is a
#: new version; one that it would overlook is an ability.
_LINKS, _CALLS, _REST = "links", "calls between Tenfold's tasks", "REST"
_MINE = {
    _LINKS: Speaks(1, 1, frozenset({"bundles", "streams", "trace"})),
    _CALLS: Speaks(1, 1, frozenset({"trace"})),
    _REST: Speaks(1, 1, frozenset({"trace"})),
}


@lru_cache(maxsize=1)
def release() -> str:
    """This release of Tenfold."""
    from tenfold_core.build_info import build_info  # takes longer to load than all of this file

    return build_info()["version"]


def links() -> Speaks:
    """What this release speaks on links."""
    return _MINE[_LINKS]._replace(release=release())


def calls() -> Speaks:
    """What it speaks in calls of the package `tenfold` over gRPC."""
    return _MINE[_CALLS]._replace(release=release())


def rest() -> Speaks:
    """What it speaks over REST, as the control service and as its client."""
    return _MINE[_REST]._replace(release=release())


def announced(oldest: int, newest: int, can: Iterable[str], told_release: str) -> Speaks:
    """What a peer said in the fields of a message; 0 where it did not say."""
    names = frozenset(name for name, _ in zip(can, range(_MOST_ABILITIES), strict=False))
    return Speaks(oldest or 1, newest or 1, names, told_release[:_MOST_CHARACTERS])


def parse(text: str | bytes | None) -> Speaks:
    """What HEADER says; SILENT without one. Raises InvalidArgumentError for what is no such text."""
    if not text:
        return SILENT
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    match = _TEXT.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if match is None or int(match[1]) > int(match[2]):
        raise errors.invalid_argument(
            f"{HEADER} is {text[:100]!r}; it is OLDEST-NEWEST, and may go on with ; release=… ; can=…,…"
        )
    members = dict(part.strip().split("=") for part in match[3].split(";") if part.strip())
    can = [name for name in members.get("can", "").split(",") if name]
    return announced(int(match[1]), int(match[2]), can, members.get("release", ""))


def agree_on_links(theirs: Speaks, who: str) -> Agreed:
    """What a link to `who` speaks. Raises VersionError, which names both ends' versions and what to do."""
    return _agree(_LINKS, links(), theirs, who)


def agree_on_calls(theirs: Speaks, who: str) -> Agreed:
    """The same of calls over gRPC."""
    return _agree(_CALLS, calls(), theirs, who)


def agree_on_rest(theirs: Speaks, who: str) -> Agreed:
    """The same of REST."""
    return _agree(_REST, rest(), theirs, who)


def _agree(protocol: str, ours: Speaks, theirs: Speaks, who: str) -> Agreed:
    version = min(ours.newest, theirs.newest)
    if version >= max(ours.oldest, theirs.oldest):
        return Agreed(version, ours.can & theirs.can)
    older = "this process" if ours.newest < theirs.newest else who
    newer = theirs.release if ours.newest < theirs.newest else ours.release
    remedy = f"bring {older} up to date" + (f" (pip install tenfold=={newer})" if newer else "")
    raise VersionError(
        None,
        None,
        f"{who} ({_release_of(theirs)}) speaks {_versions_of(theirs)} of {protocol}, and this process "
        f"({_release_of(ours)}) {_versions_of(ours)}: {remedy}.",
    )


def _release_of(end: Speaks) -> str:
    return f"Tenfold {end.release}" if end.release else "an older Tenfold"


def _versions_of(end: Speaks) -> str:
    return f"version {end.newest}" if end.oldest == end.newest else f"versions {end.oldest} to {end.newest}"
