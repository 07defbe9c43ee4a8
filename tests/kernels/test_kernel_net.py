"""Kernels give what TensorFlow gave for the same node and inputs: tests/support/kernel_net, op by op.

Loops run as the Python that they are written in, and once more as their stand-ins: nothing is compiled. What machine
code makes of them is tested beside each loop.
"""

from __future__ import annotations

import pytest

from support.kernel_net import answers
from support.kernel_net.cases import case_of
from support.kernel_net.known import KNOWN
from support.kernel_net.loops import InPython, StandIns, without_compiler
from tenfold_kernels.cpu._compiled import compiling

TABLE = answers.table()


@pytest.mark.parametrize("op", TABLE)
def test_answers_as_tensorflow(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    without_compiler(monkeypatch)
    slack = KNOWN[op].slack if op in KNOWN else 1.0
    wrong = []
    for number, check, answer in TABLE[op]:
        case = case_of(op, number)
        assert case.check() == check, f"{op} {number} is another case than the table's: run make.py"
        for loops in (InPython(), StandIns()):
            monkeypatch.setattr(compiling, "loops", loops)
            if found := answers.difference(answers.compute(case), answer, slack):
                wrong.append(f"{number} {case}\nhere:       {found}\nTensorFlow: {answer}")
                break
            if not loops.found:
                break
    assert not wrong, "\n\n".join(wrong)
