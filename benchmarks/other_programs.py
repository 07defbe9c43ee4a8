"""Times the training steps of other people's programs, as they lie, on Tenfold and on TensorFlow 1.15, in turns.

    python benchmarks/other_programs.py CHECKOUTS [part-of-name …] [--tensorflow PYTHON] [--report benchmarks/reports]
    python benchmarks/other_programs.py CHECKOUTS part-of-name --profile     # where a step's time goes on Tenfold

CHECKOUTS is a folder as for tests/interop/others/run.py, whose table says how a program is run and with which data;
other_programs_table.py says which are timed. Both sides run the program at once, unchanged, each in a copy of its
repository, pinned to the same core; one of them is stopped (SIGSTOP) while the other has its turn. What a step costs is
the processor time of its process (other_programs_notes.py); a ratio is taken in a round of two turns, and its median is
shown. It wants root or user namespaces, for a /tmp of each program's own, and both Pythons want what they import.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "interop"))

import other_programs_report
import other_programs_role
from harness import HERE, keep_caches
from harness.machine import busy
from other_programs_notes import COMPILES, CPU_BEGIN, CPU_END, NUMBER, Cost, Reader, cost
from other_programs_table import TIMED
from others import run as runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from others.program import Program

#: Images of MNIST, as many as it has: an epoch is as long as it is meant to be.
DIGITS = 60_000
BUILD = HERE.parent / "build" / "others"
#: A program's own /tmp. The words after it are the program.
_OWN_TMP = ("unshare", "--mount", "--map-root-user", "sh", "-c", 'mount --bind "$0" /tmp && exec "$@"')


@dataclass(frozen=True)
class Effort:
    """How long it is measured. Steps are training steps."""

    rounds: int = 9
    fewest_rounds: int = 3
    #: A turn has at least so much processor time, and at least so many steps.
    turn_s: float = 0.1
    turn_steps: int = 4
    #: Before the first turn: so many steps, with nothing left to be compiled, or so much processor time in steps.
    warm_steps: int = 150
    warm_s: float = 20.0
    #: For a program to become warm, or to come to the end of a turn.
    limit_s: float = 400.0


#: For a program that is over before: what was compiled the first time comes from the disk.
SHORT: dict[str, Any] = {"turn_s": 0.02, "warm_s": 1.0}


class EndedError(Exception):
    """The program has ended, or does not come to its steps."""


@dataclass
class Side:
    """One runtime's process of a program. Stopped, but for its turns."""

    name: str
    popen: subprocess.Popen[bytes]
    reader: Reader
    log: Path
    costs: list[Cost] = field(default_factory=list)
    #: The number of its training steps, once warm.
    training: int = -1

    def send(self, what: signal.Signals) -> None:
        try:
            os.killpg(self.popen.pid, what)
        except ProcessLookupError:
            raise EndedError(self.told()) from None

    def told(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"{self.name} has ended ({self.popen.poll()}): {lines[-1][:200] if lines else 'it said nothing'}"

    def look(self, limit_s: float, since: float) -> Any:
        """The records so far. Raises EndedError if the process has ended or its time is over."""
        if self.popen.poll() is not None:
            raise EndedError(self.told())
        if time.perf_counter() - since > limit_s:
            raise EndedError(f"{self.name} did not come to enough steps within {limit_s:.0f} s")
        time.sleep(0.02)
        return self.reader.records()

    def is_warm(self, effort: Effort, since: float) -> bool:
        """Whether its steps have become what they stay; it is stopped then. Raises EndedError."""
        records = self.look(effort.limit_s, since)
        if len(records) < 3:
            return False
        self.training = self.reader.training(records)
        steps = records[records[:, NUMBER] == self.training]
        enough = len(steps) >= effort.warm_steps and not steps[-1, COMPILES]
        if enough or (len(steps) > 3 and (steps[:, CPU_END] - steps[:, CPU_BEGIN]).sum() >= effort.warm_s):
            self.send(signal.SIGSTOP)
            return True
        return False

    def turn(self, effort: Effort) -> Cost:
        """What a step costs in one turn. Blocks for it."""
        done = len(self.reader.records())
        begin = time.perf_counter()
        self.send(signal.SIGCONT)
        while True:
            records = self.look(effort.limit_s, begin)
            # the step that the stop interrupted is not of this turn
            own = records[done + 1 :]
            steps = int((own[:, NUMBER] == self.training).sum())
            if steps > effort.turn_steps and own[-1, CPU_END] - own[0, CPU_BEGIN] >= effort.turn_s:
                break
        self.send(signal.SIGSTOP)
        found = cost(self.reader.records()[done:], self.training, begin, time.perf_counter())
        if found is None:
            raise EndedError(f"{self.name} had no whole steps in its turn")
        self.costs.append(found)
        return found

    def stop(self) -> None:
        for what in (signal.SIGKILL, signal.SIGCONT):
            try:
                os.killpg(self.popen.pid, what)
            except ProcessLookupError:
                break
        self.popen.wait()


class Prepared:
    """A copy of a program's repository with its data, and a /tmp for it, below `into`."""

    def __init__(self, folder: Path, program: Program, path: Path, into: Path) -> None:
        self.into = into
        (into / "tmp").mkdir(parents=True)
        self._file, self._where, self._paths = runs.copied(folder, program, path, into, DIGITS, into / "tmp")
        self._program = program

    def of(self, name: str) -> Prepared:
        """Another copy, for a side."""
        other = copy(self)
        other.into = self.into.with_name(f"{self.into.name}-{name}")
        shutil.copytree(self.into, other.into, symlinks=True)
        other._file, other._where, *other._paths = (
            other.into / each.relative_to(self.into) for each in (self._file, self._where, *self._paths)
        )
        return other

    def start(self, name: str, python: str, core: int, *, profile: bool = False) -> Side:
        """Starts the program on one side."""
        notes, log = self.into / "notes", self.into / "log"
        noted = other_programs_role.PROFILE if profile else str(notes)
        target = runs.target_of(self._program, self._file, self._where)
        environment = {
            **runs.environment_of(self._where, self._paths),
            "TENFOLD_CACHE_DIR": str(BUILD / "cache"),
        }
        # a checkout of TensorFlow has a folder `tensorflow`, which must not stand for what is installed
        environment[other_programs_role.PATHS] = environment.pop("PYTHONPATH")
        command = [python, str(HERE / "other_programs_role.py"), noted, name, *target]
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [*_OWN_TMP, str(self.into / "tmp"), "taskset", "-c", str(core), *command],
                cwd=self._where,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return Side(name, popen, Reader(notes), log)


def measured(pythons: dict[str, str], prepared: Prepared, effort: Effort, core: int) -> dict[str, Any]:
    """The costs of one program on both sides, and what ended it early. Blocks while it runs."""
    sides: list[Side] = []
    ended, before = "", busy()
    try:
        sides = [prepared.of(name).start(name, python, core) for name, python in pythons.items()]
        cold, since = list(sides), time.perf_counter()
        while cold:
            cold = [side for side in cold if not side.is_warm(effort, since)]
        for number in range(effort.rounds):
            for side in sides if number % 2 else reversed(sides):
                side.turn(effort)
    except EndedError as error:
        ended = str(error)
    finally:
        for side in sides:
            side.stop()
            shutil.rmtree(side.log.parent, ignore_errors=True)
    whole = min((len(side.costs) for side in sides), default=0) if len(sides) == len(pythons) else 0
    return {
        "ended": ended if whole < effort.fewest_rounds else "",
        "rounds": whole,
        "before": before,
        "costs": {side.name: [cost._asdict() for cost in side.costs[:whole]] for side in sides},
    }


def row_of(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """A row of the report: medians over the rounds."""
    row = {"name": name, **found}
    ours, theirs = found["costs"].get("tenfold", []), found["costs"].get("tensorflow", [])
    if ours and theirs and not found["ended"]:
        for clock in ("cpu", "wall"):
            ratios = [a[clock] / b[clock] for a, b in zip(ours, theirs, strict=True)]
            row[clock] = {
                "tenfold": statistics.median(each[clock] for each in ours),
                "tensorflow": statistics.median(each[clock] for each in theirs),
                "ratio": statistics.median(ratios),
                "least": min(ratios),
                "most": max(ratios),
            }
    return row


def keep(name: str = "", row: dict[str, Any] | None = None) -> dict[str, Any]:
    """Adds a row to those of this and of earlier runs, and returns all; runs may be beside each other."""
    kept = BUILD / "rows.json"
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
        if row is not None:
            rows[name] = row
            kept.write_text(json.dumps(rows, indent=1))
    return rows


def chosen(folder: Path, parts: list[str]) -> Iterator[tuple[str, Program, Path]]:
    """The programs of other_programs_table.py that are below `folder`, as they are timed."""
    for timed in TIMED:
        for program, path in runs.programs_in(folder, [timed.name]):
            if timed.name != runs.name_of(folder, program, path):
                continue
            name = f"{timed.name}{f' [{timed.how}]' if timed.how else ''}"
            if not parts or any(part in name for part in parts):
                args = program.args if timed.args is None else timed.args
                yield name, replace(program, args=args, data=(*program.data, *timed.data)), path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--tensorflow", default=str(HERE.parent / ".venv-tf1.15" / "bin" / "python"))
    parser.add_argument("--rounds", type=int, default=Effort.rounds)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the one that both sides get")
    parser.add_argument("--profile", action="store_true", help="where the time of a step goes on Tenfold")
    parser.add_argument("--report", type=Path, help="write the page of every program measured so far into this folder")
    options = parser.parse_intermixed_args()
    keep_caches()
    BUILD.mkdir(parents=True, exist_ok=True)
    pythons = {"tenfold": sys.executable, "tensorflow": os.path.abspath(options.tensorflow)}
    for name, program, path in chosen(options.folder.resolve(), options.parts):
        with tempfile.TemporaryDirectory(dir=BUILD) as temporary:
            prepared = Prepared(options.folder.resolve(), program, path, Path(temporary) / "program")
            if options.profile:
                side = prepared.start("tenfold", sys.executable, options.core, profile=True)
                side.popen.wait()
                print(f"{name}\n{side.log.read_text(errors='replace')}")
                continue
            for effort in (Effort(options.rounds), replace(Effort(options.rounds), **SHORT)):
                found = measured(pythons, prepared, effort, options.core)
                if not found["ended"]:
                    break
        row = row_of(name, found)
        keep(name, row)
        print(other_programs_report.line(row), flush=True)
    if options.report:
        print(other_programs_report.write(keep(), options.report, pythons))
    return 0


if __name__ == "__main__":
    sys.exit(main())
