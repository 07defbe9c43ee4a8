"""`python -m support.faults.control_forks_main`: control services as forks of a process that has imported everything.

Started by control_forks.py, which speaks with it in lines. `start JSON` forks a control service, `arm N` has it killed
at its N-th write from now on, `shift SECONDS` sets its wall clock forward or back, `kill` and `end` send it a signal.
It says `serving URL`, `armed`, `shifted` and `ended CODE`. A write is an INSERT, UPDATE, DELETE or change of the schema
as soon as the database has taken it, and each commit of one as soon as it is durable: after these a crash may come.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import threading
from typing import Any

import grpc  # noqa: F401 (imported here, so that no fork does it again)
from sqlalchemy import event
from sqlalchemy.engine import Engine, default

from support.faults import wall_clock
from tenfold.session import link_master  # noqa: F401 (as is this)
from tenfold_control_api.main import serve
from tenfold_control_api.service_settings import Settings
from tenfold_core import log_setup

_CHANGES = ("INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER")
_DIRTY = "written since the last commit"


class Failpoints:
    """Ends this process at its N-th write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Writes until the end; None: it does not end.
        self._left: int | None = None
        event.listen(Engine, "after_cursor_execute", self._executed)
        commit = default.DefaultDialect.do_commit

        def committed(dialect: Any, connection: Any) -> None:
            commit(dialect, connection)
            if connection.info.pop(_DIRTY, False):
                self._passed()

        default.DefaultDialect.do_commit = committed  # type: ignore[method-assign]

    def arm(self, writes: int, said: str = "") -> None:
        """Ends it at so many writes from now on; says so first, in one piece, which no such end cuts in two."""
        with self._lock:
            if said:
                os.write(1, f"{said}\n".encode())
            self._left = writes

    def _executed(self, connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(_CHANGES):
            connection.connection.info[_DIRTY] = True
            self._passed()

    def _passed(self) -> None:
        with self._lock:
            if self._left is None:
                return
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def obey(commands: int, failpoints: Failpoints) -> None:
    """Body of a thread of a fork."""
    with open(commands, encoding="ascii") as lines:
        for line in lines:
            word, value = line.split()
            if word == "arm":
                failpoints.arm(int(value), "armed")
            else:
                wall_clock.shift(float(value))
                print("shifted", flush=True)
    # who started this is gone
    os.kill(os.getpid(), signal.SIGKILL)


def run(plan: dict[str, Any], commands: int, failpoints: Failpoints) -> int:
    """A control service, in a fork."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wall_clock.shift(plan["shift"])
    if plan["writes"]:
        failpoints.arm(plan["writes"])
    threading.Thread(target=obey, args=(commands, failpoints), name="commands", daemon=True).start()
    return serve(
        port=plan["port"],
        database=plan["database"],
        allow_runs=True,
        settings=Settings(**plan["settings"]),
        announce=lambda url: print(f"serving {url}", flush=True),
    )


def main() -> None:
    log_setup.configure("warning", "text")
    failpoints = Failpoints()
    gc.freeze()
    ended, wake = os.pipe()
    for each in (ended, wake):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pid, commands, text = 0, -1, b""
    while True:
        ready, _, _ = select.select([0, ended], [], [])
        if ended in ready:
            os.read(ended, 64)
            if pid and (found := os.waitpid(pid, os.WNOHANG))[0]:
                pid = 0
                os.close(commands)
                print(f"ended {os.waitstatus_to_exitcode(found[1])}", flush=True)
        if 0 not in ready:
            continue
        more = os.read(0, 1 << 16)
        if not more:
            if pid:
                os.kill(pid, signal.SIGKILL)
            return
        *lines, text = (text + more).split(b"\n")
        for line in lines:
            word, _, value = line.decode().partition(" ")
            if word == "start":
                theirs, commands = os.pipe()
                pid = os.fork()
                if not pid:
                    os.close(commands)
                    code = 1
                    with contextlib.suppress(SystemExit):
                        code = run(json.loads(value), theirs, failpoints)
                    os._exit(code)
                os.close(theirs)
            elif word in ("kill", "end"):
                if pid:  # not waited for yet: nobody else has the number
                    os.kill(pid, signal.SIGKILL if word == "kill" else signal.SIGTERM)
            else:
                with contextlib.suppress(BrokenPipeError):
                    os.write(commands, line + b"\n")


if __name__ == "__main__":
    main()
