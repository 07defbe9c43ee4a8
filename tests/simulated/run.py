"""Plays seeds of a simulated cluster: `python tests/simulated/run.py --seed 17 --verbose`, or `--seeds 0-9999`.

A process of its own, because it puts the world's clocks in place of the machine's, with hashes that are the same each
time. Prints each seed that fails, with the command that plays it again, and ends with 1 then. `--traces` prints each
seed's checksum; `--processes` plays a range side by side.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from simulated import sabotage

_HERE = Path(__file__).resolve()
#: Garbage is collected after so many seeds: while one is played nothing may depend on when that is.
_SEEDS_PER_COLLECTION = 10
_REPORTED = 20


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, str(_HERE), *arguments], {**os.environ, "PYTHONHASHSEED": "0"})
    seeds = [seed for text in options.seeds for seed in _range(text)]
    if options.processes > 1:
        return _side_by_side(seeds, options)
    return _play_all(seeds, options)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", "--seeds", dest="seeds", action="append", required=True, metavar="N or N-M")
    parser.add_argument("--verbose", action="store_true", help="print all that happens")
    parser.add_argument("--stop", action="store_true", help="end with the first seed that fails")
    parser.add_argument("--traces", action="store_true", help="print the checksum of each seed")
    parser.add_argument(
        "--without", choices=sorted(sabotage.WAYS), help="take something away that keeps a promise, to see it noticed"
    )
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args(arguments)


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _side_by_side(seeds: list[int], options: argparse.Namespace) -> int:
    """The seeds in as many processes as there are to be."""
    each = -(-len(seeds) // options.processes)
    parts = [seeds[begin : begin + each] for begin in range(0, len(seeds), each)]
    children = []
    for part in parts:
        command = [sys.executable, str(_HERE), *(["--traces"] if options.traces else [])]
        whole = part == list(range(part[0], part[-1] + 1))
        for text in [f"{part[0]}-{part[-1]}"] if whole else map(str, part):
            command += ["--seeds", text]
        children.append(subprocess.Popen(command))
    return max(child.wait() for child in children)


def _play_all(seeds: list[int], options: argparse.Namespace) -> int:
    os.environ.update({"TENFOLD_FUSION": "off", "TENFOLD_GRPC": "", "TENFOLD_REPORT": "0"})
    from simulated import boundary

    clock = time.perf_counter
    boundary.install()
    boundary.install_grpc()
    from simulated import graphs
    from simulated.scenario import play

    graphs.prepare()
    if options.without:
        sabotage.WAYS[options.without]()
    logging.disable(logging.CRITICAL if not options.verbose else logging.NOTSET)
    # of coroutines of killed processes, on their way out of memory
    sys.unraisablehook = lambda unraisable: None
    warnings.simplefilter("ignore", RuntimeWarning)
    tell = print if options.verbose else None
    play(0)  # compiles and loads what every seed needs, so that no seed differs for being the first
    gc.collect()
    gc.freeze()
    gc.disable()
    played, failed, turns, began, spent = 0, 0, 0, clock(), time.process_time()
    for seed in seeds:
        played += 1
        outcome = play(seed, tell)
        turns += outcome.turns
        if options.traces:
            print(f"{seed} {outcome.trace:08x}")
        if outcome.violations:
            failed += 1
            if failed <= _REPORTED:
                _report(seed, outcome.violations)
            if options.stop:
                break
        if played % _SEEDS_PER_COLLECTION == 0:
            gc.collect()
    took, spent = clock() - began, time.process_time() - spent
    print(
        f"{played} seeds, {failed} failed; {turns / max(1, played):.0f} turns a seed; "
        f"{played / took:.1f} seeds a second, {played / spent:.1f} a second of processor time",
        file=sys.stderr if options.traces else sys.stdout,
    )
    return 1 if failed else 0


def _report(seed: int, violations: list[str]) -> None:
    print(f"seed {seed} failed: python tests/simulated/run.py --seed {seed} --verbose", flush=True)
    for text in violations[:5]:
        print(f"    {text[:600]}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
