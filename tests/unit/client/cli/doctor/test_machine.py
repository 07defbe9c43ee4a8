"""What the doctor says of machines that the test makes up; and of the real one, where nothing is left."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click
import pytest

from tenfold.cli.doctor.command import shown
from tenfold.cli.doctor.machine import Machine, database_trouble, examined, look
from tenfold_core.open_files import REMEDY

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
WELL = Machine(
    versions={"python": "3.11.2", "tenfold": "0.1.0", "numpy": "2.1.0"},
    no_port="",
    port=8080,
    port_taken="",
    name="alpha",
    addresses=("10.0.0.5",),
    shared=(8 * GIB, 6 * GIB),
    files=65536,
    processes=None,
    cores=8,
    usable_cores=4,
    memory=16 * GIB,
    gpus=("nvidia0", "nvidia1"),
    database="/state/control.db",
    database_trouble="",
)


def lines(**changed: Any) -> list[str]:
    return click.unstyle(shown(list(examined(dataclasses.replace(WELL, **changed))))).splitlines()


def test_a_machine_that_is_well() -> None:
    assert lines() == [
        "ok    versions: python 3.11.2, tenfold 0.1.0, numpy 2.1.0",
        "ok    ports: a free one can be had, and 127.0.0.1:8080",
        "ok    name alpha: is 10.0.0.5",
        "ok    shared memory: 6.0 GiB of 8.0 GiB free in /dev/shm",
        "ok    open files: at most 65536",
        "ok    processes: no limit",
        "ok    processor: 4 of 8 cores, 16.0 GiB of memory",
        "ok    GPU: 2 found (nvidia0, nvidia1)",
        "ok    database: /state/control.db can be written",
        "9 looked at, 0 failed, 0 to look at.",
    ]


def test_files_of_a_large_cluster() -> None:
    few = next(each for each in examined(dataclasses.replace(WELL, files=8192), 10_000) if each.what == "open files")

    assert (few.level, few.says, few.remedy) == ("warn", "at most 8192", REMEDY)


def test_the_port_of_links_where_one_was_chosen() -> None:
    assert "ok    link port: 2223 can be had" in lines(link_port=2223)
    assert lines(link_port=2223, link_port_taken="address already in use by process 7 (x)")[2:4] == [
        "warn  link port: 127.0.0.1:2223: address already in use by process 7 (x)",
        "      → if that is no task of yours: another one by --link-port (TENFOLD_LINK_PORT)",
    ]


def test_a_machine_with_every_trouble() -> None:
    troubled = lines(
        versions={"python": "3.11.2", "numpy": "missing"},
        port_taken="address already in use by process 7 (python server.py)",
        addresses=("127.0.1.1",),
        shared=(GIB // 16, GIB // 16),
        files=1024,
        processes=100,
        usable_cores=1,
        gpus=(),
        database_trouble="/state may not be written",
    )

    assert troubled == [
        "fail  versions: python 3.11.2, numpy missing",
        "      → install what is missing: pip install numpy",
        "warn  ports: 127.0.0.1:8080: address already in use by process 7 (python server.py)",
        "      → if that is no control service of yours: tenfold up --control-port 0",
        "warn  name alpha: is 127.0.1.1: only this machine itself can dial tasks here by it",
        "      → for several machines: tenfold task --address HOST:PORT",
        "warn  shared memory: 0.1 GiB of 0.1 GiB free in /dev/shm",
        "      → give it 1 GiB or more: mount -o remount,size=2g /dev/shm, docker --shm-size=2g",
        "warn  open files: at most 1024",
        f"      → {REMEDY}",
        "warn  processes: at most 100",
        "      → ulimit -u 4096, before the start",
        "warn  processor: 1 of 8 cores, 16.0 GiB of memory",
        "      → tasks of one machine share the core: expect no speed of them",
        "ok    GPU: none found; none is needed",
        "fail  database: /state/control.db: /state may not be written",
        "      → name another place: tenfold control --database FILE (TENFOLD_DATABASE)",
        "9 looked at, 2 failed, 6 to look at.",
    ]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"no_port": "permission denied"}, "fail  ports: no free port of 127.0.0.1: permission denied"),
        ({"addresses": ()}, "warn  name alpha: does not resolve: other machines cannot dial tasks here by it"),
        (
            {"shared": None},
            "warn  shared memory: there is no /dev/shm: large tensors between tasks are copied through sockets",
        ),
    ],
)
def test_rarer_troubles(changed: dict[str, Any], line: str) -> None:
    assert line in lines(**changed)


def test_gpus_and_why_there_are_none() -> None:
    assert "ok    GPU: 1 found (NVIDIA H200 with 139.8 GiB)" in lines(gpus=("NVIDIA H200 with 139.8 GiB",))
    at = (found := lines(gpus=(), no_gpu="the extra cuda is not installed")).index(
        "warn  GPU: there is a CUDA driver, but the extra cuda is not installed"
    )
    assert found[at + 1] == "      → pip install 'tenfold[cuda]', or look at CUDA_VISIBLE_DEVICES"


def test_this_machine(tmp_path: Path) -> None:
    found = look(1, str(tmp_path / "new" / "control.db"))

    assert found.versions["tenfold"] != "missing"
    assert (found.no_port, found.cores >= found.usable_cores >= 1) == ("", True)
    assert list(tmp_path.iterdir()) == []


def test_whether_a_database_can_be_written(tmp_path: Path) -> None:
    good, text, closed = tmp_path / "good.db", tmp_path / "text.db", tmp_path / "closed"
    with closing(sqlite3.connect(good)) as db:
        db.execute("CREATE TABLE t (x)")
    text.write_text("no database at all, but long enough to be looked at as one" * 20)
    closed.mkdir()
    closed.chmod(0o500)
    with closing(sqlite3.connect(good, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        assert database_trouble(str(good)) == ""
        holder.execute("ROLLBACK")

    assert [database_trouble(f"{prefix}{good}") for prefix in ("", "sqlite:///", "sqlite+aiosqlite:///")] == [""] * 3
    assert database_trouble("postgresql://host/name") == ""
    assert database_trouble(str(tmp_path)) == "it is a folder"
    assert database_trouble(str(text)) == "file is not a database"
    if os.geteuid():
        assert database_trouble(str(closed / "x" / "c.db")) == f"{closed} may not be written"
