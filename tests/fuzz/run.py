"""Lets a fuzzer search each target for faults: `make fuzz TARGET=records SECONDS=600`, or every target in turn.

The fuzzer is atheris (libFuzzer), of the extra `fuzz`: one process for each target, which sees what of the watched
modules an input reaches, and goes on from there. It starts from the target's seeds, the corpus, and what earlier runs
have come upon, in the user's cache. Each fault is kept once, by its type and place, in the smallest form, as a file in
corpus/TARGET: once it is mended, test_corpus.py keeps it so. Ends with status 1 if there were any.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import operator
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from fuzz import harness
from fuzz.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Seconds for each target, of a run of all of them.
DEFAULT_SECONDS = 60
#: An input that waits for so long, computing or not, ends the fuzzer.
HANG_SECONDS = 20
#: Seconds for which a find is tried again before it is said to hang: the process must start first, on a busy machine.
PATIENCE = 120
#: The watched bytecode is slower than the plain one: what takes long here is tried again there.
SLOWER = 2.5
#: In the order of Python's own numbers for them, dis.cmp_op.
_COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
#: Inputs of these forms are what libFuzzer leaves where it is ended.
_LEFT = ("crash-*", "timeout-*", "oom-*", "slow-unit-*")


def main() -> int:
    parser = argparse.ArgumentParser(description="Searches the targets for inputs that are faults.")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="this one; may be given again")
    parser.add_argument("--seconds", type=int, default=DEFAULT_SECONDS, help="for each target")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # the process of one target
    options, rest = parser.parse_known_args()
    if importlib.util.find_spec("atheris") is None:
        print(
            "The fuzzer is missing: pip install -e '.[fuzz]'. Its wheels (atheris) are for Linux and macOS and for "
            "certain versions of CPython; for others there is none. `make test` replays the corpus without it.",
            file=sys.stderr,
        )
        return 2
    if options.inside:
        search(options.inside, rest)
    found = 0
    for name in options.target or TARGETS:
        found += fuzz(name, options.seconds)
    return 1 if found else 0


# -- outside: one process after the other ------------------------------------------------------------------------------


def fuzz(name: str, seconds: int) -> int:
    """Searches one target and tells what came of it; how many faults there were."""
    folder = harness.cache_folder() / name
    for part in ("seen", "seeds", "found"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for old in (folder / "found").iterdir():
        old.unlink()
    log = folder / "log"
    command = [sys.executable, __file__, "--inside", name, "--seconds", str(seconds), f"-max_total_time={seconds}"]
    command += [f"-max_len={TARGETS[name].most_bytes}", f"-timeout={HANG_SECONDS}", "-rss_limit_mb=512"]
    command += ["-print_final_stats=1", "-entropic_scale_per_exec_time=1", f"-artifact_prefix={folder / 'found'}/"]
    command += [str(folder / "seen"), str(folder / "seeds")]
    begin = time.monotonic()
    # what is large goes back to the system at once: between the fuzzer's own small pieces the heap would only grow
    settings = {"TENFOLD_REPORT": "0", "MALLOC_MMAP_THRESHOLD_": str(128 << 10)}
    with log.open("wb") as out:
        subprocess.run(command, stdout=out, stderr=out, env={**os.environ, **settings}, check=False)
    took = time.monotonic() - begin
    text = log.read_text(errors="replace")
    faults = keep(name, folder / "found")
    done = re.findall(r"^#(\d+)\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/(\S+)", text, re.MULTILINE)
    runs, coverage, features, inputs, size = done[-1] if done else ("0", "0", "0", "0", "0b")
    peak = re.findall(r"(?:peak_rss_mb:|rss:) *(\d+)", text)
    print(
        f"{name}: {took:.0f} s, {runs} executions, coverage {coverage}, features {features}, "
        f"{inputs} inputs of {size}, {max(map(int, peak), default=0)} MiB; {len(faults)} faults",
        flush=True,
    )
    for line in faults:
        print(f"  {line}")
    if not done:
        print(f"  it did not begin; the end of {log}:\n" + "\n".join(text.splitlines()[-20:]))
        return len(faults) or 1
    return len(faults)


def keep(name: str, folder: Path) -> list[str]:
    """Makes each find as small as it can be and puts it into the corpus; a line about each that is a fault."""
    lines = []
    for path in sorted(folder.iterdir()):
        replay = [sys.executable, str(harness.ROOT / "tests" / "fuzz" / "replay.py")]
        try:
            tried = subprocess.run([*replay, name, str(path)], capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            what = "it hangs"
        else:
            if tried.returncode == 0:
                continue  # slow, or large, under the fuzzer only
            told = [json.loads(line) for line in tried.stdout.splitlines()]
            found = [line["fault"] for line in told if line.get("fault")]
            what = found[0] if found else f"it ends the process ({tried.returncode}): {tried.stderr[-300:]}"
            if found:
                subprocess.run([*replay, "--least", name, str(path)], capture_output=True, timeout=600, check=False)
        data = path.read_bytes()
        place = harness.CORPUS / name / f"{_slug(what)}-{hashlib.sha256(data).hexdigest()[:8]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        lines.append(f"{what}: {place.relative_to(harness.ROOT)} ({len(data)} bytes)")
    return lines


def _slug(what: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", what)[:60].strip("-")


# -- inside: the process of one target ---------------------------------------------------------------------------------


def search(name: str, arguments: list[str]) -> None:
    """Becomes the fuzzer of one target; does not return."""
    import atheris

    watched = TARGETS[name].watched
    others = [module for module in _modules(watched) if not _is_below(module, watched)]
    with atheris.instrument_imports(include=list(watched), exclude=others, enable_loader_override=False):
        target = harness.load(name)
    folder = harness.cache_folder() / name
    for number, seed in enumerate(target.seeds()):
        (folder / "seeds" / f"seed-{number}").write_bytes(seed)
    for path in harness.kept(name):
        (folder / "seeds" / path.name).write_bytes(path.read_bytes())
    known: dict[str, int] = {}
    is_first = True

    def one_input(data: bytes) -> None:
        nonlocal is_first
        if is_first:  # Fuzz() itself sets it
            is_first, atheris._trace_cmp = False, without_arrays(atheris._trace_cmp)
        try:
            harness.attempt(target, data, harness.SECONDS * SLOWER)
        except Exception as error:
            fault = harness.signature(error)
            if len(data) < known.get(fault, 1 << 30):
                known[fault] = len(data)
                (folder / "found" / fault).write_bytes(data)

    mutated: Callable[[bytes, random.Random], bytes] | None = getattr(target, "mutated", None)
    options: dict[str, Any] = {}
    if mutated is not None:

        def mutator(data: bytes, most: int, seed: int) -> bytes:
            chance = random.Random(seed)
            if chance.random() < 0.2:
                return bytes(atheris.Mutate(data, most))
            changed = mutated(data, chance)
            return changed if len(changed) <= most else data[:most]

        options["custom_mutator"] = mutator
    atheris.Setup([sys.argv[0], *arguments], one_input, **options)
    atheris.Fuzz()
    sys.exit(0)


def without_arrays(traced: Callable[..., Any]) -> Callable[..., Any]:
    """What watched code calls to compare, in place of atheris's `_trace_cmp`, which it calls but for arrays.

    atheris 3.0 keeps a reference to each result for ever: to True and False that is nothing, but a comparison of arrays
    left some 20 KB with each input of `media`. They would teach the fuzzer nothing.
    """

    def compare(left: Any, right: Any, how: int, number: int, is_constant: bool) -> Any:
        if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
            return _COMPARISONS[how](left, right)
        return traced(left, right, how, number, is_constant)

    return compare


def _modules(names: tuple[str, ...]) -> Iterator[str]:
    """All modules of the packages that the names begin with, as the fuzzer would watch them."""
    for package in {name.partition(".")[0] for name in names}:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield package
            for path in Path(folder).rglob("*.py"):
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


def _is_below(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


if __name__ == "__main__":
    sys.exit(main())
