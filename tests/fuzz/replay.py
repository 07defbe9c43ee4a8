"""Runs inputs that are there, without the fuzzer: those of the corpus, the seeds, or files that are named.

    python tests/fuzz/replay.py                      every target's corpus and seeds, as test_corpus.py does
    python tests/fuzz/replay.py TARGET FILE…         these inputs
    python tests/fuzz/replay.py --least TARGET FILE  the smallest part of a file that is the same fault, in its place

Two lines of JSON for each input: its target and name, before it is tried, so that an end of the process has a name; and
with `fault`, null where there is none, and how many errors the target took as what they are. Memory is bounded as the
fuzzer bounds it; who calls bounds time.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import harness
from fuzz.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator


def inputs(name: str) -> Iterator[tuple[str, bytes]]:
    """The corpus, and the seeds by their numbers."""
    for path in harness.kept(name):
        yield path.name, path.read_bytes()
    for number, seed in enumerate(harness.load(name).seeds()):
        yield f"seed {number}", seed


def fault_of(name: str, data: bytes) -> str | None:
    """Which fault an input is, None for none."""
    try:
        harness.attempt(harness.load(name), data)
    except Exception as error:
        return harness.signature(error)
    return None


def run(name: str, label: str, data: bytes) -> bool:
    """Tries an input and tells; whether it went well."""
    print(json.dumps({"target": name, "input": label}), flush=True)
    before = harness.refused
    fault = fault_of(name, data)
    told = {"target": name, "input": label, "fault": fault, "refused": harness.refused - before}
    print(json.dumps(told), flush=True)
    return fault is None


def least(name: str, data: bytes) -> bytes:
    """A part of `data` that is the same fault and of which nothing can be left out, or nearly so."""
    wanted = fault_of(name, data)
    if wanted is None:
        return data
    size = len(data)
    while size := size // 2:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if fault_of(name, shorter) == wanted:
                data = shorter
            else:
                at += size
    return data


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs inputs of the fuzzer's targets.")
    parser.add_argument("--least", action="store_true", help="make the file the smallest one that is the same fault")
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS), help="all of them, if it is left out")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    names = [options.target] if options.target else list(TARGETS)
    for name in names:
        harness.load(name)
    harness.bound_memory()
    if options.least:
        for path in options.files:
            path.write_bytes(least(options.target, path.read_bytes()))
        return 0
    well = True
    for name in names:
        found = [(path.name, path.read_bytes()) for path in options.files] or inputs(name)
        for label, data in found:
            well &= run(name, label, data)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
