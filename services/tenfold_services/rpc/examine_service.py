"""Examine over gRPC: what `tenfold doctor` asks a task, and how it dials the others. decode → call → encode.

Beside TensorFlow's services on the same port. A caller that may run any graph here may ask: a graph could dial as well.
The other end is tenfold/cli/doctor.
"""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import time
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_core.access.roles import Role
from tenfold_core.access.task_tokens import credentials_for
from tenfold_core.address import split_address
from tenfold_core.running_versions import running_versions
from tenfold_link.aio.dial import way
from tenfold_link.wire import handshake
from tenfold_protos import examine_pb2
from tenfold_protos.worker_pb2 import GetStatusRequest, GetStatusResponse

from ..worker.waits import TENSOR
from .channels import ask, open_channel
from .own_services import asker
from .service import Served, TableService

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_core.access.credentials import Credentials
    from tenfold_link.link_settings import LinkSettings
    from tenfold_protos.why_pb2 import TaskAnswer

DESCRIPTOR = examine_pb2.DESCRIPTOR.services_by_name["ExamineService"]
#: Of a task whose address is not in the spec.
_NO_ADDRESS = "it has not registered: no address is known"
#: Tasks of one request, how many are dialled at once, and the seconds of each.
_MAX_PEERS, _AT_ONCE, _LONGEST_S = 1000, 32, 30.0
#: Seconds for another task to say what its steps wait for.
_WAITS_S = 2.0


def examine_service(
    credentials: Credentials,
    cluster: Callable[[], Mapping[str, str]],
    where: Callable[[], str],
    settings: LinkSettings,
    waits: Callable[[str], list[str]],
    why: Callable[[], TaskAnswer],
) -> TableService:
    """The service of a task that shows `credentials` to the tasks of its `cluster()`, the other ones with their
    addresses ("" where one is not known), and to nobody else: a caller could have them sent to itself. Links are
    tried as `settings` say. `waits(handle)` says what a session's steps wait for here, `why()` why nothing goes on."""

    async def examine(request: examine_pb2.ExamineRequest, context: Any) -> examine_pb2.ExamineResponse:
        if len(request.peer) > _MAX_PEERS:
            raise errors.invalid_argument(f"Examine names {len(request.peer)} tasks; {_MAX_PEERS} is the limit.")
        if request.why:
            return examine_pb2.ExamineResponse(why=why())
        if request.waits_of_session:
            handle = request.waits_of_session
            elsewhere = cluster() if request.cluster else {}
            found = await waits_everywhere(handle, waits(handle), elsewhere, credentials)
            return examine_pb2.ExamineResponse(wait=found)
        peers = list(request.peer)
        if request.cluster:
            others = cluster().items()
            peers += [examine_pb2.TaskAddress(task=task, address=address) for task, address in others][:_MAX_PEERS]
        if not 0 < request.seconds <= _LONGEST_S:
            raise errors.invalid_argument(f"Examine allows {request.seconds} s; it may be up to {_LONGEST_S:g} s.")
        places = asyncio.Semaphore(_AT_ONCE)

        async def dialled(peer: examine_pb2.TaskAddress) -> examine_pb2.PeerFinding:
            if not peer.address:
                return examine_pb2.PeerFinding(task=peer.task, error=_NO_ADDRESS)
            async with places:
                began = time.monotonic()
                # who asks could name another task's address, and get what opens the one that it names
                known = cluster().get(peer.task) == peer.address
                shown = credentials_for(credentials, peer.task) if known else NO_CREDENTIALS
                found = examine_pb2.PeerFinding(task=peer.task, address=peer.address)
                found.error = await _dial(peer.task, peer.address, request.seconds, shown)
                found.seconds = time.monotonic() - began
                if request.links and not found.error and settings.mode != "off":
                    bounded = dataclasses.replace(settings, hello_seconds=request.seconds)
                    await _try_link(found, bounded, shown)
            return found

        findings = await asyncio.gather(*map(dialled, peers))
        return examine_pb2.ExamineResponse(
            peer=findings, now=time.time(), version=running_versions(), host=socket.gethostname()
        )

    return TableService(DESCRIPTOR, {"Examine": Served(examine)}, where, "tenfold", needs=Role.RUN)


async def waits_everywhere(
    handle: str, here: list[str], others: Mapping[str, str], credentials: Credentials
) -> list[str]:
    """What a session's steps wait for: `here`, and at the other tasks with addresses that answer soon."""
    asked = [(task, address) for task, address in others.items() if address][:_MAX_PEERS]
    places = asyncio.Semaphore(_AT_ONCE)
    request = examine_pb2.ExamineRequest(waits_of_session=handle, seconds=_WAITS_S)

    async def there(task: str, address: str) -> list[str]:
        try:
            async with places, asyncio.timeout(_WAITS_S), open_channel(address, credentials) as channel:
                path = "/tenfold.ExamineService/Examine"
                answer = await ask(channel, path, request, examine_pb2.ExamineResponse, task, address, _WAITS_S)
                return [str(each) for each in answer.wait]
        except (errors.OpError, TimeoutError):
            return []  # TensorFlow's, or away: then its steps fail by themselves

    found = await asyncio.gather(*(there(*each) for each in asked))
    everything = list(dict.fromkeys([*here, *(each for waits in found for each in waits)]))
    # who waits for a tensor waits for what keeps its maker waiting
    return [each for each in everything if not each.startswith(TENSOR)] or everything


async def _dial(task: str, address: str, seconds: float, credentials: Credentials) -> str:
    """Why `task` does not answer at `address`; empty where it does."""
    try:
        host, port = split_address(address)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except ValueError as error:
        return str(error)
    except TimeoutError:
        return f"the name {host} was not resolved within {seconds:g} s"
    except OSError as error:
        return f"the name {host} does not resolve: {error.strerror or error}"
    try:
        async with open_channel(address, credentials) as channel:
            path = "/tensorflow.WorkerService/GetStatus"
            status = await ask(channel, path, GetStatusRequest(), GetStatusResponse, task, address, seconds)
    except errors.OpError as error:
        return f"{errors.code_name(error.code)}: {error.message}"
    there = next((device.name for device in status.device_attributes), "")
    if not there.startswith(f"{task}/"):
        return f"{there.rpartition('/device:')[0] or 'something without a device'} answers there"
    return ""


async def _try_link(found: examine_pb2.PeerFinding, settings: LinkSettings, credentials: Credentials) -> None:
    """Fills in by which way a link to the peer comes about and what it would speak, or why none does; nothing for a
    peer that has no links."""
    try:
        async with open_channel(found.address, credentials) as channel:
            ask_link = asker(channel, found.task, found.address, settings.hello_seconds)
            answer = await ask_link(handshake.ask(settings, tls=credentials.of(found.address) is not None))
        found.link_version, found.release = answer.version or 1, answer.release
        handshake.check_version(answer, found.task)
        found.link = await way(answer, found.address, settings)
    except errors.UnimplementedError:
        pass
    except errors.OpError as error:
        found.link_error = error.message
