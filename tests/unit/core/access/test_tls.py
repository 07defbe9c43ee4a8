from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from support.certs import access
from tenfold_core import errors
from tenfold_core.access.roles import Role
from tenfold_core.access.settings import AccessSettings
from tenfold_core.access.tls import Certificates, host_of, name_of, role_of

if TYPE_CHECKING:
    from pathlib import Path


def test_all_three_files_are_needed() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_TLS_KEY and TENFOLD_TLS_CA is not set"):
        AccessSettings(tls_cert="a.pem").credentials()


def test_files_that_cannot_be_read_or_do_not_fit_are_named(tmp_path: Path) -> None:
    good = access(tmp_path)
    with pytest.raises(errors.InvalidArgumentError, match=r"cannot be read: .*no-such"):
        Certificates(str(tmp_path / "no-such"), good.tls_key, good.tls_ca)
    with pytest.raises(errors.InvalidArgumentError, match="do not fit"):
        Certificates(good.tls_ca, good.tls_key, good.tls_ca)


def test_certificates_change_without_a_restart(tmp_path: Path) -> None:
    found = access(tmp_path, "task").credentials().certificates
    assert found is not None
    before, context = found.contents()[0], found.server_context()
    same = found.server_context() is context

    access(tmp_path, "task", lasts=timedelta(days=2))

    assert same
    assert found.contents()[0] != before
    assert found.server_context() is not context


def test_files_that_go_away_stay_as_they_were(tmp_path: Path) -> None:
    found = access(tmp_path, "task").credentials().certificates
    assert found is not None
    before = found.contents()
    (tmp_path / "task.pem").unlink()

    assert found.contents() == before


@pytest.mark.parametrize(("address", "wanted"), [("localhost:1", False), ("[::1]:1", False), ("ps-0.example:1", True)])
def test_this_machine_is_dialled_in_the_clear_unless_always(tmp_path: Path, address: str, wanted: bool) -> None:
    always = access(tmp_path)
    auto = Certificates(always.tls_cert, always.tls_key, always.tls_ca)

    assert auto.wanted_at(address) is wanted
    assert always.credentials().of(address) is not None


@pytest.mark.parametrize(("address", "host"), [("a.b:1", "a.b"), ("[::1]:1", "::1"), (":1", "localhost")])
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host


@pytest.mark.parametrize(
    ("subject", "role"),
    [
        ((), Role.REGISTER),
        (((("commonName", "x"),), (("organizationalUnitName", "read"),)), Role.READ),
        (((("organizationalUnitName", "sales"),),), Role.NONE),
    ],
)
def test_the_role_of_a_certificate(subject: Any, role: Role) -> None:
    assert role_of({"subject": subject, "version": 3}) is role


def test_the_name_of_a_certificate_is_its_common_name() -> None:
    subject = ((("organizationName", "o"), ("commonName", "worker-0")), (("organizationalUnitName", "run"),))

    assert name_of({"subject": subject}) == "worker-0"
    assert name_of({"subject": subject[1:]}) == name_of({}) == ""
