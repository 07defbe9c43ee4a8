"""The tasks of one run over agents: what ssh and Slurm have in common.

An engine says how an agent is started (`AgentSpec`) and which task goes to which (`place`). Agents are started before
an attempt, all at once; one that is lost takes its tasks with it, which end as if they had been killed. One that is
lost is started anew before its tasks start again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from tenfold.cli.children import KEPT_LINES
from tenfold.launchers import agent_protocol as protocol
from tenfold.launchers.interface import LaunchRefusedError
from tenfold.launchers.working_dir import BEGIN_S, WorkingDir
from tenfold_core.access.tokens import new_token
from tenfold_core.address import join_address
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from tenfold.launchers.agent_pipe import AgentLine, Heard
    from tenfold.launchers.interface import LaunchRequest
    from tenfold.launchers.working_dir import RsyncTarget

log = logging.getLogger(__name__)

#: Seconds for all agents to end, which each has a bound for.
CLOSE_S = 60.0
#: Seconds for an agent to be there, and for an answer.
CONNECT_S, ANSWER_S = 60.0, 30.0
#: The exit code of tasks whose host is lost: nobody knows what became of them, and they are not to go on.
_KILLED = -9
#: By any of these a task shows who it is; without one the run makes a token of its own.
_CREDENTIALS = ("TENFOLD_TOKEN", "TENFOLD_TOKEN_FILE", "TENFOLD_TLS_CERT")


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How an agent is started."""

    #: What people know it by.
    name: str
    #: `connect(heard, lost, say)`, as AgentPipe has them, starts it. Raises OSError where that cannot be.
    connect: Callable[[Heard, Callable[[str], None], Callable[[str], None]], AgentLine]
    #: What tasks reach it by; None: by what the agent says of its host.
    address: str | None = None
    #: Where rsync may send the working directory, if the host has it.
    rsync: RsyncTarget | None = None


@dataclass(slots=True, eq=False)
class _Agent:
    """One agent, as it is now. Guarded by the condition of the AgentProcesses."""

    spec: AgentSpec
    line: AgentLine | None = None
    host: str = ""
    address: str = ""
    #: Whether it has rsync.
    rsync: bool = False
    begun: bool = False
    ports: list[int] | None = None
    cleared: bool = False
    #: Why it is not there; empty while it is, or has not been started.
    lost: str = ""
    tasks: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Task:
    agent: _Agent
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    #: None while it runs.
    exit_code: int | None = None
    ended_at: float = 0.0
    error: dict[str, str] | None = None
    pid: int | None = None


def _have_ports(agents: Sequence[_Agent]) -> bool:
    return all(agent.ports or agent.lost for agent in agents)


