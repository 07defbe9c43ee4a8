"""Reads what other_programs_role.py has noted of a program's steps, while it runs: which train, and what they cost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from other_programs_role import RECORD

if TYPE_CHECKING:
    from pathlib import Path

#: The fields of a record, in order.
NUMBER, BEGIN, END, CPU_BEGIN, CPU_END, THREAD_BEGIN, THREAD_END, COMPILES = range(8)


class Cost(NamedTuple):
    """What one step costs, in seconds."""

    cpu: float
    """Processor time of the whole process, without what the program itself computes between its steps."""
    wall: float
    steps: int


@dataclass
class Reader:
    """The notes of one process."""

    path: Path

    def records(self) -> np.ndarray:
        """All records so far: float64 [records, 8]. Empty before the program has begun."""
        if not self.path.exists() or self.path.stat().st_size < RECORD.size:
            return np.empty((0, 8))
        whole = np.memmap(self.path, np.float64, "r").reshape(-1, 8)
        return whole[1 : 1 + int(whole[0, 0])]

    def training(self, records: np.ndarray) -> int:
        """Which number is the training: of what is fetched with an operation, and again, what takes longest in all; of
        everything, if no operation is fetched.
        """
        lines = self.path.with_name(self.path.name + ".names").read_text().splitlines()
        trains = {number for number, has_operation, _ in map(json.loads, lines) if has_operation}
        numbers = records[:, NUMBER].astype(int)
        counts, spent = np.bincount(numbers), np.bincount(numbers, records[:, CPU_END] - records[:, CPU_BEGIN])
        return max(range(len(counts)), key=lambda each: (each in trains and counts[each] > 2, spent[each]))


def cost(records: np.ndarray, training: int, begin: float, end: float) -> Cost | None:
    """What a step of the training cost in a turn from `begin` to `end`; None if fewer than two were whole in it.

    It is the processor time from the end of the turn's first training step to the end of its last, without that of
    this thread outside steps and without other steps (an evaluation): threads of the runtime count wherever they work.
    """
    inner = records[(records[:, BEGIN] >= begin) & (records[:, END] <= end)]
    places = np.flatnonzero(inner[:, NUMBER] == training)
    if len(places) < 2:
        return None
    first, last = places[0], places[-1]
    own = inner[first + 1 : last + 1]
    gaps = own[:, THREAD_BEGIN] - inner[first:last, THREAD_END]
    others = own[own[:, NUMBER] != training]
    whole = inner[last, CPU_END] - inner[first, CPU_END]
    cpu = whole - gaps.sum() - (others[:, CPU_END] - others[:, CPU_BEGIN]).sum()
    steps = own[own[:, NUMBER] == training]
    return Cost(cpu / len(steps), float(np.mean(steps[:, END] - steps[:, BEGIN])), len(steps))
