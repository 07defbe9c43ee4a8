"""Every line of tests/support/odd_inputs.txt gives TensorFlow's answer: nan, poles, empty, fed arguments, bad ones."""

from __future__ import annotations

import pytest
from tests.support.odd_inputs import answer, cases, same

import tenfold as tf

CASES = cases()


@pytest.mark.parametrize("expression", CASES)
def test_answers_as_tensorflow(expression: str) -> None:
    ours = answer(tf, expression)

    assert same(ours, CASES[expression]), f"{expression}\nhere:       {ours}\nTensorFlow: {CASES[expression]}"
