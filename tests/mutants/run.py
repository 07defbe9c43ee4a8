"""Changes code at random and asks whether a test notices: `make mutants SEED=2 FILES=20 COUNT=200`.

draw.py draws files and changes by the seed; warm.py tries those of one file, in a scratch tree for each core. Tests are
those of `make test` that cover the file, as tests/which.py has them, nearest first; TensorFlow's own are left out. What
was noticed is kept in build/mutants/results.jsonl until the file changes; what was not is tried again by every run.
Ends with status 1 for a change that is neither noticed nor in equivalent.txt.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import which
from mutants import equivalent, imports, nets
from mutants.draw import AREAS, Mutant, draw_changes, draw_files, path_of
from mutants.scratch import FOLDER, environment_alone, interpreter_of, scratch_tree
from support.mirror import PACKAGES, ROOT, modules

RESULTS = FOLDER / "results.jsonl"
#: Seconds of the processor that the tests of a file may take together, as it is.
SECONDS = 60
_LEFT_OUT = ("tests/interop/", "tests/mutants/", "tests/unit/house/")


def main() -> int:
    parser = argparse.ArgumentParser(description="Changes code at random and asks whether a test notices.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=60, help="how many files are drawn")
    parser.add_argument("--count", type=int, default=600, help="how many changes, over all files")
    parser.add_argument("--file", action="append", help="this file, instead of drawn ones; may be given again")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the processor, for a file's tests as it is")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--nice", type=int, default=10, help="how far other work goes first")
    parser.add_argument("--report", action="store_true", help="only say what is known")
    options = parser.parse_args()
    # what nets.py asks the tables of ops is of these files, also where another checkout is installed
    sys.path[:0] = [str(ROOT / folder) for folder in PACKAGES]
    paths = [path_of(text) for text in options.file] if options.file else draw_files(options.seed, options.files)
    each = -(-options.count // len(paths))
    drawn = [mutant for path in paths for mutant in draw_changes(options.seed, path, each)]
    explained = equivalent.read()
    known = read_results()
    if not options.report:
        waiting = [
            mutant for mutant in drawn if mutant.key not in explained and not is_noticed(known.get(mutant.key), mutant)
        ]
        try_all(waiting, options)
        known = read_results()
    return report(drawn, known, explained)


def text_hash(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:16]


def read_results(results: Path = RESULTS) -> dict[tuple[str, str, str], dict[str, Any]]:
    """(file, function, change) → the last result."""
    if not results.exists():
        return {}
    lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return {(line["path"], line["function"], line["what"]): line for line in lines}


def is_noticed(result: dict[str, Any] | None, mutant: Mutant) -> bool:
    """Whether a test has noticed the change in the file as it is now."""
    return (
        result is not None
        and bool(result["by"] or result["how"] not in ("passed", "not reached"))
        and (result["text"] == text_hash(mutant.path))
    )


def tests_of(path: str) -> list[str]:
    """The test files that cover a file, nearest first; slow kinds of equal nearness last."""
    name = next(name for name, found in modules().items() if str(found) == path)
    covers = which.covers(name, Path(path)) + which.covers_through_modules(name)
    slow = ("tests/process/", "tests/chaos/", "tests/cuda/", "tests/control/", "tests/cluster/")
    found = sorted(covers, key=lambda cover: (min(cover.rank, 2), cover.test.startswith(slow), cover.rank, cover.uses))
    near = [cover.test for cover in found if cover.rank < 2]
    for_all = nets.serves_all_rules(Path(path))
    by_name = [] if for_all else by_op_name(Path(path))
    net = nets.tests_of(Path(path))
    first = [test for test in net if test not in nets.WHOLE]  # the rest would use up the time
    every = [*first, *near, *by_name, *net, *(cover.test for cover in found)]
    every += nets.of_all_rules() if for_all else []
    if users := nets.users_of_code(Path(path)):  # the net runs loops as Python
        naming = [cover.test for cover in found if cover.rank == 2]
        every = [*near, *naming, *(test for user in users for test in tests_of(str(user))), *every]
        every = [test for test in every if not test.startswith(nets.KERNELS)]
    return [test for test in dict.fromkeys(every) if not test.startswith(_LEFT_OUT)]


def by_op_name(path: Path) -> list[str]:
    """Tests that run a kernel or a gradient by the name of its op, which no import tells: those of the family's first
    word, and all of gradients for a gradient."""
    word = path.stem.strip("_").partition("_")[0]
    places = {"cpu": [("tests/kernels", f"test_{word}*.py")]}
    places["gradients"] = [("tests/unit/client/gradients", f"test_{word}*.py"), *places["cpu"]]
    places["gradients"] += [("tests/kernels", "test_*gradients*.py")]
    found = [each for folder, glob in places.get(path.parent.name, ()) for each in sorted((ROOT / folder).glob(glob))]
    return [str(each.relative_to(ROOT)) for each in found]


def tests_of_all(paths: list[str]) -> dict[str, list[str]]:
    """tests_of for each file, kept until a file of the tests or of the code comes or goes: it reads all of them."""
    every = sorted(str(path) for path in (*modules().values(), *(ROOT / "tests").rglob("*.py")))
    state = hashlib.sha256(repr(every).encode()).hexdigest()
    kept = FOLDER / "covers.json"
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if found.get("state") != state:
        found = {"state": state}
    for path in paths:
        if path not in found:
            found[path] = tests_of(path)
    kept.write_text(json.dumps(found))
    return {path: found[path] for path in paths}


def try_all(mutants: list[Mutant], options: argparse.Namespace) -> None:
    """Tries the changes, file by file, in `options.jobs` trees at once. Blocks; appends to RESULTS as results come."""
    files: queue.SimpleQueue[tuple[str, list[Mutant]]] = queue.SimpleQueue()
    for path in dict.fromkeys(mutant.path for mutant in mutants):
        files.put((path, [mutant for mutant in mutants if mutant.path == path]))
    FOLDER.mkdir(parents=True, exist_ok=True)
    alone_in_trees = (FOLDER / "lock").open("w")  # two runs at once would put back the file that the other has changed
    fcntl.flock(alone_in_trees, fcntl.LOCK_EX)
    tests = tests_of_all(list(dict.fromkeys(mutant.path for mutant in mutants)))
    imports.graph()
    lock = threading.Lock()

    def work(name: str) -> None:
        tree = scratch_tree(name)
        while not files.empty():
            try:
                path, some = files.get_nowait()
            except queue.Empty:
                return
            try_file(tree, path, some, tests[path], options, lock)

    count = min(options.jobs, files.qsize())
    workers = [threading.Thread(target=work, args=(f"tree-{number}",)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    alone_in_trees.close()


def try_file(
    tree: Path, path: str, mutants: list[Mutant], tests: list[str], options: argparse.Namespace, lock: threading.Lock
) -> None:
    """One process for the changes of one file."""
    name = next(name for name, found in modules().items() if str(found) == path)
    job = {
        "path": path,
        "module": name,
        "imports": imports.may_be_warm(name, tests),
        "tests": tests,
        "seconds": options.seconds,
        "users": [str(user) for user in nets.users_of_code(Path(path))],
        "mutants": [(mutant.change.function, mutant.change.what) for mutant in mutants],
    }
    text, began, kinds = text_hash(path), time.monotonic(), {mutant.key: mutant.change.kind for mutant in mutants}
    environment = environment_alone()
    command = ["nice", "-n", str(options.nice), str(interpreter_of(tree)), "tests/mutants/warm.py"]
    with subprocess.Popen(
        [*alone(), *command], cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job))
        process.stdin.close()
        noticed = 0
        for line in process.stdout:
            found = json.loads(line)
            if "function" not in found:
                with lock:
                    print(f"{path}: {found['tests']} tests in {time.monotonic() - began:.0f} s", *found["failed"])
                continue
            result = {"path": path, "text": text, "kind": kinds[path, found["function"], found["what"]], **found}
            noticed += result["how"] not in ("passed", "not reached")
            with lock, RESULTS.open("a", encoding="utf-8") as results:
                results.write(json.dumps(result) + "\n")
    with lock:
        failed = "" if process.returncode == 0 else f", ended with {process.returncode}"
        print(f"{path}: {noticed} of {len(mutants)} noticed in {time.monotonic() - began:.0f} s{failed}", flush=True)


def alone() -> list[str]:
    """Where the system permits it, the process and all that it starts see no process but their own: a changed program
    may kill another one than it should."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    tried = subprocess.run([*command, "true"], capture_output=True, check=False) if sys.platform == "linux" else None
    return command if tried is not None and tried.returncode == 0 else []


