"""What starts the processes of a run: the interface, and `LocalSupervisors`, which starts a supervisor on this machine.

The supervisor (`python -m tenfold.runs.supervise FOLDER`) starts the tasks and reports over REST. It is in a session of
its own and outlives this service; its folder says whether it lives (`lock`) and how the run ended (`state.json`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tenfold_control_api.database import database_url
from tenfold_control_api.runs.packages import Packages
from tenfold_control_api.runs.record import EXTERNAL, LOCAL
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.user_folders import OUTPUT_FOLDER, default_database, run_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.service_tokens import ServiceTokens

#: What programs get of this process's environment: where things are, how texts look, and how machines and libraries are
#: used. What else stands there is the service's own, secrets among it; an operator adds names (`run_environment`).
_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TMP", "TEMP"),
    *("VIRTUAL_ENV", "LD_LIBRARY_PATH", "LD_PRELOAD", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
)
_PASSED_PREFIXES = (
    *("LC_", "PYTHON", "CONDA_", "CUDA_", "CUDNN_", "CUPY_", "NVIDIA_", "NCCL_", "ROCR_", "HIP_", "OMP_", "OPENBLAS_"),
    *("MKL_", "KMP_", "GOTO_", "VECLIB_", "NUMEXPR_", "NUMBA_", "MALLOC_", "OTEL_"),
)
#: By what engines are reached: for supervisors of runs that others start, and no programs of this machine.
_ENGINES = ("SLURM_CONF", "RAY_ADDRESS", "KUBECONFIG", "SSH_AUTH_SOCK")
#: Parts of names that hold secrets whatever they begin with: headers of OpenTelemetry, an index of conda.
_SECRET = ("HEADERS", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY", "COOKIE", "DSN")


@dataclass(frozen=True, slots=True)
class Found:
    """What a look at a run found: whether its supervisor lives, and its last report if it left one."""

    alive: bool
    last: Mapping[str, Any] | None = None
    #: What the supervisor wrote last, for one that ended without a report.
    words: str = ""


class Supervisors(Protocol):
    """Starts runs on an engine. What makes another one than this machine's is given as `create_app(supervisors=…)`.

    All of it may block for a moment on a disk; the service calls it on a thread.
    """

    #: Uploaded working directories.
    packages: Packages

    def launch(self, run: RunRecord, control: str) -> None:
        """Starts the run's supervisor, which reports to `control`. A second call for one that lives, or has ended,
        starts nothing. Raises OSError, or the error of a file, when no process can be made, and ValueError where it
        could not be accepted."""

    def nudge(self, run: RunRecord) -> None:
        """Tells the supervisor at once that the run is to stop, where it can be reached: else it learns of it by its
        next report."""

    def look(self, run: RunRecord) -> Found | None:
        """How the run stands here; None when it is not of this machine."""

    def clear(self, run: RunRecord) -> None:
        """Removes what the run left. Nothing there is no error."""

    def logs(self, run: RunRecord) -> Path | None:
        """The folder with what its tasks wrote; None when it is not of this machine."""

    def output(self, run: RunRecord) -> Path | None:
        """The folder for what its programs leave; None when it is not of this machine."""

    def arriving(self, run: RunRecord) -> Path | None:
        """The same for a run whose tasks are on other machines, and send it: it need not be there yet."""


class LocalSupervisors:
    """Runs in `folder`, a subfolder each."""

    def __init__(
        self,
        folder: Path,
        *,
        packages: Packages,
        tokens: ServiceTokens,
        certificates: Mapping[str, str],
        end_with_service: bool,
        passed: Sequence[str] = (),
        on_end: Callable[[str], None],
    ) -> None:
        """`tokens` gives programs theirs, `certificates` are the variables that name the files. `end_with_service`:
        runs stop when this process ends in any way. `passed`: variables that programs get besides the usual ones.
        `on_end(run id)` is called on a thread when a supervisor that was started here has ended."""
        self._folder, self._end_with_service, self._on_end = folder, end_with_service, on_end
        self._tokens, self._certificates, self.packages = tokens, certificates, packages
        self._passed = frozenset(passed)
        self._host = socket.gethostname()

    def launch(self, run: RunRecord, control: str) -> None:
        folder = self._of(run)
        # each by itself: parents that mkdir makes on the way are open to others
        for each in (self._folder, folder):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        plan = folder / "run.json"
        submission = dict(run.submission)
        if (package := submission.get("package")) is not None:
            work = folder / "work"
            if not plan.exists():
                self.packages.unpack(package, work)
            submission["working_dir"] = str(work)
        content = {"id": run.id, "control": control, "launcher": run.launcher, "submission": submission}
        content["details"] = dict(run.details)
        with AtomicFile(str(plan)) as file:
            file.write(json.dumps(content).encode())
        module = ["-m", "tenfold.runs.supervise", str(folder)]
        log = os.open(folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if self._end_with_service:
            # child.py stops when the other end of its standard input closes, which the kernel does in any case
            source, keep = os.pipe()
            module = ["-m", "tenfold.cli.child", *module]
        else:
            source, keep = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
        try:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", *module],
                self._environment(engines=run.launcher != LOCAL),
                file_actions=[(os.POSIX_SPAWN_DUP2, *each) for each in ((source, 0), (log, 1), (log, 2))],
                setsid=True,
            )
        finally:
            os.close(source)
            os.close(log)
        threading.Thread(target=self._reap, args=(run.id, pid, keep), name=f"reap:{run.id}", daemon=True).start()

    def nudge(self, run: RunRecord) -> None:
        pid = self._holder(run)
        if pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    def look(self, run: RunRecord) -> Found | None:
        if run.supervisor is not None and run.supervisor.get("host") != self._host:
            return None
        folder = self._of(run)
        if not folder.is_dir():
            return None
        if self._holder(run) is not None:
            return Found(alive=True)
        try:
            return Found(alive=False, last=json.loads((folder / "state.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return Found(alive=False, words=_tail(folder / "supervisor.log"))

    def clear(self, run: RunRecord) -> None:
        shutil.rmtree(self._of(run) if run.is_supervised else run_folder(run.id), ignore_errors=True)

    def logs(self, run: RunRecord) -> Path | None:
        # one by hand keeps them itself (tenfold/runs/kept_logs.py), on the machine where it runs
        return self._kept(run, "logs")

    def output(self, run: RunRecord) -> Path | None:
        return self._kept(run, OUTPUT_FOLDER)

    def arriving(self, run: RunRecord) -> Path | None:
        folder = self._of(run)
        return folder / OUTPUT_FOLDER if run.launcher not in (LOCAL, EXTERNAL) and folder.is_dir() else None

    def _kept(self, run: RunRecord, name: str) -> Path | None:
        folder = (self._of(run) if run.is_supervised else run_folder(run.id)) / name
        return folder if folder.is_dir() else None

    def _of(self, run: RunRecord) -> Path:
        return self._folder / run.id

    def _holder(self, run: RunRecord) -> int | None:
        """The process that holds the run's lock; None when nobody does, 0 for one that has not said who it is."""
        try:
            lock = os.open(self._of(run) / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.read(lock, 32).decode("ascii", "replace").strip()
            return int(text) if text.isdecimal() else 0
        finally:
            os.close(lock)
        return None

    def _environment(self, *, engines: bool) -> dict[str, str]:
        passed = self._passed.union(_ENGINES) if engines else self._passed
        inherited = {name: value for name, value in os.environ.items() if name in passed or passes(name)}
        file = self._tokens.for_programs(self._folder / "tokens")
        if file is not None:
            inherited["TENFOLD_TOKEN_FILE"] = str(file)
        return {**inherited, **self._certificates}

    def _reap(self, run_id: str, pid: int, keep: int) -> None:
        """Body of a thread: waits for the supervisor's end."""
        os.waitpid(pid, 0)
        if keep >= 0:
            os.close(keep)
        self._on_end(run_id)


#: Makes the supervisors of a service from its settings and what is told of supervisors that have ended.
SupervisorsFactory = Callable[["Settings", Callable[[str], None]], Supervisors]


def local_supervisors(tokens: ServiceTokens) -> SupervisorsFactory:
    """What makes supervisors whose programs are accepted by `tokens`."""
    return lambda settings, on_end: supervisors_of(settings, on_end, tokens)


def supervisors_of(settings: Settings, on_end: Callable[[str], None], tokens: ServiceTokens) -> Supervisors:
    """Runs on this machine, in the folder that is set, else beside the file of the database, else in the user's own."""
    folder = settings.runs_folder
    if folder is None:
        url = database_url(settings.database)
        file = url.database if url.get_backend_name() == "sqlite" else None
        folder = f"{file or default_database()}.runs"
    root = Path(folder).absolute()
    return LocalSupervisors(
        root,
        packages=Packages(root / "packages", unpacked_limit=settings.max_unpacked_package),
        tokens=tokens,
        certificates=certificates_of(settings),
        end_with_service=settings.runs_end_with_service,
        passed=settings.run_environment,
        on_end=on_end,
    )


def passes(name: str) -> bool:
    """Whether programs get this variable of the service's environment without being told of it."""
    upper = name.upper()
    usual = name in _PASSED or name.startswith(_PASSED_PREFIXES)
    return usual and not any(part in upper for part in _SECRET)


def certificates_of(settings: Settings) -> dict[str, str]:
    """The variables by which programs find the service's certificates: they are its own user's, on its machine."""
    paths = {"CERT": settings.tls_cert, "KEY": settings.tls_key, "CA": settings.tls_ca}
    return {f"TENFOLD_TLS_{name}": os.path.abspath(path) for name, path in paths.items() if path is not None}


def _tail(path: Path, lines: int = 5) -> str:
    try:
        text = path.read_bytes()[-4000:].decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
