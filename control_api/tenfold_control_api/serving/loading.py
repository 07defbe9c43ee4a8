"""A version of a model put into a session of its own: made, restored, and where it follows a training, caught up.

saved.py reads the SavedModel; sessions are those of session_service.py, so that a model shows up and is lost as any
session. Async. Called by service.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold.train.checkpoint_follower import newest_whole
from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving import saved
from tenfold_control_api.serving.following import Follower, absolute
from tenfold_core import errors
from tenfold_core.help_links import runtime_kind
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from tenfold.train.checkpoint_follower import Point
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.serving.saved import SavedVersion, Signature, StartStep
    from tenfold_control_api.serving.shapes import ModelRegistration
    from tenfold_control_api.session_record import SessionRecord
    from tenfold_control_api.session_service import SessionService

log = logging.getLogger(__name__)

#: Looks for increments that appear while others are taken in, before a model is ready.
_LOOKS = 5
#: What a master says of a graph or a file that is wrong, to every caller.
_THE_MODELS_OWN = frozenset(
    runtime_kind(code) for code in ("NOT_FOUND", "INVALID_ARGUMENT", "UNIMPLEMENTED", "DATA_LOSS")
)


@dataclass
class Loaded:
    """A version in a session."""

    registration: ModelRegistration
    version: str
    folder: str
    record: SessionRecord
    signatures: Mapping[str, Signature]
    #: When the folder was last looked at.
    looked: float
    #: Of a model that follows a training; and what calls it again and again.
    follower: Follower | None = None
    loop: asyncio.Task[None] | None = None
    #: Requests that use it now: the session of one that is over is closed by the last of them.
    users: int = 0
    is_over: bool = False
    #: Its session is closed, or was gone.
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    #: Version that could not be loaded → why; it is not tried again.
    refused: dict[str, str] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def of_one_moment(self) -> AsyncIterator[dict[str, Any]]:
        """The model does not change within the block; what an answer says of its state."""
        if self.follower is None:
            yield {}
            return
        async with self.follower.gate.through():
            yield self.follower.parameters()


class Loader:
    """Puts models into sessions."""

    def __init__(self, sessions: SessionService, settings: Settings) -> None:
        self._sessions, self._settings = sessions, settings

    async def load(
        self, name: str, registration: ModelRegistration, version: str, path: str, training: str | None, now: float
    ) -> Loaded:
        """A session with the version in the folder `path`, which follows `training`, a folder, if that is given.

        Raises `invalid-model`, and what sessions raise. Nothing is left open then.
        """
        start = None if training is None else await asyncio.to_thread(_newest, training, name, version)
        prefix = None if start is None else absolute(start.whole)
        model = await asyncio.to_thread(saved.read_version, path, registration.tags, prefix)
        # its variables are its own: those of a program on the same tasks may have their names
        config = config_pb2.ConfigProto(isolate_session_state=True)
        try:
            record = await self._sessions.create(
                registration.cluster, registration.job, registration.index, model.graph_def, config, _nothing
            )
            try:
                await self._start(record, model.start)
                follower = await self._caught_up(record, model, training, start)
            except BaseException:
                with contextlib.suppress(ApiError):
                    await self._sessions.close(record.id, f"model {name} could not be loaded")
                raise
        except ApiError as error:
            if error.kind not in _THE_MODELS_OWN:
                raise
            # The model is there; "not found" would say of the request what is true of its graph.
            detail = f"version {version} of model {name!r} cannot be loaded: {error.detail}"
            raise ApiError("invalid-model", detail, node=error.node) from None
        log.info("model %s: version %s is loaded on %s", name, version, record.master)
        return Loaded(registration, version, path, record, model.signatures, now, follower)

    async def _start(self, record: SessionRecord, steps: Sequence[StartStep]) -> None:
        for each in steps:
            await self._sessions.ask(
                record.id,
                lambda master, handle, left, each=each: master.run_step(  # type: ignore[misc]
                    handle, each.feeds, [], [each.target], config_pb2.RunOptions(), left
                ),
                self._settings.session_timeout,
            )

    async def _caught_up(
        self, record: SessionRecord, model: SavedVersion, training: str | None, start: Point | None
    ) -> Follower | None:
        """Where a training is followed, once all increments are in place that can be."""
        if training is None or start is None or model.follow is None:
            return None
        follower = Follower(training, start, model.follow, self._sessions, record)
        await follower.count()
        for _ in range(_LOOKS):
            before = follower.applied
            await follower.look()
            if follower.applied == before:
                break
        return follower


def _newest(training: str, name: str, version: str) -> Point:
    try:
        return newest_whole(training)
    except (OSError, ValueError, errors.OpError) as error:
        why = error.message if isinstance(error, errors.OpError) else str(error)
        raise ApiError("invalid-model", f"version {version} of model {name!r} cannot be loaded: {why}.") from None


def _nothing() -> None:
    """Loading a model is no act of its request: the session is the service's own."""
