"""What a client of the control service checks and shows over HTTPS, by its environment.

Used by the SDK's connections and by `tenfold ping`.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.access.settings import AccessSettings
from tenfold_core.access.tls import FreshContext

if TYPE_CHECKING:
    from collections.abc import Mapping


def https_context(environment: Mapping[str, str] = os.environ) -> ssl.SSLContext:
    """Trusts the authorities of TENFOLD_TLS_CA, else those of the system, and shows the certificate of TENFOLD_TLS_CERT
    where there is one. Raises InvalidArgumentError for files that cannot be used."""
    access = AccessSettings.from_environment(environment)
    if access.tls_cert is None and access.tls_key is None:
        try:
            return ssl.create_default_context(cafile=access.tls_ca)
        except (OSError, ssl.SSLError) as error:
            raise errors.invalid_argument(f"TENFOLD_TLS_CA, {access.tls_ca}, cannot be used: {error}.") from None
    certificates = access.credentials().certificates
    assert certificates is not None
    return FreshContext.of(lambda: certificates.client_context("http/1.1"), server=False)
