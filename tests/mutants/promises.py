"""Breaks each promise on purpose and shows that a test turns red: `make promises`.

The table is breakages.py. First each named test must pass in a scratch tree as it is; then each breakage is made there,
its test must fail, and the file is put back. Ends with status 1 for a test that still passes.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.breakages import BREAKAGES, Breakage
from mutants.scratch import environment_alone, interpreter_of, scratch_tree

#: Seconds for one run of pytest; a breakage may make a test wait for what never comes.
SECONDS = 300
_COUNTS = re.compile(r"\d+ (?:passed|failed|error)\w*")


def main() -> int:
    parser = argparse.ArgumentParser(description="Breaks each promise on purpose; a test must turn red.")
    parser.add_argument("--promise", action="append", help="this one, as P3; may be given again")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--nice", type=int, default=10, help="how far other work goes first")
    options = parser.parse_args()
    rows = [row for row in BREAKAGES if not options.promise or row.promise in options.promise]
    waiting: queue.SimpleQueue[Breakage] = queue.SimpleQueue()
    for row in rows:
        waiting.put(row)
    red: list[Breakage] = []
    good: set[str] = set()

    def work(name: str) -> None:
        tree = scratch_tree(name)
        while True:
            try:
                row = waiting.get_nowait()
            except queue.Empty:
                return
            began = time.monotonic()
            said = try_one(tree, row, options.nice, good)
            if said is None:
                red.append(row)
            verdict = "red" if said is None else f"NOT RED ({said})"
            print(f"{row.promise} {verdict:7} {time.monotonic() - began:4.0f} s  {row.what}: {row.test}", flush=True)

    workers = [threading.Thread(target=work, args=(f"promises-{number}",)) for number in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    promises = sorted({row.promise for row in rows}, key=lambda name: int(name[1:]))
    left = len(rows) - len(red)
    print(f"{len(rows)} breakages of {', '.join(promises)}: {len(red)} turn a test red, {left} do not")
    return 1 if left else 0


def broken(source: str, row: Breakage) -> str:
    """The source of a row's file with the breakage in it. Raises ValueError where the place is not there once."""
    if source.count(row.old) != 1:
        raise ValueError(f"{row.path} has {source.count(row.old)} times, not once: {row.old!r}")
    return source.replace(row.old, row.new)


def try_one(tree: Path, row: Breakage, nice: int, good: set[str]) -> str | None:
    """None if the test turns red; else what is wrong. `good` has the tests that pass without a breakage."""
    if row.test not in good:
        code, said = run(tree, row.test, nice)
        if code != 0:
            return f"it fails without the breakage: {said}"
        good.add(row.test)
    file = tree / row.path
    source = file.read_text(encoding="utf-8")
    file.write_text(broken(source, row), encoding="utf-8")
    try:
        code, said = run(tree, row.test, nice)
    finally:
        file.write_text(source, encoding="utf-8")
    return None if code == 1 else f"status {code}, {said}"


def run(tree: Path, test: str, nice: int) -> tuple[int, str]:
    """pytest's status and counts. A test that does not end in time counts as failed: that is red, too."""
    command = [str(interpreter_of(tree)), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=100", test]
    # not the bytecode, else the first of two texts of a second counts; CI runs the thorough tests, too
    environment = {**environment_alone(), "PYTHONDONTWRITEBYTECODE": "1", "TENFOLD_TEST_THOROUGH": "1"}
    try:
        done = subprocess.run(
            ["nice", "-n", str(nice), *command],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1, f"no end within {SECONDS} s"
    counts = ", ".join(_COUNTS.findall(done.stdout)) or (done.stdout + done.stderr).strip()[-200:]
    if "skipped" in done.stdout and "passed" not in counts and done.returncode == 0:
        return 5, "skipped here"
    return done.returncode, counts


if __name__ == "__main__":
    sys.exit(main())
