"""Tasks as processes of this machine, on free ports of loopback."""

from __future__ import annotations

import contextlib
import logging
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tenfold.cli.children import Children
from tenfold.cli.scratch import scratch_folder
from tenfold.launchers.interface import checked_options
from tenfold.runs.descent import Descent
from tenfold.runs.error_file import ERROR_FILE, read_error
from tenfold_core.blas_env import thread_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from tenfold.launchers.interface import LaunchRequest

log = logging.getLogger(__name__)


class LocalProcesses:
    """See TaskProcesses. The children end with this process, however that ends (cli/child.py)."""

    def __init__(
        self,
        echo: Callable[[str, str], None],
        tasks: int,
        *,
        working_dir: str | None = None,
        errors: Path | None = None,
        whole: bool = False,
    ) -> None:
        """`tasks` share the cores of this machine, and begin in `working_dir`, or where this process is. `errors`: a
        folder in which failing programs leave what failed; one of this object's own without. `whole`: this process is
        there for the run alone, and `clear` ends all that has descended from it (runs/descent.py)."""
        self.children = Children(echo)
        self._share = thread_share(tasks)
        self._working_dir, self._errors, self._whole = working_dir, errors, whole
        self._descent: Descent | None = None
        self._held = ExitStack()
        self._host = socket.gethostname()

    def __enter__(self) -> Self:
        if self._errors is None:
            self._errors = self._held.enter_context(scratch_folder("run"))
        self._held.enter_context(self.children)
        if self._whole:
            self._descent = self._held.enter_context(contextlib.closing(Descent(self.children.pids)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._held.__exit__(kind, error, tb)

    def addresses(self, jobs: Mapping[str, int]) -> dict[str, list[str]]:
        ports = iter(free_ports(sum(jobs.values())))
        return {job: [f"localhost:{next(ports)}" for _ in range(size)] for job, size in jobs.items() if size}

    def start(
        self,
        name: str,
        program: Sequence[str],
        *,
        stage: int = 0,
        env: Mapping[str, str] | None = None,
        interpreter: Sequence[str] = (),
    ) -> None:
        if self.children.knows(name):
            self.children.forget(name)
        file = self._error_file(name)
        file.unlink(missing_ok=True)
        # a port for links is one task's, and all of these are on this machine
        variables = {"TENFOLD_LINK_PORT": "", **self._share, **(env or {}), ERROR_FILE: str(file)}
        self.children.start(name, program, stage=stage, env=variables, interpreter=interpreter, cwd=self._working_dir)

    def terminate(self, name: str) -> None:
        self.children.terminate(name)

    def kill(self, name: str) -> None:
        self.children.kill(name)

    def wait_for_exit(
        self, names: Sequence[str], timeout: float | None = None, *, unless: Callable[[], bool] | None = None
    ) -> tuple[str, int] | None:
        return self.children.wait_for_exit(names, timeout, unless=unless)

    def wake(self) -> None:
        self.children.wake()

    def last_lines(self, name: str, count: int) -> list[str]:
        return self.children.last_lines(name, count)

    def error(self, name: str) -> dict[str, str] | None:
        return read_error(self._error_file(name))

    def place(self, name: str) -> dict[str, Any]:
        return {"host": self._host, "pid": self.children.pid(name)}

    def clear(self) -> None:
        if self._descent is not None and (count := self._descent.end()):
            log.info("%d processes that the programs had left were killed", count)

    def _error_file(self, name: str) -> Path:
        assert self._errors is not None
        return self._errors / f"{name.replace('/', '-')}.json"


class LocalLauncher:
    """See Launcher."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "processes of this machine"
    options: ClassVar[Mapping[str, str]] = {}

    def missing(self) -> str | None:
        return None

    def open(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> LocalProcesses:
        checked_options(self, request.options)
        return LocalProcesses(echo, sum(request.jobs.values()), working_dir=request.working_dir)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """So many ports of that address of this machine that nobody has now, all different; of "" on every address."""
    with ExitStack() as held:
        # all sockets stay open until the end, so that the ports differ
        sockets = [held.enter_context(socket.create_server((host, 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]
