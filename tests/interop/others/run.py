"""Runs other people's TensorFlow 1 programs on Tenfold, as they lie in a folder of checkouts.

    python tests/interop/others/run.py DIR [part-of-path …] [--seconds 60] [--jobs 2] [--report docs/programs.md]

DIR holds checkouts, a folder OWNER+NAME for each repository; table.py says which of their files are programs and what
they want to be told. Each runs in a copy of its repository as `tenfold run --as-tensorflow` would run it, unchanged,
with made-up data (data.py). One that trains is stopped once its processes have computed for `--seconds`, so that a busy
machine counts nothing, and has run if it raised nothing; one that stands still has not. What a program needs and this
machine lacks (another package, the network, Python 2) does not count for or against. Nothing of the checkouts is kept.
It wants an environment with Tenfold, psutil and what such programs import: NumPy before 2.3 (arrays had `tostring`
until then), gym 0.17, pandas, scipy, scikit-learn, matplotlib, six, tqdm, librosa, opencv-python-headless.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from others import data, page
from others.outcomes import Outcome, outcome
from others.table import PROGRAMS

if TYPE_CHECKING:
    from others.program import Program

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "programs"

#: A parameter server, and as many workers as the first argument says; the exit code is the workers' worst.
_BY_HAND = """
count=$1; shift; "$@" --job_name ps --task_index 0 & workers=""
for ((task = 0; task < count; task++)); do "$@" --job_name worker --task_index $task & workers="$workers $!"; done
code=0; for each in $workers; do wait $each || code=$?; done; exit $code
"""


#: A program is stopped by the clock after so many times the seconds for which it may compute.
_CLOCK = 15
#: One that was and has computed for less than this share of them stands still.
_STILL = 0.3
#: Seconds between two looks at a program.
_LOOK = 0.25

#: Programs that say themselves where they listen are run one after the other.
_PORTS = threading.Lock()


def run_one(folder: Path, program: Program, path: Path, seconds: float) -> Outcome:
    """Runs the program at `path`, a file below `folder`, in a copy of its repository."""
    with tempfile.TemporaryDirectory(prefix="tenfold-programs-", ignore_cleanup_errors=True) as temporary:
        file, where, paths = copied(folder, program, path, Path(temporary))
        with _PORTS if program.by_hand else contextlib.nullcontext():
            code, output, computed = _run(_command(program, file, where), where, seconds, paths)
        found = outcome(code, output, computed)
        if code is None and found.kind == "runs" and computed < _STILL * seconds:
            found = found._replace(kind="fails", why=f"it stood still: it computed for {computed:.0f} s")
        if found.kind == "runs" and (unsaid := [text for text in program.shows if text not in output]):
            found = found._replace(kind="fails", why=f"it never said {unsaid[0]!r}")
        return _as_in_1_15(program, found)


def _as_in_1_15(program: Program, found: Outcome) -> Outcome:
    if program.in_1_15 and found.kind != "runs":
        return found._replace(kind="1.15", why=f"TensorFlow 1.15 does not run it either: {program.in_1_15}")
    return found


def copied(
    folder: Path, program: Program, path: Path, into: Path, digits: int = data.TRAIN, tmp: Path | None = None
) -> tuple[Path, Path, list[Path]]:
    """Copies the program's repository below `into` and writes its data there: (its file, where it is run, what it may
    import from). `digits` are the images of an MNIST, `tmp` what will be its /tmp, if that is another folder.
    """
    repository = path.relative_to(folder).parts[0]
    copy = into / repository
    shutil.copytree(folder / repository, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    file = copy / path.relative_to(folder / repository)
    where = copy / program.cwd if program.cwd else file.parent
    data.prepare(where, file.read_text(encoding="utf-8", errors="replace"), digits, tmp)
    for write, place in program.data:
        write(where / place)
    return file, where, [where, copy, *(copy / each for each in program.path)]


def target_of(program: Program, file: Path, where: Path) -> list[str]:
    """The program as Python is told it, with its arguments: `FILE …` or `-m MODULE …`."""
    path = os.path.relpath(file, where)
    module = path.removesuffix(".py").replace(os.sep, ".") if program.as_module else program.module
    return [*(["-m", module] if module else [path]), *program.args]


def _command(program: Program, file: Path, where: Path) -> list[str]:
    target = target_of(program, file, where)
    if program.by_hand:
        alone = [sys.executable, "-m", "tenfold.cli.run_as_tensorflow", *target]
        return ["bash", "-c", _BY_HAND, "bash", str(dict(program.cluster)["workers"]), *alone]
    if program.cluster:
        options = [f"--{job}={count}" for job, count in program.cluster]
        run = [sys.executable, "-m", "tenfold.cli", "run", "--as-tensorflow", *options, *program.run_options, "--"]
        return [*run, sys.executable, *target]
    return [sys.executable, "-m", "tenfold.cli.run_as_tensorflow", *target]


def environment_of(where: Path, paths: list[Path]) -> dict[str, str]:
    """What a program that is run in `where` finds in its environment: a home and temporary files of its own."""
    for folder in ("home", "tmp"):
        (where / folder).mkdir(exist_ok=True)
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "MPLBACKEND": "Agg",
        "HOME": str(where / "home"),
        "TMPDIR": str(where / "tmp"),
        "PYTHONUNBUFFERED": "1",
    }


def _run(command: list[str], where: Path, seconds: float, paths: list[Path]) -> tuple[int | None, str, float]:
    """(the exit code, None if its time was over first, the last of its output, seconds that it computed).

    Stops all that it started.
    """
    environment = environment_of(where, paths)
    with tempfile.TemporaryFile() as kept:
        process = psutil.Popen(
            command,
            cwd=where,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=kept,
            stderr=kept,
            start_new_session=True,
        )
        try:
            code, computed = _wait(process, seconds)
        finally:
            for sent in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, sent)
                except ProcessLookupError:
                    break
                with contextlib.suppress(psutil.TimeoutExpired):
                    process.wait(20)  # `tenfold run` stops its tasks first, each with its grace
        size = kept.seek(0, os.SEEK_END)
        kept.seek(max(0, size - 200_000))
        return code, kept.read().decode(errors="replace"), computed


def _wait(process: psutil.Popen, seconds: float) -> tuple[int | None, float]:
    """The exit code, None if it had its time first, and for how long it and its children had computed."""
    end, computed = time.monotonic() + _CLOCK * seconds, 0.0
    while computed < seconds and time.monotonic() < end:
        computed = max(computed, _computed(process))
        with contextlib.suppress(psutil.TimeoutExpired):
            return process.wait(_LOOK), computed
    return None, computed


def _computed(process: psutil.Popen) -> float:
    """Seconds of processor time of a process and all that it has started, by now."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(each.cpu_times()[:4])
    return total


