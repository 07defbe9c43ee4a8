"""What a process shows to be let in, and whom it lets in: one frozen dataclass, read once at the edge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tenfold_core import errors
from tenfold_core.access.tokens import TokenFile, TokenSet
from tenfold_core.env_settings import FromEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class AccessSettings(FromEnvironment):
    """Where this process's tokens are. Nothing set: it shows none, and lets in its own user alone."""

    prefix: ClassVar[str] = "TENFOLD_"

    #: A token, or two with a comma between while it is changed: the first is shown, both let in.
    token: str | None = None
    #: A file of tokens, a line each, looked at again while the process runs (access/tokens.py). Beside it `token` is
    #: not looked at.
    token_file: str | None = None

    def tokens(self) -> Callable[[], TokenSet]:
        """What gives the tokens that are good now. Raises InvalidArgumentError for a file or a token that is none."""
        try:
            if self.token_file is not None:
                return TokenFile(self.token_file).current
            fixed = TokenSet() if self.token is None else TokenSet.of_text(self.token, "TENFOLD_TOKEN")
        except ValueError as error:
            raise errors.invalid_argument(f"{error}.") from None
        return lambda: fixed


def shown_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token that this process shows, by its environment. Raises InvalidArgumentError."""
    return AccessSettings.from_environment(environment).tokens()().shown
