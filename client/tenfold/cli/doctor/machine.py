"""What `tenfold doctor` looks at on this machine: versions, ports, its name, memory that is shared, limits, cores,
GPUs, the place of the control service's database. Nothing here leaves anything behind.

`look` reads the machine into a `Machine`, a plain value; `examined` judges that, and asks nothing.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from tenfold.cli.doctor.finding import fail, ok, warn
from tenfold_core.open_files import REMEDY, attainable
from tenfold_core.port_users import refusal
from tenfold_core.running_versions import running_versions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold.cli.doctor.finding import Finding

_GIB = 1 << 30
#: Below these a cluster of a few tasks runs into a wall: file descriptors, processes, bytes of /dev/shm.
_FILES, _PROCESSES, _SHARED = 4096, 512, _GIB // 2


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine as it was found. A limit of None is none."""

    versions: Mapping[str, str]
    #: Why a free port of loopback cannot be had, and why the control service's port cannot; empty: they can.
    no_port: str
    port: int
    port_taken: str
    name: str
    #: Addresses of the name; empty: it does not resolve.
    addresses: tuple[str, ...]
    #: Of /dev/shm: size and what is free; None: there is none.
    shared: tuple[int, int] | None
    files: int | None
    processes: int | None
    cores: int
    usable_cores: int
    memory: int
    gpus: tuple[str, ...]
    database: str
    #: Why the database cannot be written; empty: it can.
    database_trouble: str
    #: The port for links of a task here, where one was chosen, and why it cannot be had.
    link_port: int = 0
    link_port_taken: str = ""
    #: Why there is no GPU for us beside a CUDA driver; empty: there is one, or no driver.
    no_gpu: str = ""


def look(port: int, database: str, link_port: int = 0) -> Machine:
    """Reads it. Blocks for as long as the name of the machine takes to resolve."""
    name = socket.gethostname()
    shared = shutil.disk_usage("/dev/shm") if os.path.isdir("/dev/shm") else None
    gpus, no_gpu = _gpus()
    return Machine(
        versions=running_versions(),
        no_port=refusal(0),
        port=port,
        port_taken=refusal(port),
        name=name,
        addresses=_resolved(name),
        shared=None if shared is None else (shared.total, shared.free),
        files=attainable(),
        processes=_limit(resource.RLIMIT_NPROC),
        cores=os.cpu_count() or 1,
        usable_cores=_usable_cores(),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        gpus=gpus,
        database=database,
        database_trouble=database_trouble(database),
        link_port=link_port,
        link_port_taken=refusal(link_port) if link_port else "",
        no_gpu=no_gpu,
    )


def examined(machine: Machine, files: int = 0) -> Iterator[Finding]:
    """What is to be said of it, where a task of the cluster needs so many open `files`."""
    missing = [name for name, version in machine.versions.items() if version == "missing"]
    shown = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    if missing:
        yield fail("versions", shown, f"install what is missing: pip install {' '.join(missing)}")
    else:
        yield ok("versions", shown)
    if machine.no_port:
        yield fail("ports", f"no free port of 127.0.0.1: {machine.no_port}", "allow this process to listen on loopback")
    elif machine.port_taken:
        text = f"127.0.0.1:{machine.port}: {machine.port_taken}"
        yield warn("ports", text, "if that is no control service of yours: tenfold up --control-port 0")
    else:
        yield ok("ports", f"a free one can be had, and 127.0.0.1:{machine.port}")
    if machine.link_port_taken:
        text = f"127.0.0.1:{machine.link_port}: {machine.link_port_taken}"
        yield warn("link port", text, "if that is no task of yours: another one by --link-port (TENFOLD_LINK_PORT)")
    elif machine.link_port:
        yield ok("link port", f"{machine.link_port} can be had")
    yield _name(machine)
    yield _shared(machine)
    yield _enough("open files", machine.files, max(_FILES, files), REMEDY)
    yield _enough("processes", machine.processes, _PROCESSES, "ulimit -u 4096, before the start")
    yield _cores(machine)
    yield _gpu(machine)
    if machine.database_trouble:
        remedy = "name another place: tenfold control --database FILE (TENFOLD_DATABASE)"
        yield fail("database", f"{machine.database}: {machine.database_trouble}", remedy)
    else:
        yield ok("database", f"{machine.database} can be written")


def _name(machine: Machine) -> Finding:
    what = f"name {machine.name}"
    if not machine.addresses:
        text = "does not resolve: other machines cannot dial tasks here by it"
        return warn(what, text, "add it to /etc/hosts or DNS, or name tasks by address: tenfold task --address")
    shown = ", ".join(machine.addresses)
    if all(ip_address(each).is_loopback for each in machine.addresses):
        text = f"is {shown}: only this machine itself can dial tasks here by it"
        return warn(what, text, "for several machines: tenfold task --address HOST:PORT")
    return ok(what, f"is {shown}")


def _shared(machine: Machine) -> Finding:
    if machine.shared is None:
        text = "there is no /dev/shm: large tensors between tasks are copied through sockets"
        return warn("shared memory", text, "mount a tmpfs at /dev/shm")
    total, free = machine.shared
    text = f"{_size(free)} of {_size(total)} free in /dev/shm"
    if free < _SHARED:
        remedy = "give it 1 GiB or more: mount -o remount,size=2g /dev/shm, docker --shm-size=2g"
        return warn("shared memory", text, remedy)
    return ok("shared memory", text)


def _enough(what: str, limit: int | None, least: int, remedy: str) -> Finding:
    text = "no limit" if limit is None else f"at most {limit}"
    return ok(what, text) if limit is None or limit >= least else warn(what, text, remedy)


def _gpu(machine: Machine) -> Finding:
    if machine.no_gpu:
        text = f"there is a CUDA driver, but {machine.no_gpu}"
        return warn("GPU", text, "pip install 'tenfold[cuda]', or look at CUDA_VISIBLE_DEVICES")
    count = len(machine.gpus)
    return ok("GPU", f"{count} found ({', '.join(machine.gpus)})" if count else "none found; none is needed")


def _cores(machine: Machine) -> Finding:
    text = f"{machine.usable_cores} of {machine.cores} cores, {_size(machine.memory)} of memory"
    if machine.usable_cores < 2:
        return warn("processor", text, "tasks of one machine share the core: expect no speed of them")
    return ok("processor", text)


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB"


def _gpus() -> tuple[tuple[str, ...], str]:
    """The GPUs that a task here would have, with their memory; why there is none where there is a driver."""
    from tenfold_services.worker.devices import found_gpus, why_no_gpu

    described = ((text.rpartition("name: ")[2].partition(", ")[0], memory) for memory, text in found_gpus())
    return tuple(f"{name} with {_size(memory)}" for name, memory in described), why_no_gpu()


def _resolved(name: str) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))


def _limit(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _usable_cores() -> int:
    """What this process may use: its set of cores, and the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))
    except (OSError, ValueError):
        return cores


def database_trouble(database: str) -> str:
    """Why a control service could not write there; empty: it can, or it is a server that only the service asks."""
    if "://" in database:
        if not database.startswith("sqlite"):
            return ""
        database = database.partition(":///")[2]
    path = Path(database)
    if path.is_dir():
        return "it is a folder"
    if not path.exists():
        folder = next(each for each in path.absolute().parents if each.exists())
        return "" if os.access(folder, os.W_OK | os.X_OK) else f"{folder} may not be written"
    try:
        # neither makes a file: a database that is there is opened, and left as it is
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1)) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
    except sqlite3.Error as error:
        return "" if "locked" in str(error) else str(error)
    return ""
