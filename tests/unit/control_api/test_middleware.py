"""The outer layers of a request, each by itself: names, errors, HEAD, hosts, origins, roles, sizes of bodies."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_control_api import middleware
from tenfold_control_api.asgi import acting
from tenfold_control_api.entry import CALLER, CONNECTION
from tenfold_control_api.metrics import Metrics
from tenfold_control_api.middleware import BodyLimitMiddleware, EdgeMiddleware, GateMiddleware, HeadMiddleware
from tenfold_control_api.problems import ApiError
from tenfold_control_api.service_settings import Settings
from tenfold_core import protocol
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_core.log_setup import request_id

SPEAKS = protocol.rest().text()


class App:
    """The inner layers: answers with `status`, or raises `error` before or after the answer has begun."""

    def __init__(self) -> None:
        self.status, self.headers = 200, [(b"x-own", b"1")]
        self.error: BaseException | None = None
        self.late = False
        self.route: str | None = "/v1/clusters"
        self.scopes: list[Any] = []
        self.named: list[str | None] = []
        self.read: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        self.named.append(request_id.get())
        if scope["type"] != "http":
            return
        if self.route is not None:
            scope["route"] = SimpleNamespace(path=self.route)
        more = True
        while more:
            message = await receive()
            self.read.append(message)
            more = message.get("more_body", False)
        if self.error is not None and not self.late:
            raise self.error
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        if self.error is not None:
            raise self.error
        await send({"type": "http.response.body", "body": b"answer"})


class Answer:
    """What was sent."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages[1:])

    @property
    def problem(self) -> Any:
        return json.loads(self.body)


def scope(method: str = "GET", path: str = "/v1/clusters", kind: str = "http", **headers: str) -> dict[str, Any]:
    given = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": kind, "method": method, "path": path, "headers": given, "query_string": b"", "client": ("h", 1)}


async def ask(layer: Any, asked: Any, *parts: bytes) -> Answer:
    answer = Answer()
    messages = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)} for number, part in enumerate(parts, 1)
    ] or [{"type": "http.request"}]

    async def receive() -> Any:
        return messages.pop(0)

    await layer(asked, receive, answer)
    return answer


async def refused(call: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value


# --- the edge


def edge(app: App) -> tuple[EdgeMiddleware, Metrics]:
    metrics = Metrics()
    return EdgeMiddleware(cast("Any", app), metrics), metrics


def counted(metrics: Metrics) -> list[str]:
    lines = metrics.render().decode().splitlines()
    return [line for line in lines if line.startswith("tenfold_control_requests_total{")]


@pytest.mark.parametrize("layer", [EdgeMiddleware, GateMiddleware, HeadMiddleware, BodyLimitMiddleware])
async def test_what_is_no_request_passes(layer: Any) -> None:
    app = App()
    more = {EdgeMiddleware: 1, GateMiddleware: 2, HeadMiddleware: 0, BodyLimitMiddleware: 1}[layer]
    made = layer(app, *(None,) * more)
    asked = {"type": "lifespan"}
    await made(asked, None, None)
    assert app.scopes == [asked]


async def test_an_answer_carries_the_requests_name_and_what_the_service_speaks() -> None:
    app = App()
    layer, metrics = edge(app)

    answer = await ask(layer, scope(x_request_id="Ab9._:/+=@-"))

    assert answer.headers == {
        "x-own": "1",
        "x-request-id": "Ab9._:/+=@-",
        protocol.HEADER.lower(): SPEAKS,
        "x-content-type-options": "nosniff",
    }
    assert app.named == ["Ab9._:/+=@-"]
    assert not request_id.get()
    assert counted(metrics) == ['tenfold_control_requests_total{method="GET",route="/v1/clusters",status="200"} 1.0']
    assert 'tenfold_control_request_seconds_count{route="/v1/clusters"} 1.0' in metrics.render().decode()


@pytest.mark.parametrize("given", ["", "two words", "n" * 129, "käse"])
async def test_a_name_that_is_no_name_is_replaced(given: str) -> None:
    app = App()
    layer, _ = edge(app)
    names = {(await ask(layer, scope(x_request_id=given))).headers["x-request-id"] for _ in range(2)}
    assert len(names) == 2
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)


