"""20. Recommenders: Wide & Deep, DeepFM, DLRM and DIN with tables by raw ids and static ones; the tables alone.

    python benchmarks/recommenders.py [--only dlrm] [--mode single,cluster,…] [--quick]
    python benchmarks/recommenders.py --report benchmarks/reports
    python benchmarks/recommenders.py --mode memory --keys 100000000     # on Tenfold alone, in 10 GB
    python benchmarks/recommenders.py --mode saves       # steps beside saves, on Tenfold alone
    python benchmarks/recommenders.py --profile dlrm [--sides "tenfold static"]      # where a step's time goes

The programs are in models/recommenders.py, their logs in models/click_logs.py: Zipf's law, 26 columns as Criteo has
them, a history of 50 items as Taobao has it. Sides: Tenfold with embedding variables ("by id": raw ids) and with static
tables; TensorFlow 1.15 and 2.21 and torch with static tables of the same rows, into which ids are hashed; torch with
FBGEMM's fused ones (`make peers-env`). `single`: one task. `cluster`: asynchronous, MonitoredTrainingSession, 1 or 2
parameter servers. `columns`: 200 columns beside 26, with as many ids in a step. `tables`: lookups and updates without a
net. All begin with the same weights, and losses are compared before anything is timed. `quality`, `memory` and `saves`
are not timed in turns: recommenders_quality.py and its kin. Runs under Python 3.7, too.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import recommenders_memory
import recommenders_programs
import recommenders_quality
import recommenders_saves
import recommenders_tables
from harness import Subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness import Effort, Wish

MODES = ("single", "cluster", "columns", "tables", "quality", "memory", "saves")
#: Rounds and timed seconds where the command says nothing; those of a look.
ROUNDS, SECONDS, QUICK_ROUNDS = 5, 0.3, 3
#: What a look has of the modes, of the cases over several tasks, and of the sides.
QUICK_MODES = tuple(mode for mode in MODES if mode != "columns")
QUICK_CLUSTER = ("deepfm, 2 ps, 2 workers",)
QUICK_SIDES = ("tenfold by id", "tenfold static", "tensorflow 1.15", "tensorflow 1.15 direct", "torch fbgemm")


def mode_of(name: str) -> str:
    """Which mode a timed case belongs to."""
    if name.endswith(("worker", "workers")):
        return "cluster"
    return "tables" if name.startswith("look up") else "columns" if name.endswith("columns") else "single"


TIMED = Subject(
    number="20",
    module="recommenders",
    title="recommenders",
    sides=recommenders_programs.SIDES,
    cases=(*recommenders_programs.cases(), *recommenders_tables.cases()),
)


def rows(
    effort: Effort, wish: Wish, modes: Sequence[str] = MODES, keys: int = recommenders_memory.FULL
) -> Iterator[dict[str, Any]]:
    """The rows of these modes. A look (`effort.thorough` is not set) has smaller ones."""
    is_look = not effort.thorough
    cases = [case for case in TIMED.cases if mode_of(case.name) in modes]
    if is_look:
        small = [case for case in cases if mode_of(case.name) != "cluster" or case.name in QUICK_CLUSTER]
        cases = cases if wish.only else small
        wish = wish if wish.sides else replace(wish, sides=QUICK_SIDES)
    yield from harness.rows_of_cases(replace(TIMED, cases=tuple(cases)), effort, wish)
    if "quality" in modes:
        yield from recommenders_quality.rows(wish, TIMED.module, "quick" if is_look else "")
    if "memory" in modes:
        look = is_look and keys == recommenders_memory.FULL
        yield from recommenders_memory.rows(wish, TIMED.module, recommenders_memory.QUICK if look else keys)
    if "saves" in modes:
        yield from recommenders_saves.rows(effort, wish, TIMED.module)


SUBJECT = replace(
    TIMED,
    cases=(*TIMED.cases, *recommenders_quality.cases(), *recommenders_memory.cases(), *recommenders_saves.cases()),
    rows=rows,
)


def _modes(text: str) -> tuple[str, ...]:
    modes = tuple(each.strip() for each in text.split(","))
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no mode {unknown[0]!r}; there are {', '.join(MODES)}")
    return modes


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark 20: recommenders.")
    harness.add_options(parser)
    parser.add_argument("--mode", type=_modes, help=f"some of {', '.join(MODES)} (default: all)")
    counts = (recommenders_memory.QUICK, recommenders_memory.FULL, recommenders_memory.HUGE)
    parser.add_argument("--keys", type=int, default=counts[1], choices=counts, help="of the mode memory")
    parser.add_argument("--profile", metavar="PROGRAM", choices=recommenders_programs.PROGRAMS)
    parser.add_argument("--report", help="folder for a dated report, such as benchmarks/reports")
    options = parser.parse_args()
    if options.profile:
        import programs_profile

        is_static = options.sides == recommenders_programs.STATIC.name
        build = functools.partial(recommenders_programs.fed, options.profile, by_id=not is_static)
        programs_profile.main(build, options.seconds or 3.0)
        return
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.seconds = options.seconds or (None if options.quick else SECONDS)
    modes = options.mode or (QUICK_MODES if options.quick else MODES)
    record = harness.Record(options, harness.HERE / "reports" / "latest.json" if options.report else None)
    subject = replace(SUBJECT, rows=functools.partial(rows, modes=modes, keys=options.keys))
    record.add(harness.measure(subject, record.effort, record.wish))
    if options.report:
        import report

        assert record.path is not None
        date = time.strftime("%Y-%m-%d")
        print(f"report in {report.write(record.path, Path(options.report), f'{date}-recommenders')}")
    sys.exit(record.subjects[-1]["ended"] or 0)


if __name__ == "__main__":
    main()
