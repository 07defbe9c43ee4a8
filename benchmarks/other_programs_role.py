"""Runs a program as it lies, and notes when each of its steps began and ended. Started by other_programs.py.

    python other_programs_role.py NOTES (tenfold|tensorflow) (-m MODULE | FILE) [argument …]

A step is a call of `Session.run`, or of a monitored session's, from the main thread; what it calls in turn is part of
it. NOTES is a file of records (other_programs_notes.py reads it); NOTES.names says what the steps fetch. Nothing waits
for the reader, and nothing of the program is changed. With `profile` for NOTES, other_programs_profile.py looks into
the steps. Runs under Python 3.7, for TensorFlow 1.15.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import runpy
import struct
import sys
import threading
import time

#: What is fetched, begin and end by the wall clock, of the process's and of this thread's processor time, and whether
#: the runtime still compiles. In seconds.
RECORD = struct.Struct("<8d")
#: Records for which there is room, after one that holds their count; the file has holes where nothing was written.
ROOM = 1 << 20
#: The variable with the program's own folders of modules, which come after the runtime has been imported.
PATHS = "OTHER_PROGRAMS_PATHS"
#: Stands for NOTES where the steps are profiled.
PROFILE = "profile"
#: Threads of Tenfold that exist only while it compiles or loads machine code.
COMPILING = ("tenfold-fusion", "tenfold-loops")


class Notes:
    """The records of this process. For one thread."""

    def __init__(self, path: str) -> None:
        with open(path, "w+b") as file:
            file.truncate(RECORD.size * (ROOM + 1))
            self._map = mmap.mmap(file.fileno(), 0)
        self._path = path + ".names"
        self._numbers = {}  # type: dict[str, int]
        self._count = 0

    def number_of(self, fetches: object) -> int:
        """The number of what is fetched, the same at each call of a program that does the same again."""
        found = []  # type: list[str]
        trains = names_of(fetches, found)
        name = " ".join(sorted(found))
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
            with open(self._path, "a") as file:
                file.write(json.dumps([number, trains, name]) + "\n")
        return number

    def take(self, call: object, fetches: object, _session: object) -> object:
        number = self.number_of(fetches)
        before = _clocks()
        try:
            return call()
        finally:
            self._add(number, before, _clocks())

    def _add(self, number: int, before: tuple[float, ...], after: tuple[float, ...]) -> None:
        if self._count == ROOM:
            return
        self._count += 1
        busy = any(thread.name in COMPILING for thread in threading.enumerate())
        clocks = (number, before[0], after[0], before[1], after[1], before[2], after[2], busy)
        RECORD.pack_into(self._map, RECORD.size * self._count, *clocks)
        struct.pack_into("<d", self._map, 0, self._count)


def names_of(fetches: object, found: list[str]) -> bool:
    """Adds the names of what is fetched to `found`; whether an operation is among it, such as a training step."""
    if isinstance(fetches, dict):
        fetches = list(fetches.values())
    if isinstance(fetches, (list, tuple)):
        return any([names_of(each, found) for each in fetches])
    name = getattr(fetches, "name", None)
    found.append(name if isinstance(name, str) else str(fetches))
    return hasattr(fetches, "node_def") and hasattr(fetches, "control_inputs")


def _clocks() -> tuple[float, float, float]:
    return time.perf_counter(), time.process_time(), time.thread_time()


def watch(tensorflow: object, take: object) -> None:
    """Has `take(call, fetches, session)` make each call of `run` of every session that the program opens."""
    main = threading.main_thread()
    inside = [False]

    def noted(run: object) -> object:
        def run_noted(self: object, fetches: object, *rest: object, **named: object) -> object:
            if inside[0] or threading.current_thread() is not main:
                return run(self, fetches, *rest, **named)
            inside[0] = True
            try:
                return take(functools.partial(run, self, fetches, *rest, **named), fetches, self)
            finally:
                inside[0] = False

        return run_noted

    for kind in (tensorflow.Session, tensorflow.train.MonitoredSession):
        owner = next(each for each in kind.__mro__ if "run" in vars(each))
        owner.run = noted(owner.run)


def main(path: str, runtime: str, program: list[str]) -> None:
    if runtime == "tenfold":
        from tenfold.compat.as_tensorflow import install

        install()
    import tensorflow

    if path == PROFILE:
        import other_programs_profile

        watch(tensorflow, other_programs_profile.Profile(tensorflow).take)
    else:
        watch(tensorflow, Notes(path).take)
    os.environ["PYTHONPATH"] = os.environ.pop(PATHS, "")
    sys.path[1:1] = filter(None, os.environ["PYTHONPATH"].split(os.pathsep))
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path[0] = ""
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
