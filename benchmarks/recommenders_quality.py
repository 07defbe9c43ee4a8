"""The area under the curve of the programs of recommenders.py at equal memory, after the same examples.

A static table has as many rows as the embedding variable holds ids once it has seen all examples, and at least
click_logs.STEP; ids fall into it as a hash puts them, and some share a row. The examples that are asked about come
after those. Every side trains the same batches in the same order. Not timed. Runs under Python 3.7, too.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import Case, Deployment, Measure, SideFailedError
from models.click_logs import STEP, area_under_curve
from recommenders_programs import BY_ID, NAMES, PROGRAMS, TASK, Driven

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from harness import Context, Wish

#: The static tables of all other sides are the same: their losses are compared where steps are timed.
SIDES = (BY_ID, harness.TENSORFLOW_115_DIRECT)
#: Batches that are trained on and asked about, of a look as well; seconds for all of them.
SIZES = {"": (200, 40), "quick": (60, 20)}
#: Programs of a look.
QUICK = ("deepfm", "din")
LIMIT_S = 600.0


def held(batches: Sequence[Sequence[Any]], kinds: Sequence[Sequence[int]], columns: bool) -> list[int]:
    """How many different ids of each table there are in the batches."""
    if columns:
        ids = np.concatenate([batch[1] for batch in batches])
        return [len(np.unique(ids[:, c])) for c in range(ids.shape[1])]
    return [len(np.unique(np.concatenate([batch[i].ravel() for batch in batches for i in kind]))) for kind in kinds]


#: Which arrays of a batch of the shop are asked of which table: users, items, categories.
_SHOP_KINDS = ((0,), (1, 3), (2, 4))


def quality(name: str, size: str) -> Callable[[Context], Measure]:
    trained, asked = SIZES[size]

    def build(ctx: Context) -> Measure:
        program = PROGRAMS[name]
        program = replace(program, log=replace(program.log, apart=False))
        batches = program.log.batches(trained + asked, 300)
        ids = held(batches[:trained], _SHOP_KINDS, name != "din")
        driven = Driven(ctx, program, [max(count, STEP) for count in ids])

        def result() -> dict[str, Any]:
            losses = [driven.train(batch) for batch in batches[:trained]]
            scores = np.concatenate([driven.scores(batch) for batch in batches[trained:]])
            clicked = np.concatenate([batch[-1].ravel() for batch in batches[trained:]])
            return {
                "area": np.float64(area_under_curve(scores, clicked)),
                "ids": np.int64(sum(ids)),
                "loss": np.float64(np.mean(losses[-trained // 10 :])),
            }

        return Measure(lambda: None, result)

    return build


def cases() -> Iterator[Case]:
    for size in SIZES:
        for name in NAMES:
            program = PROGRAMS[name]
            trained, asked = (count * program.log.batch for count in SIZES[size])
            yield Case(
                named(name, size), TASK, quality(name, size), sides=tuple(side.name for side in SIDES),
                note=f"trained on {trained:,} examples, asked about the {asked:,} after them",
            )  # fmt: skip


def named(name: str, size: str) -> str:
    return f"quality of {name}{', a look' if size else ''}"


@dataclass(frozen=True)
class Asked:
    """What a case that is not timed gave on each side, and why it gave nothing."""

    found: dict[str, dict[str, Any]]
    failures: dict[str, str]


def ask(case: Case, sides: Sequence[Any], wish: Wish, module: str, limit_s: float = LIMIT_S) -> Asked:
    """The results of a case, one side after the other, each in a process of its own that has so much time."""
    asked = Asked({}, {})
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
        for side in (side for side in sides if wish.takes(side) and case.takes(side)):
            deployment = Deployment(side, case.topology, module, wish.pythons, Path(folder))
            try:
                deployment.wait_ready()
                asked.found[side.name] = deployment.build(case, Path(folder), limit_s)
            except SideFailedError as error:
                asked.failures[side.name] = str(error)
            finally:
                deployment.stop()
    return asked


def rows(wish: Wish, module: str, size: str) -> Iterator[dict[str, Any]]:
    """A row for each program."""
    names = [named(name, size) for name in (QUICK if size and not wish.only else NAMES)]
    for case in cases():
        if case.name not in names or wish.only not in case.name:
            continue
        asked = ask(case, SIDES, wish, module)
        row = harness.row_of(case, {}, {}, asked.failures, "equal", 0.0)
        areas = {side: float(each["area"]) for side, each in asked.found.items()}
        row["areas"] = areas
        row["readings"] = {
            side: f"area under the curve {areas[side]:.4f}, loss {float(each['loss']):.4f}, {int(each['ids']):,} ids"
            for side, each in asked.found.items()
        }
        static = [area for side, area in areas.items() if side != BY_ID.name]
        if BY_ID.name in areas and static:
            kept = "met" if areas[BY_ID.name] >= max(static) else "missed"
            row["verdicts"][BY_ID.name] = f"{kept}: {areas[BY_ID.name]:.4f} of ≥ {max(static):.4f} of static tables"
        yield row