class AgentProcesses:
    """See TaskProcesses."""

    def __init__(
        self,
        request: LaunchRequest,
        echo: Callable[[str, str], None],
        specs: Sequence[AgentSpec],
        place: Callable[[Sequence[str]], Mapping[str, str]],
        *,
        sync: bool = False,
    ) -> None:
        """`place(names of agents that are there)` gives the agent of each task; it raises ValueError where they are too
        few. `sync`: the working directory is sent to each agent, and not looked for there."""
        self._request, self._echo, self._place = request, echo, place
        self._folder = WorkingDir(request, sync=sync)
        self._changed = threading.Condition()
        self._agents = {spec.name: _Agent(spec) for spec in specs}
        self._tasks: dict[str, _Task] = {}
        self._placed: Mapping[str, str] = {}
        self._token: str | None = None
        self._closing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with self._changed:
            self._closing = True
            lines = [agent.line for agent in self._agents.values() if agent.line is not None]
        self._folder.close()
        closers = [threading.Thread(target=line.close, name="close-agent") for line in lines]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join(CLOSE_S)

    def set_agents(self, specs: Sequence[AgentSpec]) -> None:
        """The agents, where they were not known before."""
        self._agents = {spec.name: _Agent(spec) for spec in specs}

    @property
    def _share(self) -> int:
        """How many tasks share the cores of a host, about."""
        return max(1, sum(self._request.jobs.values()) // len(self._agents))

    # -- before an attempt

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        there = self._connect(list(self._agents.values()))
        try:
            self._placed = self._place([agent.spec.name for agent in there])
        except ValueError as error:
            lost = [f"{agent.spec.name}: {agent.lost}" for agent in self._agents.values() if agent.lost]
            raise LaunchRefusedError("; ".join([str(error), *lost])) from None
        wanted = [f"{job}/{index}" for job, size in jobs.items() for index in range(size)]
        counts: dict[str, int] = {}
        for task in wanted:
            counts[self._placed[task]] = counts.get(self._placed[task], 0) + 1
        with self._changed:
            ports = {name: iter(numbers) for name, numbers in self._ports(counts).items()}
        found: dict[str, list[str]] = {job: [] for job in jobs}
        for task in wanted:
            agent = self._agents[self._placed[task]]
            address = join_address(agent.address, next(ports[agent.spec.name]))
            found[task.partition("/")[0]].append(address)
        hosts = {self._agents[name].address for name in counts}
        if self._token is None and not all(is_loopback(host) for host in hosts):
            self._token = new_token()
        shown = ", ".join(f"{task} on {name}" for task, name in list(self._placed.items())[:20])
        self._say(f"{shown}{', …' if len(self._placed) > 20 else ''}")
        return found

    def _ports(self, counts: Mapping[str, int]) -> dict[str, list[int]]:
        """So many ports of each agent, under the lock. Agents of one address do not know of each other: those that give
        another one's port are asked again."""
        end = time.monotonic() + ANSWER_S
        found: dict[str, list[int]] = {}
        while missing := [self._agents[name] for name in counts if name not in found]:
            for agent in missing:
                agent.ports = None
                assert agent.line is not None
                agent.line.send("ports", count=counts[agent.spec.name])
            self._changed.wait_for(partial(_have_ports, missing), end - time.monotonic())
            for agent in missing:
                if agent.ports is None:
                    raise LaunchRefusedError(f"{agent.spec.name}: {agent.lost or 'it gave no ports'}")
                beside = [ports for name, ports in found.items() if self._agents[name].address == agent.address]
                if set(agent.ports).isdisjoint(chain.from_iterable(beside)):
                    found[agent.spec.name] = agent.ports
        return found

    def _connect(self, agents: Sequence[_Agent]) -> list[_Agent]:
        """Starts the agents that are not there, and waits for them; those that are. Raises LaunchRefusedError where
        none is."""
        missing = [agent for agent in agents if agent.line is None or agent.lost]
        for agent in missing:
            self._start_agent(agent)
        self._wait_for(missing, lambda agent: bool(agent.host), CONNECT_S, "it did not answer")
        for agent in (each for each in missing if not each.lost):
            assert agent.line is not None
            self._folder.begin(agent.line, agent.spec.rsync if agent.rsync else None, self._share)
        self._wait_for(missing, lambda agent: agent.begun, BEGIN_S, "the working directory was not there in time")
        there = [agent for agent in agents if not agent.lost]
        if not there:
            raise LaunchRefusedError("; ".join(f"{agent.spec.name}: {agent.lost}" for agent in agents[:5]))
        for agent in agents:
            if agent.lost:
                self._say(f"{agent.spec.name} is left out: {agent.lost}")
        return there

    def _start_agent(self, agent: _Agent) -> None:
        if agent.line is not None:
            agent.line.close()
        with self._changed:
            agent.lost, agent.host, agent.begun = "", "", False
        try:
            agent.line = agent.spec.connect(
                lambda kind, message: self._heard(agent, kind, message),
                lambda why: self._lost(agent, why),
                lambda text: self._say(f"{agent.spec.name}: {text}"),
            )
        except OSError as error:
            agent.lost = f"its agent cannot be started: {error.strerror or error}"

    def _wait_for(
        self, agents: Sequence[_Agent], is_done: Callable[[_Agent], bool], seconds: float, otherwise: str
    ) -> None:
        with self._changed:
            self._changed.wait_for(lambda: all(is_done(agent) or agent.lost for agent in agents), seconds)
            late = [agent for agent in agents if not is_done(agent) and not agent.lost]
            for agent in late:
                agent.lost = f"{otherwise} within {seconds:g} s"
        for agent in late:
            if agent.line is not None:
                agent.line.end(agent.lost)

    # -- tasks

    def start(
        self,
        name: str,
        program: Sequence[str],
        *,
        stage: int = 0,
        env: Mapping[str, str] | None = None,
        interpreter: Sequence[str] = (),
    ) -> None:
        agent = self._agents[self._placed[name]]
        if agent.lost:
            # the others have its address: it comes back there, or not at all
            try:
                self._connect([agent])
            except LaunchRefusedError as error:
                log.info("%s: %s", name, error)
        # an engine may take back what it gives, and says so with SIGTERM (train/monitored_session.py)
        variables = {"TENFOLD_SAVE_AT_SIGTERM": "1", **(env or {})}
        if self._token is not None and not any(variables.get(each) for each in _CREDENTIALS):
            variables["TENFOLD_TOKEN"] = self._token
        with self._changed:
            task = self._tasks[name] = _Task(agent)
            if agent.lost:
                self._end(name, task, _KILLED, _host_lost(agent))
                return
            agent.tasks.add(name)
        assert agent.line is not None
        agent.line.send(
            "start", name=name, program=list(program), interpreter=list(interpreter), stage=stage, env=variables
        )

    def terminate(self, name: str) -> None:
        self._tell(name, "terminate")

    def kill(self, name: str) -> None:
        self._tell(name, "kill")

    def _tell(self, name: str, kind: str) -> None:
        task = self._tasks[name]
        if task.exit_code is None and task.agent.line is not None:
            task.agent.line.send(kind, name=name)

    def wait_for_exit(
        self, names: Sequence[str], timeout: float | None = None, *, unless: Callable[[], bool] | None = None
    ) -> tuple[str, int] | None:
        def first() -> str | None:
            done = [name for name in names if self._tasks[name].exit_code is not None]
            return min(done, key=lambda name: self._tasks[name].ended_at, default=None)

        with self._changed:
            self._changed.wait_for(lambda: first() is not None or (unless is not None and unless()), timeout)
            name = first()
            code = None if name is None else self._tasks[name].exit_code
            return None if name is None or code is None else (name, code)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def last_lines(self, name: str, count: int) -> list[str]:
        with self._changed:
            return list(self._tasks[name].lines)[-count:]

    def error(self, name: str) -> dict[str, str] | None:
        return self._tasks[name].error

    def place(self, name: str) -> dict[str, Any]:
        task = self._tasks[name]
        return {"host": task.agent.host or task.agent.spec.name, "pid": task.pid}

    def clear(self) -> None:
        with self._changed:
            there = [agent for agent in self._agents.values() if agent.begun and not agent.lost]
            for agent in there:
                agent.cleared = False
                assert agent.line is not None
                agent.line.send("clear")
            self._changed.wait_for(lambda: all(agent.cleared or agent.lost for agent in there), ANSWER_S)

    # -- on the threads of the lines

    def _heard(self, agent: _Agent, kind: str, message: protocol.Message) -> None:
        if kind == "line":
            self._echo(message["name"], message["text"])
        with self._changed:
            task = self._tasks.get(message.get("name", ""))
            match kind:
                case "ready":
                    self._ready(agent, message)
                case "room" if agent.spec.rsync is not None:
                    self._send_folder(agent, agent.spec.rsync, message["path"])
                case "begun":
                    agent.begun = True
                case "failed":
                    agent.lost = message["why"]
                case "ports":
                    agent.ports = message["numbers"]
                case "cleared":
                    agent.cleared = True
                case "line" if task is not None:
                    task.lines.append(message["text"])
                case "started" if task is not None:
                    task.pid = message["pid"]
                case "refused" if task is not None:
                    self._end(message["name"], task, 1, {"type": "OSError", "message": message["why"]})
                case "ended" if task is not None:
                    self._end(message["name"], task, message["code"], message["error"])
            self._changed.notify_all()

    def _ready(self, agent: _Agent, message: protocol.Message) -> None:
        if message["protocol"] != protocol.PROTOCOL:
            agent.lost = (
                f"it has Tenfold {message['version']}, whose agent speaks protocol {message['protocol']}; this one "
                f"speaks {protocol.PROTOCOL}. Install the same version on both"
            )
        else:
            agent.host, agent.address = message["host"], agent.spec.address or message["address"]
            agent.rsync = message["rsync"]

    def _send_folder(self, agent: _Agent, target: RsyncTarget, path: str) -> None:
        """Under the condition."""
        assert agent.line is not None
        line = agent.line

        def failed(why: str) -> None:
            with self._changed:
                agent.lost = agent.lost or why
                self._changed.notify_all()
            line.end(why)

        self._folder.send(line, target, path, self._share, failed)

    def _lost(self, agent: _Agent, why: str) -> None:
        with self._changed:
            agent.lost = agent.lost or why
            tasks = [(name, self._tasks[name]) for name in agent.tasks]
            for name, task in tasks:
                if task.exit_code is None:
                    self._end(name, task, _KILLED, _host_lost(agent))
            self._changed.notify_all()
        if tasks and not self._closing:
            self._say(f"{agent.spec.name} is lost: {why}")

    def _end(self, name: str, task: _Task, code: int, error: dict[str, str] | None) -> None:
        """Under the condition."""
        task.exit_code, task.error, task.ended_at = code, error, time.monotonic()
        task.agent.tasks.discard(name)

    def _say(self, text: str) -> None:
        self._echo("run", text)


def _host_lost(agent: _Agent) -> dict[str, str]:
    return {"type": "HostLost", "message": f"{agent.spec.name}: {agent.lost}"}
