"""The answers in tests/support/kernel_net/answers.txt are TensorFlow's own: a sample of its ops, each case of them."""

from __future__ import annotations

import random

import pytest

from support.kernel_net import answers, make
from support.kernel_net.cases import case_of

from .environments import interpreter_path

TABLE = answers.table()
#: One op in so many; `make test-long` asks all.
SHARE = 40
pytestmark = pytest.mark.skipif(
    not all(interpreter_path(version).is_file() for version in ("2.21", "1.15")),
    reason="needs TensorFlow 2.21 and 1.15: make tf-env",
)


def _wrong(ops: list[str]) -> list[str]:
    cases = [(case_of(op, number), answer) for op in ops for number, _, _, answer in TABLE[op]]
    replies = make.all_answers([case for case, _ in cases])
    found = [(case, answer, make.answer_to(case, reply)) for (case, answer), reply in zip(cases, replies, strict=True)]
    return [f"{case}: {now}, in the table {answer}" for case, answer, now in found if not answers.agree(now, answer)]


@pytest.mark.thorough
def test_the_table_is_tensorflows_in_a_sample() -> None:
    assert _wrong(random.Random("kernels").sample(sorted(TABLE), len(TABLE) // SHARE)) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_table_is_tensorflows() -> None:
    assert _wrong(sorted(TABLE)) == []


def test_every_op_that_only_computes_is_in_the_table() -> None:
    assert set(make.ops()) == set(TABLE)
