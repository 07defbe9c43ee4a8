"""The table of the programs, answers.txt: what TensorFlow gives for each, as kernel_net's table has it for nodes.

A line is the family or the op, the program's number, a check of it, and what is fetched, as texts, or the class of the
error.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from support.kernel_net.draw import Draw
from support.program_net import data, flow, mapped, shared, state
from support.program_net.program import Program

FAMILIES = {**flow.FAMILIES, **shared.FAMILIES, **data.FAMILIES, **mapped.FAMILIES}
TABLE = Path(__file__).with_name("answers.txt")


def kinds() -> list[str]:
    return [*FAMILIES, *state.ops()]


def needs_session(kind: str) -> bool:
    """Whether its kernels call functions."""
    return kind in mapped.FAMILIES


def program_of(kind: str, number: int) -> Program:
    """Always the same."""
    p = Program(Draw(f"{kind} {number}"), to_spoil=number % 4 == 3)
    if kind in FAMILIES:
        FAMILIES[kind](p)
    else:
        state.program(p, kind)
    return p


def check(p: Program) -> int:
    """A number that differs where the program does."""
    return zlib.crc32("\n".join([*p.text, *p.fetches]).encode()) & 0xFFFF


def table() -> dict[str, list[tuple[int, int, Any]]]:
    """Kind → (number, check, answer)."""
    found: dict[str, list[tuple[int, int, Any]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            kind, number, mark, answer = json.loads(line)
            found.setdefault(kind, []).append((number, mark, answer))
    return found
