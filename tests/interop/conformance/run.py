"""TensorFlow's own unit tests over the wire: each test against TensorFlow's server and against Tenfold's, compared.

    python tests/interop/conformance/run.py --sources DIR [files…] [--only PART] [--report docs/conformance.md]

DIR is a checkout of TensorFlow's repository at the version of .venv-tf, or a git directory that holds it. Nothing of it
is copied into this repository. Outcomes are kept under build/conformance; those against TensorFlow's own server are
taken from there when they exist (--again runs them anew), for they do not change with our code. A report keeps the rows
of files without outcomes there, and marks them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import files
import processes
import report

if TYPE_CHECKING:
    from collections.abc import Sequence

BUILD = processes.ROOT / "build" / "conformance"

#: More late tests than this in one file are no accident.
SECOND_CHANCES = 5


def read_source(sources: Path, path: str, revision: str = "HEAD") -> bytes:
    """The file's bytes from a checkout or a git directory, of `revision` there. Raises FileNotFoundError."""
    if (sources / path).exists():
        return (sources / path).read_bytes()
    folder = sources / ".git" if (sources / ".git").exists() else sources
    shown = subprocess.run(
        ["git", f"--git-dir={folder}", "show", f"{revision}:{path}"], capture_output=True, check=False
    )
    if shown.returncode:
        raise FileNotFoundError(f"{sources} has no {path}: {shown.stderr.decode().strip()}")
    return shown.stdout


def write_data(sources: Path, folders: Sequence[str], into: Path, revision: str = "HEAD") -> None:
    """Copies folders of a checkout or a git directory, as read_source, to the same places below `into`."""
    for name in folders:
        if (sources / name).is_dir():
            paths = [str(path.relative_to(sources)) for path in (sources / name).rglob("*") if path.is_file()]
        else:
            folder = sources / ".git" if (sources / ".git").exists() else sources
            listing = ["git", f"--git-dir={folder}", "ls-tree", "-r", "--name-only", revision, f"{name}/"]
            paths = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.splitlines()
        for path in paths:
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read_source(sources, path, revision))


def outcomes(server: str, path: str, options: argparse.Namespace) -> processes.FileResult:
    """Runs the file, or reads what an earlier run against TensorFlow's server found."""
    kept = BUILD / server / f"{Path(path).stem}.json"
    if server == "tensorflow" and kept.exists() and not options.again and not options.only:
        return processes.FileResult.from_json(json.loads(kept.read_text()))
    limits = processes.Limits(test_seconds=options.test_seconds, file_seconds=options.file_seconds)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, Path(path).name)
        source.write_bytes(read_source(options.sources, path))
        write_data(options.sources, files.DATA.get(path, ()), Path(folder))
        result = processes.run_file(server, source, BUILD / server, limits, options.only)
        # A deadline may be the machine's doing, busy with something else: each such test has a second chance, alone.
        late = [test for test, outcome in result.outcomes.items() if outcome.is_late]
        for test in late[:SECOND_CHANCES]:
            again = processes.run_file(server, source, BUILD / server, limits, [test])
            result.outcomes[test] = again.outcomes.get(test, result.outcomes[test])
    incomplete = result.import_error or any(outcome.outcome == "unrun" for outcome in result.outcomes.values())
    if not options.only and not (server == "tensorflow" and incomplete):
        kept.write_text(json.dumps(result.as_json(), indent=1))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="paths, names or stems; without any: all of files.py")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], help="run tests whose id has this part; kept nowhere")
    parser.add_argument("--server", choices=("both", "tenfold", "tensorflow"), default="both")
    parser.add_argument("--again", action="store_true", help="run TensorFlow's own server anew as well")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--test-seconds", type=float, default=60)
    parser.add_argument("--file-seconds", type=float, default=1200)
    parser.add_argument("--no-run", action="store_true", help="with --report: only write what is kept")
    parser.add_argument("--report", type=Path, help="write the table of every outcome kept so far")
    options = parser.parse_args()
    paths = [files.resolve(name) for name in options.files] or [*files.REQUIRED, *files.FURTHER]
    servers = ("tensorflow", "tenfold") if options.server == "both" else (options.server,)

    def one(path: str) -> None:
        found = {server: outcomes(server, path, options) for server in servers}
        print(report.story(path, found), flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for _ in pool.map(one, () if options.no_run else paths):
            pass
    if options.report:
        before = options.report.read_text(encoding="utf-8") if options.report.exists() else ""
        new = report.document(BUILD, report.part(before, report.TITLE))
        report.replace_part(options.report, report.TITLE, new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
