"""TensorFlow's own unit tests of its Python API, run on Tenfold's client instead.

    python tests/interop/conformance/api.py --sources DIR [files…] [--only PART] [--again late] [--report FILE]

DIR is a checkout of TensorFlow's repository at 1.15, or a git directory that holds it (--revision names the commit).
The tests of tf.estimator are in a repository of their own, for which there are --estimator and --estimator-revision.
Nothing of it is copied into this repository. Outcomes are kept under build/conformance/api; --again runs those tests
of a file anew that had no end there (late) or did not pass (failed), and keeps the outcomes of the others. A report
keeps the rows of files without outcomes there, and marks them. run.py is the sibling that runs test files in
TensorFlow's own client against a Tenfold server.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import api_files
import api_report
import processes
import report
from files import DATA
from run import BUILD, read_source, write_data

#: Where the files of the second repository are.
_ESTIMATOR = "tensorflow_estimator/"

#: Value of --again → whether a kept outcome is to be had anew.
_AGAIN = {
    "late": lambda outcome: outcome.is_late or outcome.outcome in ("unrun", "crash"),
    "failed": lambda outcome: outcome.outcome not in ("pass", "skip"),
}


def run_one(path: str, options: argparse.Namespace) -> processes.FileResult:
    """Runs the file, or only what options pick of it; without --only the outcomes are kept."""
    file = BUILD / processes.API / f"{api_files.kept_as(path)}.json"
    kept = processes.FileResult.from_json(json.loads(file.read_text())) if file.exists() else processes.FileResult()
    only = options.only
    if options.again and kept.outcomes and not kept.import_error:
        only = [test for test, outcome in kept.outcomes.items() if _AGAIN[options.again](outcome)]
        if not only:
            return kept
    limits = processes.Limits(test_seconds=options.test_seconds, file_seconds=options.file_seconds)
    with tempfile.TemporaryDirectory() as folder:
        for needed in (path, *api_files.BESIDE.get(path, ())):
            sources, revision = options.sources, options.revision
            if needed.startswith(_ESTIMATOR):
                sources, revision = options.estimator or sources, options.estimator_revision
            Path(folder, Path(needed).name).write_bytes(read_source(sources, needed, revision))
        write_data(options.sources, DATA.get(path, ()), Path(folder), options.revision)
        source = Path(folder, Path(path).name)
        result = processes.run_file(processes.API, source, BUILD / processes.API, limits, only)
    if options.again and only:
        result = processes.FileResult(kept.outcomes | result.outcomes, result.import_error)
    if not options.only:
        file.write_text(json.dumps(result.as_json(), indent=1))
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="paths, names or stems; without any: all of api_files.py")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--revision", default="v1.15.0", help="of a git directory")
    parser.add_argument("--estimator", type=Path, help="the repository tensorflow/estimator")
    parser.add_argument("--estimator-revision", default="r1.15", help="of a git directory")
    parser.add_argument("--only", action="append", default=[], help="run tests whose id has this part; kept nowhere")
    parser.add_argument("--again", choices=tuple(_AGAIN), help="run only such tests of what is kept")
    parser.add_argument("--test-seconds", type=float, default=60)
    parser.add_argument("--file-seconds", type=float, default=900)
    parser.add_argument("--no-run", action="store_true", help="with --report: only write what is kept")
    parser.add_argument("--report", type=Path, help="write the table of every outcome kept so far")
    parser.add_argument("--same-day", action="store_true", help="with --report: its other rows are of today too")
    options = parser.parse_args()
    known = [path for path in api_files.ALL if options.estimator or not path.startswith(_ESTIMATOR)]
    for path in () if options.no_run else [api_files.resolve(name) for name in options.files] or known:
        result = run_one(path, options)
        print(report.story(path, {processes.API: result}), flush=True)
        print(f"   {api_report.count(path, result).line}", flush=True)
    if options.report:
        before = options.report.read_text(encoding="utf-8") if options.report.exists() else ""
        new = api_report.document(BUILD / processes.API, report.part(before, api_report.TITLE), options.same_day)
        report.replace_part(options.report, api_report.TITLE, new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
