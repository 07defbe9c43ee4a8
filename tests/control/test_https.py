"""The control service over HTTPS: certificates of both ends, their roles, and their change under way."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest

from support.certs import DAY, HOSTS, access
from tenfold_core import errors
from tenfold_core.access.https import https_context
from tenfold_core.access.issue import authority, issue
from tenfold_core.access.roles import Role
from tenfold_core.access.tokens import new_token

from .test_who_is_let_in import OPEN_PATHS, routes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tenfold.control import ControlClient

    from .conftest import Service

from tenfold_control_api.route_roles import TABLE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "certs"


@pytest.fixture
def start(start_service: Callable[..., Service], folder: Path) -> Callable[..., Service]:
    """Starts a service with a certificate."""
    files = access(folder, "control", Role.ADMIN)
    tls = {"tls_cert": files.tls_cert, "tls_key": files.tls_key, "tls_ca": files.tls_ca}
    return lambda **settings: start_service(**tls, **settings)


def environment(
    folder: Path,
    name: str | None = None,
    role: Role = Role.RUN,
    lasts: timedelta = DAY,
    begins: timedelta = timedelta(),
) -> dict[str, str]:
    """The variables of a client with a certificate of that name, or without."""
    if name is None:
        return {"TENFOLD_TLS_CA": str(folder / "ca.pem")}
    files = access(folder, name, role, lasts, begins=begins)
    return {f"TENFOLD_TLS_{key.upper()}": str(getattr(files, f"tls_{key}")) for key in ("cert", "key", "ca")}


def test_https_alone(start: Callable[..., Service], folder: Path) -> None:
    service = start()

    assert service.url.startswith("https://")
    assert httpx.get(f"{service.url}/healthz", verify=https_context(environment(folder)), timeout=20).status_code == 200
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{service.url.replace('https', 'http')}/healthz")
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(f"{service.url}/healthz")


@pytest.mark.parametrize(
    "role",
    [None, Role.READ, *(pytest.param(role, marks=pytest.mark.thorough) for role in Role if role > Role.READ)],
)
def test_every_route_by_certificate(role: Role | None, start: Callable[..., Service], folder: Path) -> None:
    service = start(token=new_token())
    verify = https_context(environment(folder, role and f"client-{role.value}", role or Role.READ))
    wrong = []
    with httpx.Client(verify=verify, base_url=service.url, timeout=20) as client:
        for method, path in routes():
            needs = TABLE[method, path].role if (method, path) in TABLE else Role.READ
            asked = path + "?after=0&wait=0s" if path == "/v1/events" else path
            with client.stream(method, re.sub(r"\{\w+\}", "x", asked)) as answer:
                kind = "" if answer.status_code < 400 else str(answer.read(), "utf-8")
            refused = next((each for each in ("token-needed", "role-too-small") if f":{each}" in kind), None)
            expected = None
            if path not in OPEN_PATHS and (role is None or role < needs):
                expected = "token-needed" if role is None else "role-too-small"
            if refused != expected:
                wrong.append(f"{method} {path}: {refused}, not {expected}")
    assert not wrong


@pytest.mark.parametrize("kind", ["expired", "not good yet", "another cluster's"])
@pytest.mark.parametrize("token", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_no_route_is_open_to_a_certificate_that_is_not_good(
    kind: str, token: bool, start: Callable[..., Service], folder: Path, tmp_path: Path
) -> None:
    """Not even one that is open to everybody, and not with a good token beside it."""
    text = new_token()
    service = start(token=text)
    theirs = {
        "expired": lambda: environment(folder, "old", Role.ADMIN, -DAY / 1440),
        "not good yet": lambda: environment(folder, "new", Role.ADMIN, begins=DAY),
        "another cluster's": lambda: environment(tmp_path / "others", "client", Role.ADMIN),
    }[kind]()
    verify = https_context({**theirs, "TENFOLD_TLS_CA": str(folder / "ca.pem")})
    headers = {"Authorization": f"Bearer {text}"} if token else {}
    answered = []
    for method, path in routes():
        with httpx.Client(verify=verify, timeout=20) as client:
            try:
                client.request(method, service.url + re.sub(r"\{\w+\}", "x", path), headers=headers)
                answered.append(f"{method} {path}")
            except httpx.HTTPError:
                continue
    assert not answered


def test_the_sdk(
    start: Callable[..., Service],
    connect: Callable[..., ControlClient],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = start(token="a token of ours")
    with connect(service.url, "a token of ours") as client, pytest.raises(errors.UnavailableError, match="CERTIFICATE"):
        client.clusters()
    monkeypatch.setenv("TENFOLD_TLS_CA", str(folder / "ca.pem"))
    with connect(service.url, "a token of ours") as client:
        assert client.clusters() == []


def test_certificates_change_under_way(start: Callable[..., Service], folder: Path) -> None:
    service = start()
    verify = https_context(environment(folder))

    def serial() -> int:
        client = httpx.Client(verify=verify, timeout=20)
        with client, client.stream("GET", f"{service.url}/healthz") as answer:
            shown = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
        return int(shown["serialNumber"], 16)

    before = serial()
    issue(folder, "control", HOSTS, Role.ADMIN, DAY, authority(folder)[:2])
    assert serial() != before

    whole = (folder / "control.pem").read_bytes()
    (folder / "control.pem").write_bytes(b"half of it")
    broken = serial()
    os.replace(folder / "control.pem", folder / "gone.pem")
    assert serial() == broken
    (folder / "control.pem").write_bytes(whole)
    assert serial() == broken


def test_files_that_do_not_fit(start_service: Callable[..., Service], folder: Path) -> None:
    files = access(folder, "control", Role.ADMIN)

    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_TLS_KEY"):
        start_service(tls_cert=files.tls_cert, tls_ca=files.tls_ca)
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_TLS_CA"):
        https_context({"TENFOLD_TLS_CA": str(folder / "nothing.pem")})
