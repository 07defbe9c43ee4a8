"""What `tenfold doctor` looks at in a cluster: the control service, each task, and each task from each other one.

A task is asked Examine (rpc/examine_service.py): it dials the tasks that it is told, and says its versions and its
time. All tasks are asked side by side, each within its seconds.
"""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.cli.doctor.finding import fail, ok, warn
from tenfold_core import protocol
from tenfold_core.address import split_address
from tenfold_core.running_versions import running_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold.cli.doctor.finding import Finding
    from tenfold_core.access.credentials import Credentials, ShownToken
    from tenfold_protos.examine_pb2 import ExamineResponse

#: Clocks may differ by this; the service tells whole seconds only.
_CLOCK_S, _SERVICE_CLOCK_S = 1.0, 2.0
_SAME_RELEASE = "install the same on all machines"
#: Tasks asked at once.
_AT_ONCE = 16

#: Task → "host:port". Tasks are named in full: "/job:ps/replica:0/task:0".
Addresses = dict[str, str]


class Way(NamedTuple):
    """A link from one task to another, as the first one tried it."""

    #: "unix" or "tcp:PORT"; empty: none comes about, for this reason.
    way: str
    error: str = ""
    #: What both speak, and the other's release of Tenfold; 0 and empty where it did not come to that.
    version: int = 0
    release: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task said. `offset` is how far its clock is ahead of ours, known to within `within` seconds."""

    task: str
    address: str
    versions: Mapping[str, str]
    host: str
    offset: float
    within: float
    #: Task → why this one does not reach it; empty where it does.
    peers: Mapping[str, str]
    #: Task → how a link goes there. Without those that have none.
    links: Mapping[str, Way]


def of_service(url: str, cluster: str, token: ShownToken, seconds: float) -> tuple[list[Finding], Addresses]:
    """The findings of the control service, and the tasks that are registered with it. Blocks within `seconds` for each
    of three requests."""
    import httpx

    from tenfold_core.access.https import https_context

    text = token()
    headers = {} if text is None else {"Authorization": f"Bearer {text}"}
    verify = https_context() if url.startswith("https:") else True
    with httpx.Client(base_url=url, headers=headers, timeout=seconds, trust_env=False, verify=verify) as client:
        try:
            began = time.time()
            well = client.get("/healthz")
            now = (began + time.time()) / 2
        except httpx.HTTPError as error:
            why = f"{url} does not answer: {error or type(error).__name__}"
            return [fail("service", why, "start it (tenfold control, tenfold up), or name another with --control")], {}
        if not well.is_success:
            why = f"{url} answers {well.status_code}, as if it were something else"
            return [fail("service", why, "name a control service with --control")], {}
        found = [ok("service", f"{url} answers"), *_clock_of_service(well.headers.get("date"), now)]
        ready = client.get("/readyz")
        if not ready.is_success:
            found.append(fail("service's database", _detail(ready), "look into the service's log"))
        jobs = client.get(f"/v1/clusters/{cluster}/jobs")
    if jobs.status_code in (401, 403):
        return [*found, fail("token", _detail(jobs), "set TENFOLD_TOKEN, or give --token-file")], {}
    found.append(ok("token", "accepted" if text is not None else "none is needed"))
    if not jobs.is_success:
        return [*found, fail(f"cluster {cluster}", _detail(jobs), "name another with --cluster-name")], {}
    addresses: Addresses = {}
    for job in jobs.json()["jobs"]:
        for task in job["tasks"]:
            if task["state"] == "ready":
                addresses[task["name"]] = task["address"]
            elif task["name"] in job["missing_tasks"]:
                found.append(fail(task["name"], f"{task['state']}: {task['reason']}", "start it (tenfold task)"))
    return found, addresses


def _clock_of_service(date: str | None, now: float) -> Iterator[Finding]:
    try:
        offset = parsedate_to_datetime(date or "").timestamp() + 0.5 - now
    except ValueError:
        return
    yield _clock("service's clock", offset, _SERVICE_CLOCK_S)


def _clock(what: str, offset: float, bound: float) -> Finding:
    if abs(offset) <= bound:
        return ok(what, f"within {bound:g} s of this machine's")
    text = f"{abs(offset):.1f} s {'ahead of' if offset > 0 else 'behind'} this machine's"
    return warn(what, text, "let NTP set both clocks: logs and traces of several machines are put in order by them")


def _detail(answer: Any) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"


def resolved(addresses: Addresses) -> Iterator[Finding]:
    """Whether the names in the tasks' addresses resolve here. Blocks as long as they take."""
    hosts = sorted({split_address(address)[0] for address in addresses.values()})
    lost = []
    for host in hosts:
        try:
            socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
        except OSError as error:
            lost.append(host)
            text = f"does not resolve here: {error.strerror or error}"
            yield fail(f"name {host}", text, "add it to /etc/hosts or DNS")
    if hosts and not lost:
        yield ok("names", f"of all tasks resolve here: {', '.join(hosts[:5])}{', …' * (len(hosts) > 5)}")