async def test_the_longest_name_is_kept_and_a_page_says_itself_what_it_is() -> None:
    app = App()
    app.headers = [(b"x-content-type-options", b"own")]
    layer, _ = edge(app)
    answer = await ask(layer, scope(x_request_id="n" * 128))
    assert answer.headers["x-request-id"] == "n" * 128
    assert [value for name, value in answer.messages[0]["headers"] if name == b"x-content-type-options"] == [b"own"]


async def test_a_problem_of_an_inner_layer_becomes_an_answer() -> None:
    app = App()
    app.error = ApiError("no-such-cluster", "there is none")
    layer, metrics = edge(app)
    answer = await ask(layer, scope(x_request_id="name"))
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.headers["x-request-id"] == "name"
    assert answer.problem["detail"] == "there is none"
    assert answer.problem["request_id"] == "name"
    assert counted(metrics)[0].endswith('status="404"} 1.0')


async def test_a_bug_becomes_an_internal_error_that_names_the_request(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    app.error, app.route = RuntimeError("secret"), None
    layer, metrics = edge(app)
    answer = await ask(layer, scope("POST", "/v1/leases/0123456789", x_request_id="name"))
    assert answer.status == 500
    assert answer.problem["detail"] == (
        "the control service failed over this request (RuntimeError); its log has more: name."
    )
    assert "request POST /v1/leases/012345… failed (name)" in caplog.text
    assert 'route="unmatched",status="500"' in counted(metrics)[0]


@pytest.mark.parametrize("error", [ApiError("no-such-cluster", "x"), RuntimeError("x")])
async def test_an_error_in_the_middle_of_an_answer_ends_it(error: Exception) -> None:
    app = App()
    app.error, app.late = error, True
    layer, metrics = edge(app)
    with pytest.raises(type(error)):
        await ask(layer, scope())
    assert 'status="200"' in counted(metrics)[0]


async def test_a_client_that_went_away_is_counted_as_such() -> None:
    app = App()
    app.error = KeyboardInterrupt()
    layer, metrics = edge(app)
    with pytest.raises(KeyboardInterrupt):
        await ask(layer, scope())
    assert 'status="499"' in counted(metrics)[0]


async def test_a_caller_of_another_version_is_refused() -> None:
    app = App()
    layer, _ = edge(app)
    assert (await ask(layer, scope(**{protocol.HEADER.lower(): SPEAKS}))).status == 200
    unknown = await ask(layer, scope(**{protocol.HEADER.lower(): "900-901"}))
    malformed = await ask(layer, scope(**{protocol.HEADER.lower(): "?"}))
    kinds = [each.problem["type"].rpartition(":")[2] for each in (unknown, malformed)]
    assert kinds == ["protocol-not-spoken", "invalid-request"]
    assert "speaks versions 900 to 901 of REST" in unknown.problem["detail"]
    assert len(app.scopes) == 1


@pytest.mark.parametrize(
    ("route", "status", "level"),
    [
        ("/v1/clusters", 200, "INFO"),
        ("/healthz", 200, "DEBUG"),
        ("/v1/leases/{lease}:renew", 399, "DEBUG"),
        ("/metrics", 400, "INFO"),
    ],
)
async def test_frequent_requests_are_logged_only_where_they_fail(
    route: str, status: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App()
    app.route, app.status = route, status
    layer, _ = edge(app)
    with caplog.at_level(logging.DEBUG, "tenfold_control_api.access"):
        await ask(layer, scope(path="/a\nb"))
    (record,) = caplog.records
    assert record.levelname == level
    text = record.getMessage()
    assert text.startswith(f"GET /a\\nb {status} in ")
    assert text.endswith(" ms, from h")
    assert record.__dict__["fields"]["client"] == "h"
    assert record.__dict__["fields"]["path"] == "/a\nb"
    caplog.clear()
    with caplog.at_level(logging.INFO, "tenfold_control_api.access"):
        await ask(layer, {**scope(), "client": None})
    assert [each.getMessage().rpartition(" ")[2] for each in caplog.records] == ["unknown"] * (level == "INFO")


def test_the_log_has_milliseconds_and_its_fields_seconds(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tenfold_control_api.access"):
        middleware._log_access(logging.INFO, scope(), 200, 0.50000049)
    (record,) = caplog.records
    assert record.getMessage() == "GET /v1/clusters 200 in 500.0 ms, from h"
    assert record.__dict__["fields"]["seconds"] == 0.5


# --- HEAD


async def test_head_is_get_without_a_body() -> None:
    app = App()
    answer = await ask(HeadMiddleware(cast("Any", app)), scope("HEAD"))
    assert app.scopes[0]["method"] == "GET"
    assert (answer.status, answer.body) == (200, b"")
    assert len(answer.messages) == 2

    answer = await ask(HeadMiddleware(cast("Any", app)), scope("GET"))
    assert answer.body == b"answer"


async def test_an_error_of_a_head_request_is_no_answer() -> None:
    app = App()
    app.error = ApiError("no-such-cluster", "x")
    assert await refused(ask(HeadMiddleware(cast("Any", app)), scope("HEAD"))) is app.error


# --- the gate


class Entry:
    """Lets in a caller of one role."""

    def __init__(self, role: Role = Role.ADMIN, *, guarded: bool = False) -> None:
        self.guarded, self.role = guarded, role
        self.shown: list[str | None] = []

    def caller(self, _: Any, authorization: str | None) -> Caller:
        self.shown.append(authorization)
        if authorization == "wrong":
            raise ApiError("token-unknown", "unknown")
        return Caller(self.role, "ann")

    def refusal(self, caller: Caller, wanted: Role, what: str) -> ApiError | None:
        return None if caller.role >= wanted else ApiError("role-too-small", f"{what} needs {wanted.word}")


def gate(app: App, entry: Entry | None = None, **settings: Any) -> GateMiddleware:
    return GateMiddleware(cast("Any", app), Settings(**settings), cast("Any", entry or Entry()))


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    lines: list[Any] = []
    monkeypatch.setattr(audit, "done", lambda *given, **more: lines.append((*given, more)))
    monkeypatch.setattr(audit.refusals, "note", lambda *given, **more: lines.append((*given, more)))
    return lines


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:80"])
async def test_the_hosts_of_this_machine_are_answered(host: str) -> None:
    assert (await ask(gate(App()), scope(host=host))).status == 200


@pytest.mark.parametrize("host", ["evil.example", "", "10.0.0.7", "localhost.evil.example", "[::2]"])
async def test_other_hosts_are_not(host: str) -> None:
    error = await refused(ask(gate(App()), scope(host=host)))
    assert error.kind == "host-not-allowed"
    assert "without a token this control service answers the names that it knows, " in error.detail


async def test_hosts_do_not_count_where_there_are_tokens_or_all_are_allowed() -> None:
    assert (await ask(gate(App(), Entry(guarded=True)), scope(host="other"))).status == 200
    assert (await ask(gate(App(), allowed_hosts=None), scope(host="other"))).status == 200
    assert (await ask(gate(App(), allowed_hosts=("other",)), scope(host="other:1"))).status == 200


async def test_addresses_are_answered_where_the_service_listens_beyond_this_machine() -> None:
    for host in ("10.0.0.7:80", "[fe80::1]:80"):
        assert (await ask(gate(App(), answer_addresses=True), scope(host=host))).status == 200
    assert (await refused(ask(gate(App(), answer_addresses=True), scope(host="evil.example")))).kind == (
        "host-not-allowed"
    )


async def test_a_request_names_one_host() -> None:
    asked = scope(host="localhost")
    asked["headers"].append((b"host", b"localhost"))
    error = await refused(ask(gate(App(), Entry(guarded=True)), asked))
    assert error.detail == "a request names one host, in one `Host` header; this one has more."


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"sec_fetch_site": "same-origin", "origin": "http://evil"}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site", "origin": "http://localhost"}, False),
        ({"origin": "http://LOCALHOST"}, True),
        ({"origin": "http://localhost:81"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://evil"}, False),
    ],
)
async def test_a_page_of_another_origin_changes_nothing(headers: dict[str, str], passes: bool) -> None:
    app = App()
    asked = scope("PUT", "/v1/clusters/c", host="localhost", **headers)
    if passes:
        assert (await ask(gate(app), asked)).status == 200
    else:
        error = await refused(ask(gate(app), asked))
        assert error.kind == "foreign-origin"
        shown = headers.get("origin", "another site")
        assert error.detail == f"a page of {shown} may change nothing here; the dashboard of this service may."
    assert (await ask(gate(app), {**asked, "method": "GET"})).status == 200


async def test_an_origin_without_a_host_is_never_the_services_own() -> None:
    assert (await refused(ask(gate(App(), Entry(guarded=True)), scope("POST", "/v1/runs", origin="file://")))).kind == (
        "foreign-origin"
    )


async def test_what_everybody_may_see_needs_nobody(audited: list[Any]) -> None:
    app, entry = App(), Entry(Role.NONE)
    assert (await ask(gate(app, entry), scope(path="/healthz", host="localhost"))).status == 200
    assert entry.shown == []
    assert CALLER not in app.scopes[0]
    assert audited == []


async def test_a_caller_is_let_in_for_what_its_role_may(audited: list[Any]) -> None:
    app, entry = App(), Entry(Role.READ)
    let_in: list[bool] = []
    asked = scope(host="localhost", authorization="Bearer x")
    asked[CONNECTION] = SimpleNamespace(let_in=lambda: let_in.append(True))

    assert (await ask(gate(app, entry), asked)).status == 200

    assert (entry.shown, app.scopes[0][CALLER], let_in) == (["Bearer x"], Caller(Role.READ, "ann"), [True])
    assert audited == []


async def test_a_refusal_is_audited_and_the_connection_stays_a_strangers(audited: list[Any]) -> None:
    app = App()
    let_in: list[bool] = []
    connection = SimpleNamespace(let_in=lambda: let_in.append(True))
    for role, asked, caller in (
        (Role.READ, scope("DELETE", "/v1/clusters/c", host="localhost"), "ann"),
        (Role.ADMIN, scope("GET", "/v1/clusters", host="localhost", authorization="wrong"), "nobody known"),
        (Role.READ, scope("POST", "/v1/leases/0123456789:renew", host="localhost"), "ann"),
    ):
        asked[CONNECTION] = connection
        assert (await refused(ask(gate(app, Entry(role)), asked))).kind in ("role-too-small", "token-unknown")
        assert audited[-1][0].name == caller

    assert [line[1:3] for line in audited] == [
        ("delete cluster", "role-too-small"),
        ("GET /v1/clusters", "token-unknown"),
        ("POST /v1/leases/012345…:renew", "role-too-small"),
    ]
    assert audited[0][3] == {"address": "h", "method": "DELETE", "path": "/v1/clusters/c"}
    assert (let_in, app.scopes) == ([], [])


@pytest.mark.parametrize(("status", "outcome"), [(199, "failed"), (200, "done"), (299, "done"), (300, "failed")])
async def test_what_a_caller_did_is_audited_with_its_outcome(status: int, outcome: str, audited: list[Any]) -> None:
    app = App()
    app.status = status
    answer = await ask(gate(app), scope("DELETE", "/v1/clusters/c", host="localhost"))
    assert answer.body == b"answer"
    ((caller, action, said, more),) = audited
    assert (caller.name, action, said, more["status"]) == ("ann", "delete cluster", outcome, status)
    assert more["path"] == "/v1/clusters/c"


async def test_what_did_not_come_to_an_answer_is_audited_too(audited: list[Any]) -> None:
    app = App()
    app.error = RuntimeError("x")
    with pytest.raises(RuntimeError):
        await ask(gate(app), scope("DELETE", "/v1/clusters/c", host="localhost"))
    assert (audited[0][2], audited[0][3]["status"]) == ("failed", 499)


# --- bodies


def limited(app: App) -> BodyLimitMiddleware:
    sizes = {"max_body": 40, "max_json_body": 30, "max_program_trace": 20, "max_small_body": 10}
    return BodyLimitMiddleware(cast("Any", app), Settings(**cast("Any", sizes)))


@pytest.mark.parametrize(
    ("method", "path", "headers", "limit"),
    [
        ("PUT", "/v1/packages/p", {}, 40),
        ("PUT", "/v1/runs/r/traces/t/tasks/worker/0", {}, 20),
        ("POST", "/v1/runs/r/traces/t/tasks/worker/0", {}, 10),
        ("PUT", "/v1/runs/r/traces/t/tasks/worker/0/x", {}, 10),
        ("PUT", "/v1/clusters/c", {}, 10),
        ("POST", "/v1/sessions", {}, 30),
        ("POST", "/v1/sessions", {"content_type": "application/json; charset=utf-8"}, 30),
        ("POST", "/v1/sessions", {"content_type": "application/x-protobuf"}, 40),
        ("POST", "/v2/models/m/infer", {}, 30),
        ("POST", "/v2/models/m/infer", {"inference_header_content_length": "5"}, 40),
        ("POST", "/v2/health", {}, 10),
    ],
)
async def test_each_kind_of_body_has_its_limit(method: str, path: str, headers: dict[str, str], limit: int) -> None:
    app = App()
    fits = await ask(limited(app), scope(method, path, content_length=str(limit), **headers), b"x" * limit)
    assert (fits.status, fits.body) == (200, b"answer")
    error = await refused(ask(limited(app), scope(method, path, content_length=str(limit + 1), **headers)))
    assert error.kind == "body-too-large"
    assert error.detail.startswith(f"the body is larger than the {limit} bytes that are accepted here. ")
    assert len(app.scopes) == 1


@pytest.mark.parametrize("announced", [{}, {"content_length": "many"}, {"content_length": "3"}])
async def test_a_body_that_becomes_too_large_is_cut_and_refused(announced: dict[str, str]) -> None:
    app = App()
    answer = await ask(limited(app), scope("PUT", "/v1/clusters/c", **announced), b"x" * 6, b"x" * 4, b"x")
    assert answer.status == 413
    assert answer.problem["type"].endswith(":body-too-large")
    assert [each.get("type") for each in app.read] == ["http.request", "http.request", "http.disconnect"]
    assert len(answer.messages) == 2


@pytest.mark.parametrize("error", [RuntimeError("cut"), None])
async def test_what_the_route_says_of_a_cut_body_does_not_count(error: Exception | None) -> None:
    app = App()
    app.error = error
    answer = await ask(limited(app), scope("PUT", "/v1/clusters/c"), b"x" * 11)
    assert answer.status == 413
    assert [each["type"] for each in answer.messages] == ["http.response.start", "http.response.body"]


async def test_an_error_of_a_route_whose_body_fits_is_the_routes_own() -> None:
    app = App()
    app.error = RuntimeError("own")
    with pytest.raises(RuntimeError, match="own"):
        await ask(limited(app), scope("PUT", "/v1/clusters/c"), b"x" * 10)


async def test_an_error_after_the_refusal_is_not_swallowed() -> None:
    app = App()
    app.error, app.late = RuntimeError("late"), True
    with pytest.raises(RuntimeError, match="late"):
        await ask(limited(app), scope("PUT", "/v1/clusters/c"), b"x" * 11)


def test_a_requests_layers_share_whether_it_has_begun() -> None:
    asked = scope()
    acting(asked)()
    assert acting({**asked}).began
    assert middleware._is_address("1.2.3.4")
    assert not middleware._is_address("localhost")
