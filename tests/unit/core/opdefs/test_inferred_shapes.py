"""Static shapes are TensorFlow's, and so is what it refuses: each line of tests/support/shape_table.txt, by op."""

from __future__ import annotations

import pytest

from support.shape_table import cases, difference, lines
from tenfold_core import opdefs
from tenfold_core.opdefs.runtime_ops import BUNDLE_OPS

LINES = lines()
OF_DEEPREC = ("embedding", "parquet", "work_queue")
WITH_OUTPUTS = {op for op in opdefs.names() if opdefs.get(op).outputs and opdefs.family_of(op) not in OF_DEEPREC}
WITH_OUTPUTS -= BUNDLE_OPS
#: Ops that TensorFlow 2.21 no longer makes, or whose nodes cannot be made out of placeholders alone.
MOST_NOT_ASKED = 65


@pytest.mark.parametrize("op", LINES)
def test_shapes_as_tensorflow_infers_them(op: str) -> None:
    found = [difference(case, answer) for case, answer in cases(op, LINES[op])]

    assert [text for text in found if text] == []


def test_nearly_every_op_is_in_the_table() -> None:
    assert set(LINES) <= WITH_OUTPUTS
    assert len(WITH_OUTPUTS - set(LINES)) <= MOST_NOT_ASKED