def of_tasks(addresses: Addresses, seconds: float, credentials: Credentials) -> list[Finding]:
    """The findings of the tasks, from here and from each other; they are shown `credentials`. Blocks for
    about `seconds` for each 16 of them."""

    def asked(task: str) -> Answer | Finding:
        others = {name: each for name, each in addresses.items() if name != task}
        return ask(task, addresses[task], others, seconds, credentials)

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        answers = list(pool.map(asked, addresses))
    found: list[Finding] = []
    here = running_versions()
    said = [each for each in answers if isinstance(each, Answer)]
    for each in answers:
        found += [each] if not isinstance(each, Answer) else _of_task(each, here)
    reached = sum(not why for each in said for why in each.peers.values())
    pairs = sum(len(each.peers) for each in said)
    if pairs and reached == pairs:
        found.append(ok("pairs", f"each task reaches each other one ({pairs} connections)"))
    found += _links([each for answer in said for each in answer.links.values() if each.way])
    return found


def _links(links: list[Way]) -> Iterator[Finding]:
    """The finding of the links that come about: their ways, and what they speak."""
    if not links:
        return
    ports = sorted({int(each.way.removeprefix("tcp:")) for each in links if each.way != "unix"})
    within = sum(each.way == "unix" for each in links)
    parts = [f"{within} within a machine"] if within else []
    if ports:
        shown = ", ".join(map(str, ports[:5])) + ", …" * (len(ports) > 5)
        parts.append(f"{len(links) - within} over TCP, to port {shown}")
    versions = sorted({each.version for each in links})
    parts.append(f"version{'s' * (len(versions) > 1)} {', '.join(map(str, versions))} of their protocol")
    yield ok("links", "; ".join(parts))


def _of_task(answer: Answer, here: Mapping[str, str]) -> Iterator[Finding]:
    yield ok(answer.task, f"answers at {answer.address}, on {answer.host}")
    if abs(answer.offset) > _CLOCK_S + answer.within:
        yield _clock(f"clock of {answer.task}", answer.offset, _CLOCK_S)
    for name, version in here.items():
        if (there := answer.versions.get(name, "unknown")) != version:
            finding = fail if name == "tenfold" else warn
            text = f"{name} {there} there, {version} here"
            yield finding(f"versions of {answer.task}", text, _SAME_RELEASE)
    for peer, why in answer.peers.items():
        if why:
            remedy = "let that address be dialled from there: names, firewall, --address"
            yield fail(f"{answer.task} → {peer}", why, remedy)
    newest = protocol.links().newest
    for peer, link in answer.links.items():
        pair, release = f"{answer.task} → {peer}", f"Tenfold {link.release}" if link.release else "an older Tenfold"
        if link.error:
            blocked = "let its port for links through, a fixed one by tenfold task --link-port (TENFOLD_LINK_PORT)"
            remedy = blocked if link.version <= newest else _SAME_RELEASE
            yield warn(pair, f"gRPC alone, which is slower: {link.error}", remedy)
        elif link.version < newest:
            text = f"links of version {link.version}, and {newest} is the newest: {release} is there"
            yield warn(pair, text, _SAME_RELEASE)


def ask(task: str, address: str, peers: Addresses, seconds: float, credentials: Credentials) -> Answer | Finding:
    """What `task` says at `address`, and how it reaches `peers`; a finding where it says nothing. Blocks."""
    import grpc

    from tenfold_core.access.channel import open_channel
    from tenfold_protos.examine_pb2 import ExamineRequest, ExamineResponse, TaskAddress

    request = ExamineRequest(
        peer=[TaskAddress(task=name, address=each) for name, each in peers.items()], seconds=seconds, links=True
    )
    options = [("grpc.enable_http_proxy", 0)]
    with open_channel(grpc, address, options, credentials) as channel:
        call = channel.unary_unary(
            "/tenfold.ExamineService/Examine",
            request_serializer=ExamineRequest.SerializeToString,
            response_deserializer=ExamineResponse.FromString,
        )
        try:
            # the connection itself is no part of the time that the clock is read in
            call(ExamineRequest(seconds=seconds), timeout=seconds)
            began = time.time()
            told: ExamineResponse = call(ExamineRequest(seconds=seconds), timeout=seconds)
            ended = time.time()
            # it dials 32 at once, each by name, by gRPC and by a link
            answer: ExamineResponse = call(request, timeout=seconds * (3 + len(peers) // 32))
        except grpc.RpcError as error:
            return _refused(task, address, error)
    return Answer(
        task=task,
        address=address,
        versions=dict(told.version),
        host=told.host,
        offset=told.now - (began + ended) / 2,
        within=(ended - began) / 2,
        peers={each.task: each.error for each in answer.peer},
        links={
            each.task: Way(each.link, each.link_error, each.link_version, each.release)
            for each in answer.peer
            if each.link or each.link_error
        },
    )


def _refused(task: str, address: str, error: Any) -> Finding:
    import grpc

    code, details = error.code(), error.details()
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return ok(task, f"answers at {address}, and is no Tenfold task of this version: it cannot be asked more")
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return fail(task, f"{address} lets nobody in: {details}", "set TENFOLD_TOKEN or TENFOLD_TOKEN_FILE")
    text = f"{address} does not answer: {code.name}: {details}"
    return fail(task, text, "is it running (tenfold status)? may its port be dialled from here?")
