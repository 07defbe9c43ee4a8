"""Regular expressions of peers: the pieces are a pattern, a rewrite, and a text, which byte 0 may have repeated.

RE2 takes time in proportion to pattern and text for a match, so what takes longer than a second is a fault of how it
is called. All matches together take as much as the text is long times that, in TensorFlow too: (?i)[^a-z]+{$| looks at
the rest of the text from each of its places. So that is tried with texts a quarter as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz import pieces
from fuzz.harness import Fault, refusals
from fuzz.kernels import kernel, text
from fuzz.messages import changed_bytes

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

#: A repeated text is as long as this.
_LONG, _LONG_EVERYWHERE = 1 << 15, 1 << 13
_REPLACE = [kernel("RegexReplace", replace_global=everywhere) for everywhere in (False, True)]
_MATCH = kernel("RegexFullMatch")
_WORDS = (
    b"(", b")", b"[", b"]", b"{", b"}", b"*", b"+", b"?", b"|", b".", b"^", b"$", b"\\b", b"\\pL", b"\\x{10ffff}",
    b"(?i)", b"(?P<n>", b"{9}", b"{1000}", b"[^\\d]", b"\\C", b"a", b"(a|a)*", b"a**", b"\\Q", b"(?s).*", b"\\1",
    b"\\0",
)  # fmt: skip


def one_input(data: bytes) -> None:
    if not data:
        return
    pattern, rewrite, value, *_ = [*pieces.split(data[1:]), b"", b"", b""]
    if data[0] & 2 and value:
        value = value * (_LONG // len(value)) + value[-(data[0] >> 2) :]
    with refusals():
        _MATCH(text(value), text(pattern))
        everywhere = data[0] & 1
        value = value[:_LONG_EVERYWHERE] if everywhere else value
        replaced = _REPLACE[everywhere](text(value), text(pattern), text(rewrite))[()]
        if not isinstance(replaced, bytes):
            raise Fault(f"{replaced!r} is no string")
    with refusals():
        kernel("StaticRegexFullMatch", pattern=pattern)(text(value[:100]))
        kernel("StaticRegexReplace", pattern=pattern, rewrite=rewrite)(text(value[:100]))


def mutated(data: bytes, chance: random.Random) -> bytes:
    parts = pieces.split(data[1:])
    if chance.random() < 0.7 and parts:
        at = chance.randrange(min(2, len(parts)))
        place = chance.randrange(len(parts[at]) + 1)
        parts[at] = parts[at][:place] + chance.choice(_WORDS) * chance.choice((1, 1, 3)) + parts[at][place:]
        return data[:1] + pieces.join(parts)
    how = data[:1] if chance.random() < 0.8 else bytes((chance.randrange(256),))
    return (how or b"\0") + pieces.join(pieces.mutated(parts, chance, changed_bytes))


def seeds() -> Iterator[bytes]:
    for pattern, rewrite, value in (
        (b"(a|aa)+$", b"\\1", b"aaaab"),
        (b"(a*)*b", b"\\0-\\1", b"a"),
        (b"", b"-", b"a\xc3\xa9"),
        (b"\\b", b"|", b"one two "),
        (b"(\\w+) (\\w+)", b"\\2 \\1\\\\", b"one two\n"),
        (b"x*", b"\\9", b"\xff\xfe"),
        (b"(?i)[^\\pL]+$|.{1,100}z", b"", b"Ab1"),
    ):
        for how in (0, 1, 3, 22):
            yield bytes((how,)) + pieces.join([pattern, rewrite, value])
