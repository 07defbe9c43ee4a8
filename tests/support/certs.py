"""Certificates for tests: an authority in a folder, and what it signs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from unittest import mock

from tenfold_core.access import issue as issuing
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.issue import authority, issue
from tenfold_core.access.roles import Role

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo
    from pathlib import Path

HOSTS = ("localhost", "127.0.0.1", "::1")
DAY = timedelta(days=1)


def access(
    folder: Path,
    name: str = "task",
    role: Role = Role.REGISTER,
    lasts: timedelta = DAY,
    token: str | None = None,
    begins: timedelta = timedelta(),
    hosts: Sequence[str] = HOSTS,
) -> AccessSettings:
    """Settings with a certificate of that name, signed by the authority of `folder`; TLS also with this machine. It is
    good from `begins` on, counted from now, less the five minutes for clocks that do not agree."""
    signer = authority(folder)[:2]

    class Clock:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return datetime.now(zone) + begins

    with mock.patch.object(issuing, "datetime", Clock):
        cert, key = issue(folder, name, hosts, role, lasts, signer)
    return AccessSettings(
        token=token, tls_cert=str(cert), tls_key=str(key), tls_ca=str(folder / "ca.pem"), tls="always"
    )
