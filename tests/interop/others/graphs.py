"""Imports and runs graphs that others made, on TensorFlow and on Tenfold, and compares what they give.

    python tests/interop/others/graphs.py FOLDER [part-of-path …] [--report docs/graphs_of_others.md]

graphs.tsv lists them: repository, commit, date, path, SHA-256. FOLDER holds the files, OWNER+NAME/PATH for each; none
is in this repository. TensorFlow 1.15 chooses feeds and fetches that work (2.21 where 1.15 cannot read the file), and
Tenfold runs the same (graph_program.py). They agree if no element differs by more than 1e-4 of the largest, or of 1.
A report keeps the rows of files that were not run this time.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from interop import environments

_HERE = Path(__file__).parent
_LIST = _HERE / "graphs.tsv"
_PROGRAM = _HERE / "graph_program.py"
_TOLERANCE = 1e-4
#: For a process with a large graph on a busy machine.
_SECONDS = 400


@dataclass(frozen=True, slots=True)
class File:
    """A row of the list."""

    repository: str
    commit: str
    date: str
    path: str
    sha256: str

    @property
    def place(self) -> Path:
        return Path(self.repository.replace("/", "+"), self.path)


@dataclass(frozen=True, slots=True)
class Found:
    outcome: str
    #: What TensorFlow's graph says of its version, or −1.
    producer: int = -1
    detail: str = ""


def read_list() -> list[File]:
    return [File(*line.split("\t")) for line in _LIST.read_text(encoding="utf-8").splitlines() if line]


def _run(python: str | Path, folder: str, *arguments: str | Path) -> str:
    """ "" or the last line of what went wrong."""
    quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [str(python), "-W", "ignore", str(_PROGRAM), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, env=quiet, cwd=folder)
    except subprocess.TimeoutExpired:
        return f"no end after {_SECONDS} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit code {done.returncode}")[:300]


def differs(ours: object, theirs: object) -> str:
    """ "" or how two values differ."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape or (a.dtype != b.dtype and a.dtype.kind + b.dtype.kind not in ("OS", "SO")):
        return f"{a.dtype} {a.shape} for {b.dtype} {b.shape}"
    if b.dtype.kind not in "fc":
        return "" if np.array_equal(a, b) else "other values"
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "other elements are finite"
    finite = np.isfinite(b)
    most = float(np.abs(b[finite]).max(initial=1.0))
    apart = float(np.abs(a[finite].astype(np.float64) - b[finite]).max(initial=0.0)) / most
    return "" if apart <= _TOLERANCE else f"apart by {apart:.1e}"


def try_file(folder: Path, file: File) -> Found:
    """Both run it. Never raises for what a graph does."""
    place = (folder / file.place).resolve()
    if not place.is_file():
        return Found("not there")
    if hashlib.sha256(place.read_bytes()).hexdigest() != file.sha256:
        return Found("another file")
    with tempfile.TemporaryDirectory() as scratch:
        chosen, ran = Path(scratch, "chosen"), Path(scratch, "ran")
        trouble = ""
        for version in ("1.15", "2.21"):
            trouble = _run(environments.interpreter_path(version), scratch, "tensorflow", place, chosen)
            if not trouble:
                break
        if trouble:
            return Found("not for TensorFlow either", detail=trouble)
        _, theirs, producer = pickle.loads(chosen.read_bytes())
        if not theirs:
            return Found("nothing to run", producer)
        trouble = _run(sys.executable, scratch, "tenfold", place, ran, chosen)
        if trouble:
            return Found("fails", producer, trouble)
        _, ours, _ = pickle.loads(ran.read_bytes())
        apart = {name: text for name in theirs if (text := differs(ours[name], theirs[name]))}
    if apart:
        return Found("differs", producer, "; ".join(f"{name}: {text}" for name, text in list(apart.items())[:3]))
    return Found("agrees", producer, f"{len(theirs)} tensors")


def read_report(page: Path) -> dict[File, Found]:
    """What a report says of the files of the list."""
    files = {(file.date, file.repository, file.path): file for file in read_list()}
    found: dict[File, Found] = {}
    for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else ():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 6 and (file := files.get((cells[0], cells[1], cells[2].strip("`")))):
            producer = int(cells[3]) if cells[3] else -1
            found[file] = Found(cells[4], producer, cells[5].replace("\\|", "|"))
    return found


def report(found: dict[File, Found]) -> str:
    counts = Counter(each.outcome for each in found.values())
    old = Counter(each.outcome for file, each in found.items() if file.date < "2018")
    lines = [
        "# Graphs of others",
        "",
        "Public frozen graphs, meta graphs, event files and SavedModels, as they lie in the repositories named: each",
        "was imported and run by TensorFlow 1.15 (2.21, where 1.15 cannot read it) and by Tenfold with the same seeded",
        "feeds, which stand for variables and random numbers as well. Values agree if none differs by more than 1e-4",
        "of the largest, or of 1. The date is that of the commit that brought the file; version 0 means that the graph",
        "names none ([versions of a GraphDef](graph_versions.md)). Commits and SHA-256 are in",
        "`tests/interop/others/graphs.tsv`. Made by",
        "",
        "    python tests/interop/others/graphs.py <a folder of the files> --report docs/graphs_of_others.md",
        "",
        f"All: {', '.join(f'{count} {name}' for name, count in counts.most_common())}. "
        f"Of 2015 to 2017: {', '.join(f'{count} {name}' for name, count in old.most_common())}.",
        "",
        "| date | repository | file | version | outcome | |",
        "|---|---|---|---|---|---|",
    ]
    for file, each in sorted(found.items(), key=lambda pair: (pair[0].date, pair[0].repository, pair[0].path)):
        version = "" if each.producer < 0 else str(each.producer)
        detail = each.detail.replace("|", "\\|")
        lines.append(f"| {file.date} | {file.repository} | `{file.path}` | {version} | {each.outcome} | {detail} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", help="run files whose repository or path has one of these")
    parser.add_argument("--before", default="9", help="run files of dates before this, such as 2018")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    found = {}
    for file in read_list():
        if file.date >= options.before:
            continue
        if not options.parts or any(part in f"{file.repository}/{file.path}" for part in options.parts):
            each = found[file] = try_file(options.folder, file)
            print(
                f"{each.outcome:12} {file.date} {file.repository} {file.path} ({each.producer}) {each.detail}",
                flush=True,
            )
    if options.report:
        options.report.write_text(report(read_report(options.report) | found), encoding="utf-8")
    return int(any(each.outcome in ("fails", "differs") for each in found.values()))


if __name__ == "__main__":
    sys.exit(main())
