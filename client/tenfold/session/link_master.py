"""A master over the network: steps go over a link if there is one, everything else over gRPC.

A run signature (session, feeds, fetches, targets) is sent once per link and is a number from then on, so that the frame
of a step is a few bytes and its tensors. The other end is tenfold_services/rpc/link_master_service.py. targets.py makes
one for every session with a server of another process. With a TensorFlow server, or with links switched off, it works
as a GrpcMaster.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError

from tenfold.session.grpc_errors import why_silent
from tenfold.session.grpc_master import GrpcMaster, _value
from tenfold.session.master_interface import ANSWER_GRACE_SECONDS, SESSION_CLOSED
from tenfold_core import errors
from tenfold_core.tensor_util import tensor_to_proto
from tenfold_link.link_settings import LinkSettings
from tenfold_link.memory import private_mappings
from tenfold_link.wire.calls import HAS_NAMES, HAS_OPTIONS, RUN_STEP, RUN_STEP_ANSWER, STEP_DONE, LinkCall, StepNames
from tenfold_link.wire.short_ids import AssignedIds
from tenfold_link.wire.values import ValueReader, pack_value
from tenfold_protos.config_pb2 import RunMetadata
from tenfold_protos.master_pb2 import RunStepRequest
from tenfold_protos.tensor_pb2 import TensorProto

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_core.access.credentials import AccessSettings, Credentials
    from tenfold_core.access.roles import Role
    from tenfold_link.blocking.link import BlockingLink
    from tenfold_link.wire.buffers import Answer
    from tenfold_protos.config_pb2 import ConfigProto, RunOptions
    from tenfold_protos.graph_pb2 import GraphDef


class LinkMaster(GrpcMaster):
    """The master service at `target` ("grpc://host:port"). Connects on first use. See MasterInterface."""

    def __init__(
        self,
        target: str,
        settings: LinkSettings | None = None,
        access: AccessSettings | Credentials | None = None,
        as_role: Role | None = None,
        shown: str = "",
    ) -> None:
        """`settings`, and `access`, which says what the calls show, are by default those of the environment; raises
        InvalidArgumentError where that is malformed. `as_role`: as of GrpcMaster; the link has it, too. `shown`: as
        of GrpcMaster."""
        super().__init__(target, access, as_role, shown)
        self._settings = settings if settings is not None else LinkSettings.from_environment()
        self._link: BlockingLink | None = None
        self._numbers = AssignedIds()
        #: One thread opens the link; the others wait for it.
        self._opening = threading.Lock()
        #: After a failed attempt steps go over gRPC until this time.
        self._not_before = 0.0
        self._owner = os.getpid()

    @property
    def link(self) -> BlockingLink | None:
        """The open link, if there is one."""
        link = self._link
        return None if link is None or link.closed else link

    def _create_session(self, graph_def: GraphDef, config: ConfigProto, timeout: float | None) -> tuple[str, int]:
        answer = super()._create_session(graph_def, config, timeout)
        self._linked()
        return answer

    def _run_step(
        self,
        handle: str,
        feeds: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        link = self._linked()
        if link is None:
            return super()._run_step(handle, feeds, fetches, targets, options, timeout)
        names = StepNames(handle, tuple(feeds), tuple(fetches), tuple(targets))
        return self.run_over(link, names, list(feeds.values()), options, timeout)

    def prepared_step(
        self,
        handle: str,
        feeds: tuple[str, ...],
        fetches: tuple[str, ...],
        targets: tuple[str, ...],
        timeout: float | None,
    ) -> LinkStep | None:
        """See PreparingMaster."""
        link = self.link
        return None if link is None else LinkStep(self, link, StepNames(handle, feeds, fetches, targets), timeout)

    def close(self) -> None:
        """See MasterInterface."""
        link, self._link = self._link, None
        if link is not None and self._owner == os.getpid():
            link.close(errors.CancelledError(None, None, SESSION_CLOSED))
        super().close()

    def run_over(
        self,
        link: BlockingLink,
        names: StepNames,
        feeds: Sequence[np.ndarray],
        options: RunOptions | None,
        timeout: float | None,
    ) -> tuple[list[np.ndarray], RunMetadata]:
        """`run_step` over a link."""
        number = self._numbers.find(names)
        while True:
            flags = 0
            request: RunStepRequest | None = None
            if options is not None and options.ByteSize():
                request, flags = RunStepRequest(options=options), HAS_OPTIONS
            if number is None:
                number = self._numbers.give(names)
                request, flags = request or RunStepRequest(), flags | HAS_NAMES
                names.say(request)
            message = b"" if request is None else request.SerializeToString()
            parts = [RUN_STEP.pack(number, flags, len(feeds), len(message)), message]
            buffers: list[Any] = []
            for value in feeds:
                pack_value(value, parts, buffers, tensor_to_proto)
            answer = self._call_link(link, b"".join(parts), buffers, timeout)
            try:
                found = _read_answer(names, answer)
            except (struct.error, DecodeError, errors.InvalidArgumentError) as error:
                raise self._malformed(str(error)) from None
            if found is not None:
                return found
            if flags & HAS_NAMES:
                raise self._malformed("it does not know the names that came with the step")
            number = None

    def _malformed(self, why: str) -> errors.OpError:
        text = f"RunStep: the answer of the server at {self._server()} is malformed: {why}"
        return errors.InternalError(None, None, text)

    def _call_link(self, link: BlockingLink, header: bytes, buffers: list[Any], timeout: float | None) -> Answer:
        """One RunStep. Failures of the connection raise the same errors as with gRPC."""
        if timeout is None:
            try:
                return link.call(LinkCall.RUN_STEP, header, buffers)
            except errors.UnavailableError as error:
                raise self._explained(link, error) from None
        begin = time.monotonic()
        try:
            return link.call(LinkCall.RUN_STEP, header, buffers, timeout + ANSWER_GRACE_SECONDS)
        except errors.UnavailableError as error:
            raise self._explained(link, error) from None
        except errors.DeadlineExceededError:
            if time.monotonic() - begin < timeout + ANSWER_GRACE_SECONDS:
                raise
            raise errors.DeadlineExceededError(
                None,
                None,
                f"RunStep on {self._server()} was not answered within {timeout:g} s: {why_silent(self.target)}",
            ) from None

    def _explained(self, link: BlockingLink, error: errors.OpError) -> errors.OpError:
        """UnavailableError that names the server if the link broke; an error that the server sent stays as it is."""
        if not link.closed:
            return error
        return errors.UnavailableError(
            None, None, f"RunStep failed: the server at {self._server()} cannot be reached or has died: {error.message}"
        )

    # -- the link ----------------------------------------------------------------------------------------------------

    def _linked(self) -> BlockingLink | None:
        """The link, opened if that is due; None: use gRPC. Raises CancelledError once closed."""
        link = self._link
        if link is not None and not link.closed and self._owner == os.getpid():
            return link
        # a server that has not sent its task's name is not Tenfold's
        if self.task is None or self._settings.mode == "off" or time.monotonic() < self._not_before:
            return None
        with self._opening:
            link = self._link
            if link is not None and not link.closed and self._owner == os.getpid():
                return link
            if time.monotonic() < self._not_before:
                return None
            return self._open()

    def _open(self) -> BlockingLink | None:
        from tenfold.session.open_link import asker
        from tenfold_link.blocking.dial import open_link

        try:
            link = open_link(
                asker(self.channel(), self._address),
                self._address,
                settings=self._settings,
                credentials=self._credentials,
            )
        except errors.CancelledError:
            raise
        except errors.OpError:
            self._not_before = time.monotonic() + self._settings.retry_seconds
            return None
        self._link, self._owner = link, os.getpid()
        # signature numbers are valid on one link only
        self._numbers = AssignedIds()
        if self._closed:
            self.close()
            raise errors.CancelledError(None, None, SESSION_CLOSED)
        return link


class LinkStep:
    """A step that has run before. See PreparedStep."""

    __slots__ = ("_link", "_master", "_names", "_timeout")

    may_wait = True

    def __init__(self, master: LinkMaster, link: BlockingLink, names: StepNames, timeout: float | None) -> None:
        self._master, self._link, self._names, self._timeout = master, link, names, timeout

    def run(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """See PreparedStep."""
        master = self._master
        if master._link is not self._link or self._link.closed:
            return None
        # The server knows the session's own time-out.
        return master.run_over(self._link, self._names, feeds, None, self._timeout)[0]

    def run_in_spans(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """See PreparedStep. The link takes the trace to the server."""
        return self.run(feeds)


def _read_answer(names: StepNames, answer: Answer) -> tuple[list[np.ndarray], RunMetadata] | None:
    """What a step gave; None where the number of its names is not known. Raises what its readers raise."""
    header, received = answer
    status, count, length = RUN_STEP_ANSWER.unpack_from(header)
    if status != STEP_DONE:
        return None
    offset = RUN_STEP_ANSWER.size
    metadata = RunMetadata()
    if length:
        metadata.ParseFromString(header[offset : offset + length])
    if count != len(names.fetches):
        raise errors.InvalidArgumentError(None, None, f"{count} tensors for {list(names.fetches)}")
    if not count:
        return [], metadata
    reader = ValueReader(header, offset + length, received, _from_proto)
    return [_own(reader.read()[0]) for _ in range(count)], metadata


def _from_proto(content: bytes) -> np.ndarray:
    return _value(TensorProto.FromString(content))


def _own(value: Any) -> Any:
    """An array that belongs to the caller: one in shared memory is mapped privately or copied."""
    if type(value) is np.ndarray and not value.flags.writeable:
        return private_mappings.writable(value)
    return value
