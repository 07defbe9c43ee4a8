"""Tokens: what they look like, the lines of a token file, and which of them a text is. Only TokenFile reads anew.

A line is the token or "sha256:" and its digest, then attributes: `role=run name=ci expires=2027-01-01T00:00:00Z`. A
file with two lines has two tokens that are good at once, so that a token can be changed under way: add the new one
everywhere, then take the old one away. `tenfold token new` writes lines. Used by gate.py, and by who shows a token.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tenfold_core.access.roles import Role, role_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_log = logging.getLogger(__name__)

_HASHED = "sha256:"
#: Of a token: more is not a token, and is not hashed.
_LONGEST, _SHORTEST = 512, 8
#: Bytes of a token file; seconds between two looks whether it has changed.
_FILE_BYTES, _LOOK_S = 1 << 20, 1.0
#: Others may not have seen a change of the file yet: for so many of these times the token before is shown, and one
#: that was taken away is good.
_SETTLE_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Token:
    """One token, without its text. `expires` is in wall-clock seconds; None: never."""

    digest: bytes
    role: Role = Role.ADMIN
    name: str = ""
    expires: float | None = None


def new_token() -> str:
    """A random token of 256 bits."""
    return f"tenfold-{secrets.token_urlsafe(32)}"


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def derived(text: str, purpose: str) -> str:
    """A token that the token `text` gives for a purpose: from it the first one cannot be found."""
    return f"tenfold-{hmac.new(text.encode(), purpose.encode(), hashlib.sha256).hexdigest()}"


def line_of(text: str, token: Token, *, hashed: bool) -> str:
    """The line of a token file for the token of this `text`; `hashed`, it is accepted and cannot be shown."""
    words = [_HASHED + token.digest.hex() if hashed else text, f"role={token.role.word}"]
    if token.name:
        words.append(f"name={token.name}")
    if token.expires is not None:
        words.append(f"expires={datetime.fromtimestamp(token.expires, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}")
    return " ".join(words)


def parse_line(line: str) -> tuple[str | None, Token]:
    """The token's text, None where only its digest stands there, and the token. Raises ValueError, never with the
    token in its text."""
    first, *attributes = line.split()
    role, name, expires = Role.ADMIN, "", None
    for each in attributes:
        key, equals, value = each.partition("=")
        if not equals or key not in ("role", "name", "expires"):
            raise ValueError("what follows a token may be role=, name= and expires=")
        if key == "role":
            role = role_named(value)
        elif key == "name":
            name = value
        else:
            expires = _moment(value)
    if not first.startswith(_HASHED):
        return checked(first), Token(digest_of(first), role, name, expires)
    try:
        digest = bytes.fromhex(first.removeprefix(_HASHED))
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise ValueError(f"{_HASHED} is not followed by 64 hexadecimal digits")
    return None, Token(digest, role, name, expires)


def checked(text: str) -> str:
    """`text` as a token. Raises ValueError."""
    if not _SHORTEST <= len(text) <= _LONGEST or not text.isascii() or not text.isprintable():
        raise ValueError(f"a token has {_SHORTEST} to {_LONGEST} printable characters of ASCII")
    return text


def _moment(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expires={text} is not a time; write it as 2027-01-01T00:00:00Z") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


class TokenSet:
    """The tokens that are accepted, and the text that this process shows itself. Immutable."""

    def __init__(self, lines: Iterable[tuple[str | None, Token]] = ()) -> None:
        """The first line with a text is the one that is shown."""
        self.lines = found = tuple(lines)
        self.shown = next((text for text, _ in found if text is not None), None)
        #: Looked up by digest, which tells a guesser nothing about how near the guess was.
        self._by_digest = {token.digest: token for _, token in found}

    def __len__(self) -> int:
        return len(self._by_digest)

    def find(self, text: str) -> Token | None:
        """The token of this text, expired ones included."""
        if not 0 < len(text) <= _LONGEST:
            return None
        return self._by_digest.get(digest_of(text))

    def following(self, former: TokenSet) -> TokenSet:
        """These, while others may still have the `former` ones: all of both, and what was shown is shown as long as it
        stands there."""
        mine = {token.digest for _, token in self.lines}
        shown = [line for line in self.lines if line[0] is not None and line[0] == former.shown]
        return TokenSet([*shown, *self.lines, *(line for line in former.lines if line[1].digest not in mine)])

    @classmethod
    def of_text(cls, text: str, where: str) -> TokenSet:
        """From a variable or an option: one token, or two with a comma between, the one to show first; nothing else
        stands there. Raises ValueError."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        try:
            return cls([(checked(part), Token(digest_of(part))) for part in parts])
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    @classmethod
    def of_file(cls, path: str) -> TokenSet:
        """Raises ValueError naming the file, and the line that is wrong."""
        try:
            with open(path, encoding="utf-8") as file:
                content = file.read(_FILE_BYTES + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the token file {path} cannot be read: {error}") from None
        if len(content) > _FILE_BYTES:
            raise ValueError(f"the token file {path} is larger than {_FILE_BYTES} bytes")
        lines = (line.partition("#")[0].strip() for line in content.splitlines())
        found = cls(_parsed(lines, f"the token file {path}"))
        if not len(found):
            raise ValueError(f"the token file {path} holds no token; `tenfold token new` makes one")
        return found


def _parsed(lines: Iterable[str], where: str) -> list[tuple[str | None, Token]]:
    found = []
    for number, line in enumerate(lines, 1):
        if line:
            try:
                found.append(parse_line(line))
            except ValueError as error:
                raise ValueError(f"{where}, line {number}: {error}") from None
    return found


class TokenFile:
    """A token file that may change under way: `current` is what it holds. Any thread.

    Tasks that share a file see a change of it at moments of their own. So for two looks after it both sets are good,
    and the token that was shown before is still shown.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ValueError as TokenSet.of_file does."""
        self._path, self._clock = path, clock
        self._seen = self._state()
        #: What the file holds, and what is good meanwhile, until the moment when only the file counts.
        self._file = self._tokens = TokenSet.of_file(path)
        self._settled = self._looked = clock()

    def current(self) -> TokenSet:
        """What the file holds. One that has become unreadable or wrong is as it was, which the log tells."""
        now = self._clock()
        if now - self._looked >= _LOOK_S:
            self._looked = now
            state = self._state()
            if state != self._seen:
                self._seen = state
                try:
                    found = TokenSet.of_file(self._path)
                except ValueError as error:
                    _log.warning("%s; the tokens stay as they were", error)
                else:
                    self._tokens = found.following(self._file)
                    self._file, self._settled = found, now + _SETTLE_LOOKS * _LOOK_S
        if now >= self._settled:
            self._tokens = self._file
        return self._tokens

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
