"""Models in sessions: loaded at first use, again when a version is new or the session is gone, closed by DELETE. Async.

folder.py knows which models there are, saved.py reads one, model_step.py is a request. Sessions are those of
session_service.py, so that a model shows up and is lost as any session. Used by routes/models.py, routes/inference.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving import model_step, saved
from tenfold_control_api.serving.folder import ModelsFolder
from tenfold_control_api.serving.shapes import ModelMetadata, ModelView, TensorMetadata
from tenfold_core.help_links import runtime_kind
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.serving.saved import Endpoint, SavedVersion, Signature
    from tenfold_control_api.serving.shapes import ModelRegistration
    from tenfold_control_api.session_record import SessionRecord
    from tenfold_control_api.session_service import SessionService
    from tenfold_control_api.steps import Answer, InferenceStep

log = logging.getLogger(__name__)

#: Seconds between two looks for a newer version of a model that is asked for.
_LOOK_S = 2.0
#: A session that answers so is not there any more, and an inference may be sent again to another: it changes nothing.
_GONE = frozenset(
    {
        "no-such-session",
        "session-gone",
        "session-lost",
        "task-lost",
        runtime_kind("ABORTED"),
        runtime_kind("UNAVAILABLE"),
    }
)

#: What a master says of a graph or a file that is wrong, to every caller.
_THE_MODELS_OWN = frozenset(
    runtime_kind(code) for code in ("NOT_FOUND", "INVALID_ARGUMENT", "UNIMPLEMENTED", "DATA_LOSS")
)


@dataclass
class _Loaded:
    """A version in a session."""

    registration: ModelRegistration
    version: str
    folder: str
    record: SessionRecord
    signatures: Mapping[str, Signature]
    #: When the folder was last looked at.
    looked: float
    #: Requests that use it now: the session of one that is over is closed by the last of them.
    users: int = 0
    is_over: bool = False
    #: Version that could not be loaded → why; it is not tried again.
    refused: dict[str, str] = field(default_factory=dict)


class ModelService:
    """The models that this service serves."""

    def __init__(self, sessions: SessionService, settings: Settings, clock: Clock = time.monotonic) -> None:
        self._sessions, self._settings, self._clock = sessions, settings, clock
        self._folder = None if settings.models_folder is None else ModelsFolder(settings.models_folder)
        self._loaded: dict[str, _Loaded] = {}
        #: One load of a model at a time.
        self._locks: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Closes the sessions of all models; bounded by `settings.grace`."""
        for name in list(self._loaded):
            self._retire(name)
        if self._closing:
            await asyncio.wait(self._closing, timeout=self._settings.grace)

    # -- looking

    async def views(self, cluster: str | None = None, state: str | None = None) -> list[ModelView]:
        """Every model, or those of one cluster, or in one state."""
        folder = self._models()
        found = [await self.view(name) for name in await asyncio.to_thread(folder.names)]
        return [each for each in found if cluster in (None, each.cluster) and state in (None, each.state)]

    async def view(self, name: str) -> ModelView:
        """Raises `no-such-model`."""
        registration = await asyncio.to_thread(self._models().registration, name)
        loaded = self._loaded.get(name)
        view = ModelView(
            name=name,
            path=registration.path or name,
            cluster=registration.cluster,
            tags=registration.tags,
            state="unloaded" if loaded is None else "ready",
        )
        if loaded is None:
            return view
        return view.model_copy(
            update={
                "version": loaded.version,
                "master": loaded.record.master,
                "session": loaded.record.id,
                "signatures": list(loaded.signatures),
                "trouble": "; ".join(f"version {each}: {why}" for each, why in loaded.refused.items()),
            }
        )

    async def metadata(self, name: str, version: str | None, signature: str | None) -> ModelMetadata:
        """Loads the model if it is not. Raises `no-such-model`, `no-such-version`, `no-such-signature`, and what
        loading raises."""
        loaded = await self._ready(name, version)
        found = model_step.signature_of(loaded.signatures, signature, name)
        return ModelMetadata(
            name=name,
            versions=[loaded.version],
            inputs=_tensors(found.inputs),
            outputs=_tensors(found.outputs),
            parameters={"signature": found.name, "signatures": list(loaded.signatures)},
        )

    # -- acting

    async def register(self, name: str, registration: ModelRegistration) -> ModelView:
        """Registers a model, or registers it anew, and loads it. Raises `invalid-model`, and what sessions raise."""
        folder = self._models()
        async with self._lock(name):
            _, path = await asyncio.to_thread(folder.newest, name, registration)
            await asyncio.to_thread(saved.read_version, path, registration.tags)
            await asyncio.to_thread(folder.register, name, registration)
            self._retire(name)
        await self._ready(name)
        return await self.view(name)

    async def unload(self, name: str) -> ModelView:
        """Forgets the registration and closes the session, once the requests that it serves have ended. A model that
        lies in the folder under its name is loaded again when it is asked for."""
        view = await self.view(name)
        async with self._lock(name):
            await asyncio.to_thread(self._models().forget, name)
            self._retire(name)
        return view.model_copy(update={"state": "unloaded"})

    async def ready(self, name: str, version: str | None) -> None:
        """Returns once the model is loaded. Raises why it cannot be, and `no-such-version`."""
        await self._ready(name, version)

    async def infer(
        self,
        name: str,
        version: str | None,
        step: InferenceStep,
        signature: str | None,
        acting: Callable[[], None],
    ) -> Answer:
        """Runs one request. Where its session is gone the model is loaded once more, on another task if need be."""
        for is_last in (False, True):
            loaded = await self._ready(name, version)
            found = model_step.signature_of(loaded.signatures, signature, name)
            loaded.users += 1
            try:
                run = functools.partial(model_step.run, step, found, name, loaded.version)
                return await self._sessions.run_step(loaded.record.id, run, None, acting)
            except ApiError as error:
                if is_last or error.kind not in _GONE:
                    raise
                log.info("model %s is loaded again: %s", name, error)
                if self._loaded.get(name) is loaded:
                    self._retire(name)
            finally:
                loaded.users -= 1
                self._close_if_over(loaded)
        raise AssertionError("the last attempt returns or raises")

    # -- inside

    def _models(self) -> ModelsFolder:
        if self._folder is None:
            raise ApiError(
                "no-models",
                "this service serves no models: start it with `tenfold control --models DIR`.",
            )
        return self._folder

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _ready(self, name: str, version: str | None = None) -> _Loaded:
        """The version that is served. Raises `no-such-version` if another one is asked for."""
        loaded = await self._newest(name)
        if version not in (None, loaded.version):
            raise ApiError(
                "no-such-version",
                f"model {name!r} is served in version {loaded.version}, the newest that can be loaded, and in no "
                f"other; {version!r} was asked for.",
            )
        return loaded

    async def _newest(self, name: str) -> _Loaded:
        """The newest version that can be loaded; an older one goes on while a newer one cannot."""
        loaded = self._loaded.get(name)
        if loaded is not None and self._clock() - loaded.looked < _LOOK_S:
            return loaded
        folder = self._models()
        async with self._lock(name):
            loaded = self._loaded.get(name)
            if loaded is not None and self._clock() - loaded.looked < _LOOK_S:
                return loaded
            registration = await asyncio.to_thread(folder.registration, name)
            try:
                version, path = await asyncio.to_thread(folder.newest, name, registration)
                if loaded is not None:
                    loaded.looked = self._clock()
                    same = (registration, version, path) == (loaded.registration, loaded.version, loaded.folder)
                    if same or version in loaded.refused:
                        return loaded
                fresh = await self._load(name, registration, version, path)
            except ApiError as error:
                if loaded is None:
                    raise
                log.warning("model %s goes on with version %s: %s", name, loaded.version, error)
                loaded.looked = self._clock()
                if error.kind == "invalid-model":
                    loaded.refused[version] = error.detail
                return loaded
            self._retire(name)
            self._loaded[name] = fresh
            return fresh

    async def _load(self, name: str, registration: ModelRegistration, version: str, path: str) -> _Loaded:
        model = await asyncio.to_thread(saved.read_version, path, registration.tags)
        # its variables are its own: those of a program on the same tasks may have their names
        config = config_pb2.ConfigProto(isolate_session_state=True)
        try:
            record = await self._sessions.create(
                registration.cluster, registration.job, registration.index, model.graph_def, config, _nothing
            )
            try:
                await self._start(record, model)
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
        return _Loaded(registration, version, path, record, model.signatures, self._clock())

    async def _start(self, record: SessionRecord, model: SavedVersion) -> None:
        for each in model.start:
            await self._sessions.ask(
                record.id,
                lambda master, handle, left, each=each: master.run_step(  # type: ignore[misc]
                    handle, each.feeds, [], [each.target], config_pb2.RunOptions(), left
                ),
                self._settings.session_timeout,
            )

    def _retire(self, name: str) -> None:
        """The model is not loaded any more. Never blocks."""
        loaded = self._loaded.pop(name, None)
        if loaded is not None:
            loaded.is_over = True
            self._close_if_over(loaded)

    def _close_if_over(self, loaded: _Loaded) -> None:
        if not loaded.is_over or loaded.users:
            return
        loaded.is_over = False

        async def close() -> None:
            with contextlib.suppress(ApiError):  # it is gone already
                await self._sessions.close(loaded.record.id, "its model is not loaded any more")

        task = asyncio.create_task(close(), name=f"control:close-model:{loaded.record.id}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _nothing() -> None:
    """Loading a model is no act of its request: the session is the service's own."""


def _tensors(endpoints: Mapping[str, Endpoint]) -> list[TensorMetadata]:
    return [
        TensorMetadata(name=name, datatype=each.datatype, shape=[-1] if each.shape is None else list(each.shape))
        for name, each in endpoints.items()
    ]
