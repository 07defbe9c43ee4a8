"""What a process shows to be accepted, and whom it accepts: one frozen dataclass, read once at the edge, and the tokens
and certificates that it names, which may change under way."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from tenfold_core import errors
from tenfold_core.access.tls import Certificates
from tenfold_core.access.tokens import TokenFile, TokenSet
from tenfold_core.env_settings import FromEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class AccessSettings(FromEnvironment):
    """Where this process's tokens and certificates are. Nothing set: it shows none, and accepts its own user alone."""

    prefix: ClassVar[str] = "TENFOLD_"

    #: A token, or two with a comma between while it is changed: the first is shown, both are accepted.
    token: str | None = field(default=None, repr=False)
    #: A file of tokens, a line each, looked at again while the process runs (access/tokens.py). Beside it `token` is
    #: not looked at.
    token_file: str | None = None
    #: PEM files: the certificate, its key, and the authorities whose certificates count. None of them, or all.
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_ca: str | None = None
    #: Which addresses are dialled with TLS, where there is a certificate: all beyond this machine, or really all.
    tls: Literal["auto", "always"] = "auto"

    def credentials(self) -> Credentials:
        """Raises InvalidArgumentError for files that cannot be used."""
        certificates = None
        if (self.tls_cert, self.tls_key, self.tls_ca) != (None, None, None):
            certificates = Certificates(self.tls_cert, self.tls_key, self.tls_ca, always=self.tls == "always")
        return Credentials(self.tokens(), certificates)

    def tokens(self) -> Callable[[], TokenSet]:
        """What gives the tokens that are good now. Raises InvalidArgumentError for a malformed file or token."""
        try:
            if self.token_file is not None:
                return TokenFile(self.token_file).current
            fixed = TokenSet() if self.token is None else TokenSet.of_text(self.token, "TENFOLD_TOKEN")
        except ValueError as error:
            raise errors.invalid_argument(f"{error}.") from None
        return lambda: fixed


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a process shows to others, and accepts."""

    #: The tokens that are good now.
    tokens: Callable[[], TokenSet] = TokenSet
    certificates: Certificates | None = None

    def of(self, address: str) -> Certificates | None:
        """The certificates for a connection to `address`, "host:port"; None: it is made in the clear."""
        return self.certificates if self.certificates is not None and self.certificates.wanted_at(address) else None


#: Shows nothing.
NO_CREDENTIALS = Credentials()


class ShownToken:
    """What a process shows to be accepted: called, it gives the token to be shown now, None where there is none.
    A token file may change under way. Equal to another of the same settings. Any thread."""

    __slots__ = ("_tokens", "settings")

    def __init__(self, settings: AccessSettings) -> None:
        """Raises InvalidArgumentError for a malformed file or token."""
        self.settings, self._tokens = settings, settings.tokens()

    def __call__(self) -> str | None:
        return self._tokens().shown

    def variables(self) -> dict[str, str]:
        """The environment by which a child process shows the same."""
        if self.settings.token_file is not None:
            return {"TENFOLD_TOKEN_FILE": os.path.abspath(self.settings.token_file)}
        return {} if self.settings.token is None else {"TENFOLD_TOKEN": self.settings.token}

    def carried(self) -> dict[str, str]:
        """The same for a process on another machine, which has no such token file: the token itself, as it is now."""
        shown = self()
        return {} if shown is None else {"TENFOLD_TOKEN": shown}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShownToken) and self.settings == other.settings

    def __hash__(self) -> int:
        return hash(self.settings)


#: A token for good, or what gives the one that is to be shown now.
Shown: TypeAlias = "str | Callable[[], str | None] | None"


def shown_token(environment: Mapping[str, str] = os.environ) -> ShownToken:
    """What this process shows, by its environment. Raises InvalidArgumentError."""
    return ShownToken(AccessSettings.from_environment(environment))
