"""The answers in tests/support/program_net/answers.txt are TensorFlow's own: a sample of its programs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from support.kernel_net import answers
from support.kernel_net.make import ask
from support.program_net import make, table
from support.program_net.program import question, without_folder

from .environments import interpreter_path

if TYPE_CHECKING:
    from pathlib import Path

TABLE = table.table()
#: One program in so many; `make test-long` asks all.
SHARE = 20
pytestmark = pytest.mark.skipif(not interpreter_path("2.21").is_file(), reason="needs TensorFlow 2.21: make tf-env")


def _wrong(folder: Path, share: int) -> list[str]:
    every = [(kind, number, answer) for kind, rows in TABLE.items() for number, _, answer in rows]
    some = random.Random("programs").sample(every, len(every) // share)
    places = [str(folder / str(k)) for k in range(len(some))]
    for place in places:
        (folder / place).mkdir()
    asked = [
        question(table.program_of(kind, number), place) for (kind, number, _), place in zip(some, places, strict=True)
    ]
    wrong = []
    for (kind, number, answer), reply, place in zip(some, ask("2.21", asked), places, strict=True):
        if isinstance(reply, str):
            same = isinstance(answer, str) and answer in ("refused", reply.partition(":")[0])
        else:
            found = [answers.text_of(without_folder(value, place)) for value in reply]
            same = answers.agree(found, answer) or str(answer).startswith("only here")
        if not same:
            wrong.append(f"{kind} {number}: {reply}, in the table {answer}")
    return wrong


@pytest.mark.thorough
def test_the_table_is_tensorflows_in_a_sample(tmp_path: Path) -> None:
    assert _wrong(tmp_path, SHARE) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_table_is_tensorflows(tmp_path: Path) -> None:
    assert _wrong(tmp_path, 1) == []


def test_every_kind_is_in_the_table() -> None:
    assert set(TABLE) == {kind for kind in table.kinds() if make.chosen(kind)}
