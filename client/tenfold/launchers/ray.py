"""Tasks on a Ray cluster: an actor each, in placement groups, so that Ray places, accounts and replaces.

The actor starts an agent (agent.py) on its node and carries its messages; the agent dies with it. A node that is lost
takes its actors along; Ray places their bundles on other nodes, where the tasks of the next attempt find them. In a job
of `ray job submit`, or in a shell, it is the same. Ray is imported where a run is opened, and not before.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import threading
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tenfold.launchers import agent_protocol as protocol
from tenfold.launchers.agent_processes import AgentProcesses, AgentSpec
from tenfold.launchers.interface import LaunchRefusedError, Resources, checked_options, choice
from tenfold.launchers.placing import own_agents
from tenfold.launchers.ray_actor import END_S, AgentActor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from tenfold.launchers.agent_pipe import Heard
    from tenfold.launchers.interface import LaunchRequest

#: Seconds for Ray to find room, and to answer a call.
_PLACE_S, _ANSWER_S = 60.0, 30.0
#: Seconds between two tries to start actors on a node in place of one that has died.
_AGAIN_S = 1.0
#: Set in the jobs of `ray job submit`.
_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
#: Set in actors whose environment could not be set up before.
_TRY = "TENFOLD_RAY_TRY"


class RayLauncher:
    """See Launcher."""

    name: ClassVar[str] = "ray"
    summary: ClassVar[str] = "actors of a Ray cluster"
    options: ClassVar[Mapping[str, str]] = {
        "address": "the cluster, as ray.init has it (default: RAY_ADDRESS, else the one of this machine)",
        "place": "spread (default) or pack: how workers go on nodes; parameter servers are spread",
        "python": "the interpreter there that has Tenfold (default: the one that runs the actors)",
        "patience": "seconds to wait for room (default: 60)",
    }

    def missing(self) -> str | None:
        found = importlib.util.find_spec("ray") is not None
        return None if found else 'Ray is not installed: pip install "tenfold[ray]"'

    def open(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> RayProcesses:
        if (why := self.missing()) is not None:
            raise LaunchRefusedError(why)
        options = checked_options(self, request.options)
        choice(self, options, "place", ("spread", "pack"))
        if not options.get("patience", "60").isdecimal():
            raise LaunchRefusedError(f"ray: patience={options['patience']} is not a number of seconds")
        return RayProcesses(request, echo)


class RayProcesses(AgentProcesses):
    """The tasks of a run as actors. Entering it connects to Ray and takes the placement groups."""

    def __init__(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> None:
        super().__init__(request, echo, [], partial(own_agents, request.jobs))
        self._groups: list[Any] = []
        self._connected = False
        #: Whether all tasks had their actors once.
        self._began = False
        #: Whether what the job needs on its nodes (`ray job submit --working-dir`) could not be set up, and is again.
        self._sets_up_again = False
        #: Ray's dashboard, where it has one that is known here.
        self._dashboard = ""

    def __enter__(self) -> Self:
        import ray
        from ray.job_config import JobConfig

        try:
            if not ray.is_initialized():
                address = self._request.options.get("address") or os.environ.get("RAY_ADDRESS") or "auto"
                _require_answer(address)
                job = {"tenfold run": self._request.run, "tenfold dashboard": self._request.page}
                context = ray.init(
                    address=address,
                    # `ray job submit` has described its job itself
                    job_config=None if _JOB in os.environ else JobConfig(metadata=job),
                    logging_level="error",
                    configure_logging=False,
                    log_to_driver=False,
                )
                self._connected = True
                if shown := getattr(context, "dashboard_url", None):
                    self._dashboard = f"http://{shown}"
                    self._say(f"Ray's dashboard: {self._dashboard}")
            self.set_agents(self._specs())
        except BaseException as error:
            self._leave()
            if isinstance(error, ConnectionError | RuntimeError | ValueError) and not isinstance(
                error, LaunchRefusedError
            ):
                raise LaunchRefusedError(f"Ray: {str(error).strip().splitlines()[0]}") from error
            raise
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, tb)
        finally:
            self._leave()

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        """As TaskProcesses has it. A bundle of a node that has died has it for its place until Ray finds another: an
        actor that is lost with it is started again, for as long as there is patience. Before, what a node could not set
        up is tried once more."""
        end = time.monotonic() + int(self._request.options.get("patience", _PLACE_S))
        while True:
            try:
                found = super().addresses(jobs)
            except LaunchRefusedError as error:
                if not self._began and self._have_no_environment() and not self._sets_up_again:
                    self._sets_up_again = True
                    self._say(f"{error}; trying again")
                elif self._began and time.monotonic() <= end:
                    time.sleep(_AGAIN_S)
                else:
                    raise
            else:
                self._began = True
                return found

    def place(self, name: str) -> dict[str, Any]:
        line = self._agents[name].line
        found = super().place(name)
        if self._dashboard and isinstance(line, RayLine) and line.actor:
            found["page"] = f"{self._dashboard}/#/actors/{line.actor}"
        return found

    def _leave(self) -> None:
        import ray
        from ray.util import remove_placement_group

        for group in self._groups:
            with contextlib.suppress(Exception):  # a cluster that is gone has none
                remove_placement_group(group)
        self._groups = []
        if self._connected:
            self._connected = False
            ray.shutdown()

    def _specs(self) -> list[AgentSpec]:
        """The placement groups, and an agent in each bundle. Raises LaunchRefusedError where Ray has no room."""
        how = self._request.options.get("place", "spread").upper()
        found: list[AgentSpec] = []
        for jobs, strategy in (
            ({job: size for job, size in self._request.jobs.items() if job == "ps"}, "SPREAD"),
            ({job: size for job, size in self._request.jobs.items() if job != "ps"}, how),
        ):
            tasks = [(job, index) for job, size in jobs.items() for index in range(size)]
            if tasks:
                bundles = [bundle_of(self._request.resources.get(job)) for job, _ in tasks]
                group = self._placed_group(bundles, strategy)
                for number, (job, index) in enumerate(tasks):
                    shown = f"tenfold {job}/{index} of {self._request.run} {self._request.page}".rstrip()
                    python = self._request.options.get("python")
                    connect = partial(self._line, group, number, bundles[number], python, shown)
                    found.append(AgentSpec(f"{job}/{index}", connect))
        return found

    def _line(self, *arguments: Any) -> RayLine:
        return RayLine(self._sets_up_again, *arguments)

    def _have_no_environment(self) -> bool:
        lines = [agent.line for agent in self._agents.values()]
        return any(isinstance(line, RayLine) and line.has_no_environment for line in lines)

    def _placed_group(self, bundles: list[dict[str, float]], strategy: str) -> Any:
        import ray
        from ray.util import placement_group

        group = placement_group(bundles, strategy=strategy, name=f"tenfold-{self._request.run}-{uuid.uuid4().hex[:8]}")
        self._groups.append(group)
        patience = int(self._request.options.get("patience", _PLACE_S))
        if not group.wait(patience):
            have = {name: size for name, size in ray.cluster_resources().items() if name in ("CPU", "GPU", "memory")}
            raise LaunchRefusedError(
                f"Ray has no room for {len(bundles)} tasks of {bundles[0]} within {patience} s; the cluster has {have}"
            )
        return group


class RayLine:
    """An agent at the other end of an actor. See AgentLine."""

    def __init__(
        self,
        sets_up_again: bool,
        group: Any,
        number: int,
        bundle: Mapping[str, float],
        python: str | None,
        shown: str,
        heard: Heard,
        lost: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self._heard, self._lost, self._why = heard, lost, ""
        strategy = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=number)
        actor = ray.remote(AgentActor).options(
            num_cpus=bundle.get("CPU", 0),
            num_gpus=bundle.get("GPU", 0),
            memory=bundle.get("memory"),
            scheduling_strategy=strategy,
            max_concurrency=4,
            name=None,
            # a node remembers for ten minutes what it could not set up, by all that it was asked for
            runtime_env={"env_vars": {_TRY: "2"}} if sets_up_again else None,
        )
        self._actor = actor.remote(python, shown)
        #: Its id, by which Ray shows it; empty until it runs.
        self.actor = ""
        self.has_no_environment = False
        self._thread = threading.Thread(target=self._read, name="agent:ray", daemon=True)
        self._thread.start()

    def send(self, kind: str, **members: Any) -> None:
        with contextlib.suppress(Exception):  # what is sent to an actor that is gone is lost
            self._actor.write.remote(protocol.written(kind, **members))

    def send_slowly(self, kind: str, **members: Any) -> bool:
        import ray

        try:
            ray.get(self._actor.write.remote(protocol.written(kind, **members)), timeout=_ANSWER_S)
        except Exception:  # of Ray's many kinds: the actor is gone, the node is, no answer came
            return False
        return True

    def end(self, why: str) -> None:
        import ray

        self._why = self._why or why
        with contextlib.suppress(Exception):
            ray.kill(self._actor)

    def close(self) -> None:
        import ray

        with contextlib.suppress(Exception):
            ray.get(self._actor.close.remote(), timeout=END_S)
        self.end("it was closed")
        self._thread.join(_ANSWER_S)

    def _read(self) -> None:
        import ray
        from ray.exceptions import RayError, RuntimeEnvSetupError

        why = "its agent has ended"
        try:
            self.actor = ray.get(self._actor.actor_id.remote())
            while (lines := ray.get(self._actor.read.remote())) is not None:
                for line in lines:
                    found = protocol.read(line)
                    if found is not None and found[0] != "pong":
                        self._heard(*found)
        except RayError as error:
            why, self.has_no_environment = reason_of(error), isinstance(error, RuntimeEnvSetupError)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        self._lost(self._why or why)


def reason_of(error: Exception) -> str:
    """One line of what Ray tells in many: what was raised, where it shows a traceback, else what it says of a node."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if any(line.endswith("Traceback (most recent call last):") for line in said):
        return f"{said[0]} {said[-1]}"
    return next((line for line in said if "node" in line.lower()), said[0])


def _require_answer(address: str) -> None:
    """Raises LaunchRefusedError where nobody listens at "host:port"; Ray would take minutes to say so."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
        except OSError as error:
            raise LaunchRefusedError(f"Ray: nobody answers at {address}: {error.strerror or error}") from None


def bundle_of(resources: Resources | None) -> dict[str, float]:
    """What Ray sets aside for one task: a core, where nothing else was asked for."""
    needed = resources or Resources()
    found: dict[str, float] = {"CPU": needed.cores or 1}
    if needed.memory is not None:
        found["memory"] = needed.memory
    if needed.gpus:
        found["GPU"] = needed.gpus
    return found
