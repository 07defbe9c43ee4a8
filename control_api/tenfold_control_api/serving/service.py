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
from typing import TYPE_CHECKING

from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving import model_step, saved
from tenfold_control_api.serving.beginning import Beginning
from tenfold_control_api.serving.folder import ModelsFolder
from tenfold_control_api.serving.loading import Loader
from tenfold_control_api.serving.shapes import ModelMetadata, ModelView, TensorMetadata
from tenfold_core.help_links import runtime_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.serving.following import Follower
    from tenfold_control_api.serving.loading import Loaded
    from tenfold_control_api.serving.saved import Endpoint
    from tenfold_control_api.serving.shapes import ModelRegistration
    from tenfold_control_api.session_service import SessionService
    from tenfold_control_api.steps import Answer, InferenceStep

log = logging.getLogger(__name__)

#: Seconds between two looks for a newer version of a model that is asked for.
_LOOK_S = 2.0
#: Seconds between two looks for what a training has saved.
_FOLLOW_S = 0.1
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


class ModelService:
    """The models that this service serves."""

    def __init__(self, sessions: SessionService, settings: Settings, clock: Clock = time.monotonic) -> None:
        self._sessions, self._settings, self._clock = sessions, settings, clock
        self._folder = None
        if settings.models_folder is not None:
            self._folder = ModelsFolder(settings.models_folder, settings.trainings_folder)
        self._loader = Loader(sessions, settings)
        self._loaded: dict[str, Loaded] = {}
        #: One load of a model at a time.
        self._locks: dict[str, asyncio.Lock] = {}
        #: Held by who loads a model that is loaded: there is memory for one second copy, not for one of each model.
        self._second = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._beginning = Beginning(self._waiting, self._ready)

    def start(self) -> None:
        """From now on the models that follow a training are loaded without being asked for."""
        if self._folder is not None:
            self._beginning.start()

    async def stop(self) -> None:
        """Closes the sessions of all models; bounded by `settings.grace`."""
        await self._beginning.stop()
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
            follows=registration.follows,
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
                "following": None if loaded.follower is None else loaded.follower.view(),
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
            parameters={"signature": found.name, "signatures": list(loaded.signatures), **_following(loaded)},
        )

    def followers(self) -> Iterator[tuple[str, Follower]]:
        """Those of the loaded models that follow a training, by name. Never blocks."""
        return ((name, each.follower) for name, each in self._loaded.items() if each.follower is not None)

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
        view = (await self.view(name)).model_copy(update={"following": None})
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
                async with loaded.of_one_moment() as told:
                    run = functools.partial(model_step.run, step, found, name, loaded.version, told)
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

    async def _waiting(self) -> list[str]:
        """Models that follow a training and are not loaded. Raises `invalid-model` where nobody can tell."""
        following = await asyncio.to_thread(self._models().following)
        return [name for name in following if name not in self._loaded]

    def _models(self) -> ModelsFolder:
        if self._folder is None:
            raise ApiError(
                "no-models",
                "this service serves no models: start it with `tenfold control --models DIR`.",
            )
        return self._folder

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _ready(self, name: str, version: str | None = None) -> Loaded:
        """The version that is served. Raises `no-such-version` if another one is asked for."""
        loaded = await self._newest(name)
        if version not in (None, loaded.version):
            raise ApiError(
                "no-such-version",
                f"model {name!r} is served in version {loaded.version}, the newest that can be loaded, and in no "
                f"other; {version!r} was asked for.",
            )
        return loaded

    async def _newest(self, name: str) -> Loaded:
        """The newest version that can be loaded; an older one goes on while a newer one cannot."""
        loaded = self._loaded.get(name)
        # who finds another one being loaded goes on with this one
        if loaded is not None and (self._clock() - loaded.looked < _LOOK_S or self._lock(name).locked()):
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

    async def _follow(self, name: str, loaded: Loaded, follower: Follower) -> None:
        """Until the model is not loaded any more."""
        while True:
            await asyncio.sleep(_FOLLOW_S)
            try:
                newer = await follower.look()
                if newer is not None:
                    log.info("model %s reads %s anew: no increment leads there", name, newer.whole)
                    await self._replace(name, loaded)
            except ApiError as error:
                log.warning("model %s is loaded again: %s", name, error)
                if self._loaded.get(name) is loaded:
                    self._retire(name)
            except Exception:
                log.exception("model %s could not look for increments; it tries again", name)
            if self._loaded.get(name) is not loaded:
                return

    async def _replace(self, name: str, loaded: Loaded) -> None:
        """Loads the same version again, beside the one that goes on meanwhile, and waits until that one is closed. What
        cannot be loaded is tried again."""
        async with self._second:
            async with self._lock(name):
                if self._loaded.get(name) is not loaded:
                    return
                try:
                    fresh = await self._load(name, loaded.registration, loaded.version, loaded.folder)
                except ApiError as error:
                    log.warning("model %s goes on as it is: %s", name, error)
                    return
                self._retire(name)
                self._loaded[name] = fresh
            # once its requests have ended
            await loaded.closed.wait()

    async def _load(self, name: str, registration: ModelRegistration, version: str, path: str) -> Loaded:
        training = await asyncio.to_thread(self._models().training, registration)
        fresh = await self._loader.load(name, registration, version, path, training, self._clock())
        if fresh.follower is not None:
            following = self._follow(name, fresh, fresh.follower)
            fresh.loop = asyncio.create_task(following, name=f"control:follow:{name}")
        return fresh

    def _retire(self, name: str) -> None:
        """The model is not loaded any more. Never blocks."""
        loaded = self._loaded.pop(name, None)
        if loaded is None:
            return
        if loaded.loop is not None and loaded.loop is not asyncio.current_task():
            loaded.loop.cancel()
            self._closing.add(loaded.loop)
            loaded.loop.add_done_callback(self._closing.discard)
        loaded.is_over = True
        self._close_if_over(loaded)

    def _close_if_over(self, loaded: Loaded) -> None:
        if not loaded.is_over or loaded.users:
            return
        loaded.is_over = False

        async def close() -> None:
            try:
                with contextlib.suppress(ApiError):  # it is gone already
                    await self._sessions.close(loaded.record.id, "its model is not loaded any more")
            finally:
                loaded.closed.set()

        task = asyncio.create_task(close(), name=f"control:close-model:{loaded.record.id}")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _following(loaded: Loaded) -> dict[str, object]:
    """What the metadata of a model that follows a training says of that."""
    return {} if loaded.follower is None else {"following": loaded.follower.view().model_dump()}


def _tensors(endpoints: Mapping[str, Endpoint]) -> list[TensorMetadata]:
    return [
        TensorMetadata(name=name, datatype=each.datatype, shape=[-1] if each.shape is None else list(each.shape))
        for name, each in endpoints.items()
    ]
