"""What a client of the control service checks and shows over HTTPS, by its environment.

Used by the SDK's connections and by `tenfold ping`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tenfold_core.access.tls import FreshContext, trusting

from .credentials import AccessSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


def https_context(environment: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """Trusts the authorities of TENFOLD_TLS_CA, else those of the system, and shows the certificate of TENFOLD_TLS_CERT
    where there is one. Raises InvalidArgumentError for files that cannot be used."""
    access = AccessSettings.from_environment(environment)
    if access.tls_cert is None and access.tls_key is None:
        return trusting(access.tls_ca, "http/1.1")
    certificates = access.credentials().certificates
    assert certificates is not None
    return FreshContext.of(lambda: certificates.client_context("http/1.1"), server=False)
