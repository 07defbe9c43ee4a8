"""The interface of launchers: what one is given, what it gives back, and how it refuses.

docs/launchers.md tells how another one is written; tests/launchers/conformance.py is what it has to pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType


class LaunchRefusedError(RuntimeError):
    """The engine does not take the run, or a task of it. The message is one line: what it said, and what would help."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What each task of a job needs."""

    #: Processor cores; None leaves it to the engine.
    cores: int | None = None
    #: Bytes; None leaves it to the engine.
    memory: int | None = None
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One run, for an engine."""

    #: A name by which people find the run at the engine: letters, digits and dashes.
    run: str
    #: Job → number of tasks.
    jobs: Mapping[str, int]
    #: An absolute path. Tasks begin in it.
    working_dir: str
    #: Files that each host must have: the program, as a rule.
    files: Sequence[str] = ()
    #: By job; a job that is missing here takes what the engine gives.
    resources: Mapping[str, Resources] = field(default_factory=dict)
    #: The engine's own options, which the launcher has checked (`Launcher.options`).
    options: Mapping[str, str] = field(default_factory=dict)
    #: Where people watch it: an address of a control service's dashboard; empty without one.
    page: str = ""


class TaskProcesses(Protocol):
    """The tasks of one run on an engine; a context manager, which leaves nothing running and no file behind.

    A task is known by its name, "worker/0". All methods but `wake` belong to one thread. What they start goes on beside
    it; only `wait_for_exit` blocks for long.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        """Job → "host:port" of each of its tasks, free now and reachable from the others. Asked before the tasks start
        for the first time, and again before all of them start once more. Blocks, within a bound. Raises
        LaunchRefusedError."""
        ...

    def start(
        self,
        name: str,
        program: Sequence[str],
        *,
        stage: int = 0,
        env: Mapping[str, str] | None = None,
        interpreter: Sequence[str] = (),
    ) -> None:
        """Starts `python PROGRAM…` as that task, also in place of one that has ended. `env` is added to the engine's
        environment and may hold secrets: it goes neither on a command line nor to where others can read it. Tasks of a
        later `stage` are stopped before those of an earlier one. A task that the engine does not start ends, with a
        code that is not 0 and an error that says why."""
        ...

    def terminate(self, name: str) -> None:
        """SIGTERM to the task; one that has ended is no error."""
        ...

    def kill(self, name: str) -> None:
        """Ends the task and all that it started; one that has ended is no error."""
        ...

    def wait_for_exit(
        self, names: Sequence[str], timeout: float | None = None, *, unless: Callable[[], bool] | None = None
    ) -> tuple[str, int] | None:
        """Waits until one of `names` has ended: its name and exit code, negative where a signal ended it. None after
        `timeout` seconds, and once `unless`, asked again after each `wake`, is true."""
        ...

    def wake(self) -> None:
        """Lets `wait_for_exit` ask its `unless` again. From any thread."""
        ...

    def last_lines(self, name: str, count: int) -> list[str]:
        """The newest lines of the task, `count` at most."""
        ...

    def error(self, name: str) -> dict[str, str] | None:
        """What the ended task raised (runs/error_file.py), or why the engine ended it; None where nothing is known."""
        ...

    def place(self, name: str) -> dict[str, Any]:
        """Where the task runs, for a report: its `host`; where they are known its `pid`, and the `page` at which the
        engine shows it, an http or https URL."""
        ...

    def clear(self) -> None:
        """Ends what tasks have left, where none runs any more. May block for some seconds."""
        ...


class Launcher(Protocol):
    """An engine. Making one, and asking it for anything but `missing` and `open`, imports nothing of the engine."""

    #: As `--on` has it.
    name: ClassVar[str]
    #: One line for `tenfold launchers`.
    summary: ClassVar[str]
    #: Its own options, as `-o NAME=VALUE` has them: name → what it means.
    options: ClassVar[Mapping[str, str]]

    def missing(self) -> str | None:
        """Why it cannot be used here, and what would help; None where it can."""
        ...

    def open(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> TaskProcesses:
        """Takes a run. `echo(task, line)` gets each line of a task, on any thread; the task "run" stands for the engine
        itself. Raises LaunchRefusedError for options that it does not take; what the engine refuses is raised on
        entering the result, or by `addresses`."""
        ...


def checked_options(launcher: Launcher, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a request. Raises LaunchRefusedError for one that the launcher does not have."""
    for name in options:
        if name not in launcher.options:
            known = ", ".join(launcher.options) or "none"
            raise LaunchRefusedError(f"{launcher.name} has no option {name!r}; it has {known}")
    return dict(options)


def choice(launcher: Launcher, options: Mapping[str, str], name: str, values: Sequence[str]) -> str:
    """An option that is one of `values`, the first by default. Raises LaunchRefusedError."""
    value = options.get(name, values[0])
    if value not in values:
        raise LaunchRefusedError(f"{launcher.name}: {name}={value} is not one of {', '.join(values)}")
    return value