def programs_in(folder: Path, parts: list[str]) -> list[tuple[Program, Path]]:
    """Each program of table.py that is in `folder` and has one of `parts` in its name, with its first row."""
    found: dict[tuple[Path, str], Program] = {}
    for program in PROGRAMS:
        for path in sorted(folder.glob(program.files)):
            key = path, program.variant
            if path.is_file() and key not in found and not any(part in str(path) for part in program.but):
                found[key] = program
    chosen = [(program, path) for (path, _), program in found.items() if program.is_program(path)]
    if not parts:
        return chosen
    return [item for item in chosen if any(part in name_of(folder, *item) for part in parts)]


def name_of(folder: Path, program: Program, path: Path) -> str:
    """The program's path below `folder`, and how it is run if there are several ways."""
    name = str(path.relative_to(folder))
    return f"{name} ({program.variant})" if program.variant else name


def read_kept(kept: Path) -> dict[str, Outcome]:
    """The outcomes of this and of earlier runs, by the program's path."""
    return {name: Outcome(*row) for name, row in json.loads(kept.read_text()).items()} if kept.exists() else {}


def keep(kept: Path, name: str, found: Outcome) -> None:
    """Adds an outcome at once, so that a run that is stopped keeps what it has found; runs may be beside each other."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with open(kept.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcomes = {**read_kept(kept), name: found}
        new = kept.with_suffix(".new")
        new.write_text(json.dumps(outcomes, indent=1, sort_keys=True))
        new.replace(kept)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time, for each program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="only those that did not run the last time")
    parser.add_argument("--report", type=Path, help="bring the page to every outcome kept so far")
    options = parser.parse_args()
    folder = options.folder.resolve()
    kept = BUILD / "outcomes.json"
    outcomes = read_kept(kept)
    chosen = programs_in(folder, options.parts)
    if options.again:
        ran = {name for name, each in outcomes.items() if each.kind == "runs"}
        chosen = [item for item in chosen if name_of(folder, *item) not in ran]

    def one(item: tuple[Program, Path]) -> None:
        program, path = item
        name = name_of(folder, program, path)
        outcomes[name] = found = run_one(folder, program, path, options.seconds)
        print(f"{found.kind:10} {found.seconds:5.0f} s  {name}  {found.why}", flush=True)
        keep(kept, name, found)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, chosen))
    print(dict(Counter(outcomes[name_of(folder, *item)].kind for item in chosen)))
    if options.report:
        named = {name_of(folder, *item): item[0] for item in programs_in(folder, [])}
        tried = {name: _as_in_1_15(named[name], each) for name, each in read_kept(kept).items() if name in named}
        earlier = page.read(options.report.read_text()) if options.report.exists() else {}
        options.report.write_text(page.document(page.merged(earlier, tried), len(named)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
