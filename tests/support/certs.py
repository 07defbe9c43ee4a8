"""Certificates for tests: an authority in a folder, and what it signs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tenfold_core.access.issue import authority, issue
from tenfold_core.access.roles import Role
from tenfold_core.access.settings import AccessSettings

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ("localhost", "127.0.0.1", "::1")
DAY = timedelta(days=1)


def access(
    folder: Path, name: str = "task", role: Role = Role.REGISTER, lasts: timedelta = DAY, token: str | None = None
) -> AccessSettings:
    """Settings with a certificate of that name, signed by the authority of `folder`; TLS also with this machine."""
    signer = authority(folder)[:2]
    cert, key = issue(folder, name, HOSTS, role, lasts, signer)
    return AccessSettings(
        token=token, tls_cert=str(cert), tls_key=str(key), tls_ca=str(folder / "ca.pem"), tls="always"
    )
