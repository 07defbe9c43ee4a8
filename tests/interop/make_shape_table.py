#!/usr/bin/env python3
"""Makes tests/support/shape_table.txt anew: `.venv/bin/python -m tests.interop.make_shape_table`, some minutes.

Asks TensorFlow about the cases of shape_cases.py and about their neighbours, and keeps few: of those that take the same
way through the same shape function only those that come out differently. Says where we infer something else, which is
a fault here or has to have a reason in DIFFERENT; such a case, and one that TensorFlow alone refuses, is left out.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.interop.environments import interpreter_path
from tests.interop.shape_answers import NOT_OF_SHAPES, ask, reason
from tests.interop.shape_cases import HAND, cases_of
from tests.interop.shape_neighbours import neighbours
from tests.interop.shape_rows import MORE_ROWS
from tests.interop.tensorflow_processes import printed_json
from tests.support.shape_table import DIFFERENT, DIFFERENT_OPTIMIZERS, TABLE, line_of, ours

from tenfold_core import errors, opdefs

if TYPE_CHECKING:
    from types import FrameType

    from tests.support.shape_table import ShapeCase

#: How many rounds of neighbours, and seeds of an op that took the same way.
ROUNDS, SEEDS = 2, 1
#: Of one way through one shape function, how many answers are kept, and how many of one op whatever its way.
ANSWERS, LEAST = 5, 2
#: No more cases of an op than this.
MOST = 120
HEAD = """# See shape_table.py. Made by tests/interop/make_shape_table.py from the answers of TensorFlow 2.21.
"""


class Tracer:
    """Runs a case and says which way it took: the instructions of shape functions that it ran."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int]] = set()

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if "/opdefs/shape_fns" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        self._seen.add((frame.f_code.co_name, frame.f_lasti))
        return self._step

    def run(self, case: ShapeCase) -> tuple[Any, frozenset[tuple[str, int]]]:
        """What is inferred here, or the text of a refusal, and the way to it."""
        self._seen = set()
        sys.settrace(self._enter)
        try:
            found: Any = ours(case)
        except (ValueError, errors.InvalidArgumentError) as error:
            found = str(error)
        except Exception as error:  # never right: `main` says it
            found = [repr(error)]
        finally:
            sys.settrace(None)
        return found, frozenset(self._seen)


class Answered:
    """A case, TensorFlow's answer, ours, and the way to ours."""

    def __init__(self, case: ShapeCase, theirs: Any, tracer: Tracer) -> None:
        self.case, self.theirs = case, theirs
        self.ours, self.way = tracer.run(case)

    @property
    def is_refused(self) -> bool:
        return isinstance(self.theirs, str)

    @property
    def is_told(self) -> bool:
        return not (self.is_refused and any(text in self.theirs for text in NOT_OF_SHAPES))

    @property
    def agrees(self) -> bool:
        return isinstance(self.ours, str) if self.is_refused else bool(self.ours == self.theirs)


def answered() -> list[Answered]:
    """All cases that are asked about. Takes minutes."""
    tracer, known = Tracer(), dict[str, Answered]()
    waiting = [case for op in opdefs.names() if opdefs.get(op).outputs for case in cases_of(op)]
    for number in range(ROUNDS + 1):
        asked = [case for text, case in {str(case): case for case in waiting}.items() if text not in known]
        with tempfile.TemporaryDirectory() as folder:
            answers = ask(_tensorflow, asked, Path(folder))
        print(f"round {number}: {len(asked)} cases", flush=True)
        known |= {str(case): Answered(case, theirs, tracer) for case, theirs in zip(asked, answers, strict=True)}
        seeds: Counter[Any] = Counter()
        waiting = []
        for each in known.values():
            if not each.is_refused:
                seeds[each.case.op, each.way] += 1
                waiting += neighbours(each.case) if seeds[each.case.op, each.way] <= SEEDS else []
    return [each for each in known.values() if each.is_told]


def _tensorflow(script: str, *arguments: str) -> Any:
    return printed_json(str(interpreter_path("2.21")), "-c", script, *arguments, timeout=1200)


def chosen(every: list[Answered]) -> dict[str, list[Answered]]:
    """Op → its cases for the table, by their ways and answers; those by hand in any case."""
    by_hand = {str(case) for case in (*HAND, *MORE_ROWS)}
    kept: dict[str, list[Answered]] = defaultdict(list)
    answers: dict[Any, set[str]] = defaultdict(set)
    counts: Counter[Any] = Counter()
    for each in sorted(every, key=lambda each: (each.case.op, zlib.crc32(str(each.case).encode()))):
        if not each.agrees:
            continue
        known = answers[opdefs.get(each.case.op).shape_fn, each.way]
        said = repr(reason(each.theirs) if each.is_refused else each.theirs)
        counted = each.case.op, each.is_refused
        is_new = said not in known and len(known) < ANSWERS and len(kept[each.case.op]) < MOST
        if is_new or counts[counted] < LEAST or str(each.case) in by_hand:
            known.add(said)
            counts[counted] += 1
            kept[each.case.op].append(each)
    return kept


def _is_explained(op: str) -> bool:
    return op in DIFFERENT or op.startswith(DIFFERENT_OPTIMIZERS)


def main() -> None:
    every = answered()
    kept = chosen(every)
    text = [HEAD]
    for op, some in kept.items():
        lines = [line_of(each.case, reason(each.theirs) if each.is_refused else each.theirs) for each in some]
        text += [op, *(f"    {line}" for line in sorted(lines))]
    TABLE.write_text("\n".join(text) + "\n", encoding="utf-8")
    print(f"{sum(map(len, kept.values()))} cases of {len(kept)} ops, {TABLE.stat().st_size} bytes")
    other = [each for each in every if not each.agrees and not _is_explained(each.case.op)]
    for each in other:
        if not each.is_refused or "-v" in sys.argv:
            print(f"{each.case}: {each.ours} here, {each.theirs} there")
    print(f"{sum(each.is_refused for each in other)} nodes are refused by TensorFlow alone")


if __name__ == "__main__":
    main()
