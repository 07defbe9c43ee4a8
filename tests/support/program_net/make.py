"""Chooses programs, asks TensorFlow for what they give and writes answers.txt: `make.py [KIND ...]`.

As kernel_net/make.py, whose choice it shares: what reaches something new here, and more up to a number.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.kernel_net import answers
from support.kernel_net.make import ask
from support.program_net import mapped, table
from support.program_net.known import KNOWN, LEFT_OUT, NO_KERNEL
from support.program_net.program import Program, question, run_here, without_folder
from tenfold_core import errors

#: Of a family, and of an op.
FAMILY_TRIES, FAMILY_KEPT = 80, 60
TRIES, KEPT = 8, 6
SESSION_TRIES = 40


def chosen(kind: str) -> list[tuple[int, Program]]:
    tries, most = (FAMILY_TRIES, FAMILY_KEPT) if kind in table.FAMILIES else (TRIES, KEPT)
    if kind in mapped.FAMILIES:  # a session takes a hundred times as long
        tries, most = SESSION_TRIES, SESSION_TRIES
    found: dict[int, tuple[int, Program]] = {}
    for number in range(tries):
        p = table.program_of(kind, number)
        if p.fetches and (kind, number) not in LEFT_OUT:
            found.setdefault(table.check(p), (number, p))
    return list(found.values())[:most]


def answer_to(kind: str, number: int, ours: Any, reply: Any) -> Any:
    """The table's entry; None where the program is left out."""
    if not isinstance(reply, str):
        if isinstance(ours, errors.OpError) and "Apply" in kind:  # TensorFlow does not look at every size and rate
            return f"only here: {type(ours).__name__.removesuffix('Error')}"
        return [answers.text_of(value) for value in reply]
    error, _, why = reply.partition(": ")
    if error in ("graph", "ended") or any(text in why for text in (*NO_KERNEL, *KNOWN.get(kind, ()))):
        return None
    refused = isinstance(ours, errors.OpError)
    return "refused" if refused and type(ours).__name__ != f"{error}Error" else error


def main() -> None:
    wanted = sys.argv[1:] or table.kinds()
    programs = [(kind, number, p) for kind in wanted for number, p in chosen(kind)]
    with tempfile.TemporaryDirectory() as folder:
        places = [os.path.join(folder, str(k)) for k in range(2 * len(programs))]
        for place in places:
            os.mkdir(place)
        asked = [question(p, place) for (_, _, p), place in zip(programs, places, strict=False)]
        replies = ask("2.21", asked)
        lines: dict[str, list[str]] = {}
        for k, ((kind, number, p), reply) in enumerate(zip(programs, replies, strict=True)):
            if not isinstance(reply, str):
                reply = [without_folder(value, places[k]) for value in reply]
            place = places[len(programs) + k]
            ours = run_here(p, place, table.needs_session(kind))
            answer = answer_to(kind, number, ours, reply)
            if answer is None:
                print(f"left out: {kind} {number}: {str(reply)[:200]}", file=sys.stderr)
                continue
            if found := answers.difference(ours, answer, 4.0):
                print(f"otherwise here: {kind} {number} {p.text}\n    here:       {found}", file=sys.stderr)
                print(f"    TensorFlow: {str(reply)[:600]}", file=sys.stderr)
            lines.setdefault(kind, []).append(json.dumps([kind, number, table.check(p), answer]))
    if sys.argv[1:]:
        for line in table.TABLE.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and (kind := json.loads(line)[0]) not in wanted:
                lines.setdefault(kind, []).append(line)
    head = "# What TensorFlow 2.21 gives: see table.py. Made by tests/support/program_net/make.py.\n"
    table.TABLE.write_text(
        head + "\n".join(line for kind in sorted(lines) for line in lines[kind]) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
