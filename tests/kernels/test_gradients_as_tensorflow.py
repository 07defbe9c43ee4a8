"""Every program of tests/support/gradient_answers.txt has TensorFlow's gradients, or is refused as TensorFlow does."""

from __future__ import annotations

import pytest
from tests.support.gradient_answers import answers, differing, group_of, read

import tenfold as tf

CASES = read()
#: Op or function → its programs.
GROUPS: dict[str, list[str]] = {}
for _expression in CASES:
    GROUPS.setdefault(group_of(_expression), []).append(_expression)


@pytest.mark.parametrize("group", GROUPS)
def test_gradients(group: str) -> None:
    ours = answers(tf, GROUPS[group], CASES)

    wrong = {each: found for each in GROUPS[group] if (found := differing(ours[each], CASES[each]))}
    assert wrong == {}, "expression → label → (here, TensorFlow)"
