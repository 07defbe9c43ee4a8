"""The tokens that the control service accepts: those it was given, and with each of them one for the programs that it
starts, which is good for no more than the role `register`.

Programs read theirs from a file, so that they follow when the service's tokens are changed under way. Made by app.py;
the file is runs/supervisors.py's.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from tenfold_core.access.roles import Role
from tenfold_core.access.task_tokens import PROGRAMS
from tenfold_core.access.tokens import Token, TokenSet, derived, digest_of, line_of
from tenfold_core.checkpoint.files import AtomicFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger(__name__)


class ServiceTokens:
    """`current` gives the tokens that are accepted now. One event loop, and threads that start programs."""

    def __init__(self, tokens: Callable[[], TokenSet]) -> None:
        self._tokens = tokens
        self._seen: TokenSet | None = None
        self._all = TokenSet()
        self._file: Path | None = None

    def current(self) -> TokenSet:
        """The tokens, and those of programs."""
        found = self._tokens()
        if found is not self._seen:
            self._all, self._seen = TokenSet((*found.lines, *_for_programs(found))), found
            if self._file is not None:
                try:
                    self._write(self._file)
                except OSError as error:
                    _log.warning("programs that run are not told of the new tokens: %s", error)
        return self._all

    def for_programs(self, file: Path) -> Path | None:
        """The token file for programs, `file`, written; from now on it is kept up. None where there are no tokens.
        Raises OSError, and ValueError where no text of a token is known."""
        current = self.current()
        if not len(current):
            return None
        if current.shown is None:
            raise ValueError(
                "the token file holds digests alone, so programs cannot be given a token; add a line with the text of "
                "one (`tenfold token new --file`, without --hashed)"
            )
        self._write(file)
        self._file = file
        return file

    def _write(self, file: Path) -> None:
        lines = [line_of(text or "", token, hashed=text is None) for text, token in self._for_file()]
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with AtomicFile(str(file)) as writing:
            os.fchmod(writing.fileno(), 0o600)
            writing.write("".join(f"{line}\n" for line in lines).encode())

    def _for_file(self) -> list[tuple[str | None, Token]]:
        """What programs show, and what they accept: each other, and this service."""
        assert self._seen is not None
        return [*_for_programs(self._seen), *((None, token) for _, token in self._seen.lines)]


def _for_programs(tokens: TokenSet) -> list[tuple[str | None, Token]]:
    """A token for each that has a text and lets tasks register."""
    found: list[tuple[str | None, Token]] = []
    for text, token in tokens.lines:
        if text is not None:
            made = derived(text, PROGRAMS)
            role = min(token.role, Role.REGISTER)
            found.append((made, Token(digest_of(made), role, "programs", token.expires)))
    return found