def report(
    drawn: list[Mutant],
    known: dict[tuple[str, str, str], dict[str, Any]],
    explained: dict[tuple[str, str, str], str],
) -> int:
    """Prints the figures and what nobody noticed; returns the exit status."""
    told = [mutant for mutant in drawn if mutant.key in explained]
    rest = [mutant for mutant in drawn if mutant.key not in explained]
    noticed = {mutant.key for mutant in rest if is_noticed(known.get(mutant.key), mutant)}
    for title, group in (("area", list(AREAS)), ("kind", sorted({mutant.change.kind for mutant in drawn}))):
        of = {mutant.key: _area(mutant.path) if title == "area" else mutant.change.kind for mutant in drawn}
        totals, found = Counter(of[mutant.key] for mutant in rest), Counter(of[key] for key in noticed)
        print(*(f"{name:16} {found[name]:4} of {totals[name]:4}" for name in group if totals[name]), sep="\n")
    missed = [mutant for mutant in rest if mutant.key not in noticed]
    for mutant in missed:
        result = known.get(mutant.key, {"how": "not tried"})
        change = mutant.change
        print(f"{mutant.path}:{change.line} | {change.function or '-'} | {change.what} | {result['how']}")
    files = len({mutant.path for mutant in drawn})
    print(
        f"{len(drawn)} changes in {files} files: {len(noticed)} noticed, {len(told)} equivalent (equivalent.txt), "
        f"{len(missed)} not noticed: {100 * len(noticed) / max(1, len(rest)):.1f} % of those that can be noticed, "
        f"{100 * len(noticed) / max(1, len(drawn)):.1f} % of all"
    )
    return 1 if missed else 0


def _area(path: str) -> str:
    return "gradients" if "/gradients/" in path else path.partition("/")[0]


if __name__ == "__main__":
    sys.exit(main())
