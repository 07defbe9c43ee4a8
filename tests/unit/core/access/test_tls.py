from __future__ import annotations

import logging
import socket
import ssl
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.certs import access
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import (
    FIRST_BYTE,
    Certificates,
    FreshContext,
    host_of,
    name_of,
    reason_of,
    role_of,
    trusting,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def certificates(folder: Path, name: str = "task", **more: Any) -> Certificates:
    found = access(folder, name, **more).credentials().certificates
    assert found is not None
    return found


def greeted(
    client: ssl.SSLContext, server: ssl.SSLContext, host: str | None = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends after a handshake in memory, or what one of them raises."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(back, there, server_hostname=host),
        server.wrap_bio(there, back, server_side=True),
    )
    waiting = list(ends)
    for turn in range(8):
        end = ends[turn % 2]
        if end in waiting:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
    assert not waiting
    return ends


def test_all_three_files_are_needed() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_TLS_KEY and TENFOLD_TLS_CA is not set"):
        AccessSettings(tls_cert="a.pem").credentials()


def test_files_that_cannot_be_read_or_do_not_fit_are_named(tmp_path: Path) -> None:
    good = access(tmp_path)
    with pytest.raises(errors.InvalidArgumentError, match=r"cannot be read: .*no-such"):
        Certificates(str(tmp_path / "no-such"), good.tls_key, good.tls_ca)
    with pytest.raises(errors.InvalidArgumentError, match="do not fit"):
        Certificates(good.tls_ca, good.tls_key, good.tls_ca)


@pytest.mark.parametrize("missing", ["tls_cert", "tls_key", "tls_ca"])
def test_each_of_the_files_is_needed(tmp_path: Path, missing: str) -> None:
    good = access(tmp_path)
    files = {name: getattr(good, name) for name in ("tls_cert", "tls_key", "tls_ca")} | {missing: None}

    with pytest.raises(errors.InvalidArgumentError, match=rf"; TENFOLD_{missing.upper()} is not set\.$"):
        Certificates(files["tls_cert"], files["tls_key"], files["tls_ca"])


def test_the_contents_are_those_of_the_files_up_to_a_bound(tmp_path: Path) -> None:
    good = access(tmp_path)
    ca = tmp_path / "large.pem"
    ca.write_bytes((tmp_path / "ca.pem").read_bytes() + b"#" * (1 << 20))

    cert, key, authorities = Certificates(good.tls_cert, good.tls_key, str(ca)).contents()

    assert (cert, key) == (Path(str(good.tls_cert)).read_bytes(), Path(str(good.tls_key)).read_bytes())
    assert authorities == ca.read_bytes()[: 1 << 20]


def test_both_ends_show_a_certificate_and_agree_on_what_is_spoken(tmp_path: Path) -> None:
    ours = certificates(tmp_path)

    for protocol in ("h2", "http/1.1"):
        client, server = greeted(ours.client_context(protocol), ours.server_context(protocol))
        assert client.selected_alpn_protocol() == server.selected_alpn_protocol() == protocol
        assert role_of(client.getpeercert()) is role_of(server.getpeercert()) is Role.REGISTER
    client, server = greeted(ours.client_context(), ours.server_context())
    assert (client.selected_alpn_protocol(), server.selected_alpn_protocol()) == ("h2", "h2")


def test_a_client_may_come_without_a_certificate_but_with_no_other_authoritys(tmp_path: Path) -> None:
    ours, others = certificates(tmp_path / "ours"), access(tmp_path / "others")
    server = ours.server_context()

    client, accepted = greeted(trusting(str(tmp_path / "ours" / "ca.pem")), server)
    assert client.selected_alpn_protocol() == "h2"
    assert role_of(accepted.getpeercert()) is Role.NONE
    foreign = Certificates(others.tls_cert, others.tls_key, str(tmp_path / "ours" / "ca.pem"))
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        greeted(foreign.client_context(), server)


@pytest.mark.parametrize("client", ["certificates", "trusting"])
def test_a_server_must_have_the_name_that_was_dialled_and_be_an_authoritys(tmp_path: Path, client: str) -> None:
    ours, others = certificates(tmp_path / "ours"), certificates(tmp_path / "others")
    context = ours.client_context() if client == "certificates" else trusting(str(tmp_path / "ours" / "ca.pem"))

    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        greeted(context, ours.server_context(), "elsewhere.example")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"certificate verify failed: (self.signed|unable to get)"):
        greeted(context, others.server_context())


