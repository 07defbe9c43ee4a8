"""A throw-away PostgreSQL server for the tests of one process, on a Unix socket in a folder of its own.

Needs the server's programs (Debian: postgresql) and asyncpg; `why_not` says what is lacking. PostgreSQL refuses to run
as root, so as root it runs as nobody.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Where Debian and Red Hat keep the server's programs, which are not on PATH there.
_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
_PROGRAMS = ("initdb", "postgres", "psql")
_PATIENCE = 60.0


def _program(name: str) -> str | None:
    """The newest one that is installed, else the one on PATH."""
    found = [path for pattern in _FOLDERS for path in Path("/").glob(f"{pattern[1:]}/{name}")]
    newest = max(found, key=lambda path: [int(part) for part in path.parts[-3].split("-")[-1].split(".")], default=None)
    return str(newest) if newest is not None else shutil.which(name)


def why_not() -> str:
    """Why there can be no server here; empty when there can."""
    if importlib.util.find_spec("asyncpg") is None:
        return "asyncpg is not installed (pip install 'tenfold[postgres]')"
    lacking = [name for name in _PROGRAMS if _program(name) is None]
    return f"no PostgreSQL here: {', '.join(lacking)} not found (Debian: apt install postgresql)" if lacking else ""


class PostgresServer:
    """Runs inside `with`. Its databases go with it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tenfold-pg-"))
        self._who: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._who = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(self._folder, "nobody", "nogroup")
        self.user = self._who.get("user", getpass.getuser())
        self._environment = {**os.environ, "LC_ALL": "C", "HOME": str(self._folder)}
        self._numbers = itertools.count(1)
        #: Databases that are empty and that no test uses.
        self._free: list[str] = []
        self._ready = threading.Event()
        #: What the server said; its end also sets _ready.
        self._said: list[str] = []

    def __enter__(self) -> PostgresServer:
        data = self._folder / "data"
        try:
            self._run("initdb", "-D", str(data), "-A", "trust", "-U", self.user, "-E", "UTF8", "--no-sync", **self._who)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self) -> None:
        """Also after `stop`, with what its databases held."""
        self._ready.clear()
        options = ("listen_addresses=", "fsync=off", "max_connections=200", "shared_buffers=16MB")
        program = [_program("postgres") or "", "-D", str(self._folder / "data"), "-k", str(self._folder)]
        self._server = subprocess.Popen(
            [*program, *(part for option in options for part in ("-c", option))],
            env=self._environment,
            cwd=self._folder,
            stderr=subprocess.PIPE,
            text=True,
            **self._who,
        )
        self._reader = threading.Thread(target=self._read, name="postgres", daemon=True)
        self._reader.start()
        assert self._ready.wait(_PATIENCE), "PostgreSQL did not start"
        assert self._server.poll() is None, "".join(self._said)

    def stop(self) -> None:
        """Ends the server, and with it all connections."""
        server = getattr(self, "_server", None)
        if server is not None:
            server.send_signal(signal.SIGINT)  # the fast way: connections are ended
            server.wait(_PATIENCE)
            self._reader.join(_PATIENCE)
            server.stderr.close()
            del self._server

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{self.user}@/{database}?host={self._folder}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database. Emptied and used again afterwards: that is quicker than a new one."""
        if not self._free:
            self._free.append(name := f"test{next(self._numbers)}")
            self.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        name = self._free.pop()
        yield self.url(name)
        others = "datname = current_database() AND pid <> pg_backend_pid()"
        end = f"DO 'BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}; END'"
        self.sql(f"{end}; SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public", name)
        self._free.append(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Runs a statement; what psql prints of it, unaligned."""
        options = ("-h", str(self._folder), "-U", self.user, "-v", "ON_ERROR_STOP=1", "-qAtX")
        return self._run("psql", *options, "-d", database, "-c", statement)

    def _run(self, name: str, *arguments: str, **more: Any) -> str:
        done = subprocess.run(
            [_program(name) or name, *arguments],
            capture_output=True,
            text=True,
            env=self._environment,
            cwd=self._folder,
            timeout=_PATIENCE,
            **more,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _read(self) -> None:
        """Body of a thread: a full pipe would stop the server."""
        assert self._server.stderr is not None
        for line in self._server.stderr:
            del self._said[:-20]
            self._said.append(line)
            if "ready to accept connections" in line:
                self._ready.set()
        self._ready.set()
