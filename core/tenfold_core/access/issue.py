"""Makes certificates: an authority of a cluster's own, and certificates of it for hosts and people. PEM files.

For `tenfold certs new`, which loads it: the cryptography package is in the extra `tls` alone. A site with an authority
already uses that instead; the role of a certificate is in its organizational unit, as tls.py reads it.
"""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tenfold_core.checkpoint.files import AtomicFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tenfold_core.access.roles import Role

#: Of clocks that do not agree.
_SKEW = timedelta(minutes=5)
_AUTHORITY_DAYS = 3650


def authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey, bool]:
    """The authority in `folder`, ca.pem and ca-key.pem, which is made if there is none; and whether it is new.

    Raises OSError, and ValueError where a file holds something else.
    """
    cert_file, key_file = folder / "ca.pem", folder / "ca-key.pem"
    if cert_file.exists() or key_file.exists():
        found = x509.load_pem_x509_certificate(cert_file.read_bytes())
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{key_file} holds no key of an elliptic curve")
        return found, key, False
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tenfold cluster authority")])
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _write(key_file, _pem_of(key), 0o600)
    _write(cert_file, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return made, key, True


def issue(
    folder: Path,
    name: str,
    hosts: Sequence[str],
    role: Role,
    lasts: timedelta,
    signer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
) -> tuple[Path, Path]:
    """Writes NAME.pem and NAME-key.pem, of a certificate for `hosts` (names and addresses), good for `lasts`."""
    issuer, issuer_key = signer
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role.word),
        ]
    )
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), critical=False)
    made = builder.sign(issuer_key, hashes.SHA256())
    cert_file, key_file = folder / f"{name}.pem", folder / f"{name}-key.pem"
    _write(key_file, _pem_of(key), 0o600)
    _write(cert_file, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return cert_file, key_file


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return x509.DNSName(text)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    with AtomicFile(str(path)) as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
