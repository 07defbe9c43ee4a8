"""The table of static shapes (tests/support/shape_table.txt) is what TensorFlow infers, and it has nearly every op.

How we compare with it: tests/unit/core/opdefs/test_inferred_shapes.py. `python -m tests.interop.make_shape_table` makes
it anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.interop.shape_answers import ask, reason
from tests.support.shape_table import cases, lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.long


def test_the_table_is_tensorflows(ask_tensorflow: Callable[..., Any], tmp_path: Path) -> None:
    known = [pair for op, texts in lines().items() for pair in cases(op, texts)]

    found = ask(ask_tensorflow, [case for case, _ in known], tmp_path)

    theirs = [reason(answer) if isinstance(answer, str) else answer for answer in found]
    wrong = [
        f"{case}: {written} in the table, {answer} there"
        for (case, written), answer in zip(known, theirs, strict=True)
        if answer != written
    ]
    assert wrong == []
