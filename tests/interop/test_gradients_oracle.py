"""The answers in tests/support/gradient_answers.txt are TensorFlow's own: of every seventh op, as all take a minute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.gradient_answers import differing, group_of, read

from .gradient_table import SCRIPT, compared, releases

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_tensorflows(ask_tensorflow: Callable[..., Any]) -> None:
    of_newest = releases()[".venv-tf"]
    ops = sorted({group_of(each) for each in of_newest})[::7]
    some = [each for each in of_newest if group_of(each) in ops]

    theirs = ask_tensorflow(SCRIPT, str(ROOT), json.dumps(some))

    table = read()
    wrong = {each: differing(compared(each, theirs[each]), table[each]) for each in some}
    assert {each: found for each, found in wrong.items() if found} == {}