def test_old_versions_are_not_spoken_and_no_tickets_are_sent(tmp_path: Path) -> None:
    ours = certificates(tmp_path)

    for context in (ours.client_context(), ours.server_context()):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert ours.server_context().num_tickets == 0


def test_a_connection_begins_with_the_byte_by_which_it_is_known(tmp_path: Path) -> None:
    sent = ssl.MemoryBIO()
    client = certificates(tmp_path).client_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()

    assert sent.read(1)[0] == FIRST_BYTE


def test_contexts_are_made_once_for_each_use(tmp_path: Path) -> None:
    ours = certificates(tmp_path)
    made: list[Callable[[], ssl.SSLContext]] = [
        ours.server_context,
        ours.client_context,
        lambda: ours.server_context("http/1.1"),
        lambda: ours.client_context("http/1.1"),
    ]

    contexts = [make() for make in made]
    assert len(set(contexts)) == 4
    assert [make() for make in made] == contexts


def test_files_that_do_not_fit_any_more_are_logged_once_and_those_before_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours = certificates(tmp_path)
    context, before = ours.server_context(), ours.contents()
    (tmp_path / "task.pem").write_bytes((tmp_path / "ca.pem").read_bytes())

    with caplog.at_level(logging.WARNING):
        assert ours.server_context() is context
        assert ours.server_context() is context
    assert [record.getMessage().endswith("Those before stay in use.") for record in caplog.records] == [True]
    assert "task.pem" in caplog.text
    assert "do not fit" in caplog.text
    with pytest.raises(errors.InvalidArgumentError, match="do not fit"):
        ours.client_context()  # there was none before
    (tmp_path / "task.pem").write_bytes(before[0])
    assert ours.server_context() is not context
    greeted(ours.client_context(), ours.server_context())


def test_a_context_for_good_is_the_one_of_each_moment(tmp_path: Path) -> None:
    ours, asked = certificates(tmp_path), 0

    def current() -> ssl.SSLContext:
        nonlocal asked
        asked += 1
        return ours.server_context()

    server = FreshContext.of(current, server=True)
    assert asked == 1
    for lasts in (1, 2):
        access(tmp_path, lasts=timedelta(days=lasts))
        client, _ = greeted(ours.client_context(), server)
        assert ssl.PEM_cert_to_DER_cert(ours.contents()[0].decode()) == client.getpeercert(binary_form=True)
    assert asked == 3
    greeted(FreshContext.of(ours.client_context, server=False), server)
    assert FreshContext.of(ours.client_context, server=False).protocol == ssl.PROTOCOL_TLS_CLIENT
    assert server.protocol == ssl.PROTOCOL_TLS_SERVER
    one, other = socket.socketpair()
    with one, other, server.wrap_socket(one, server_side=True, do_handshake_on_connect=False) as wrapped:
        assert wrapped.context is ours.server_context()
    with pytest.raises(ZeroDivisionError):
        FreshContext.of(lambda: 1 // 0, server=True)  # type: ignore[arg-type, return-value]


def test_authorities_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")

    for name in ("missing.pem", "bad.pem"):
        with pytest.raises(errors.InvalidArgumentError, match=f"TENFOLD_TLS_CA, {tmp_path / name}, cannot be used"):
            trusting(str(tmp_path / name))
    assert trusting(None).verify_mode == ssl.CERT_REQUIRED


def test_why_a_handshake_failed_is_said_in_words(tmp_path: Path) -> None:
    ours, old = certificates(tmp_path), certificates(tmp_path, "old", begins=timedelta(days=-9))

    with pytest.raises(ssl.SSLError) as expired:
        greeted(ours.client_context(), old.server_context())
    assert reason_of(expired.value) == "its certificate is not good: certificate has expired"
    incoming = ssl.MemoryBIO()
    incoming.write(b"GET / HTTP/1.1\r\n\r\n")
    end = ours.server_context().wrap_bio(incoming, ssl.MemoryBIO(), server_side=True)
    with pytest.raises(ssl.SSLError) as plain:
        end.do_handshake()
    assert reason_of(plain.value) == "http request"
    plain.value.reason = None  # type: ignore[assignment]
    assert "http request" in reason_of(plain.value)


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
    assert Certificates(always.tls_cert, always.tls_key, always.tls_ca, always=True).wanted_at(address)


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
