"""Kernels give what TensorFlow gave for the same node and inputs: tests/support/kernel_net, op by op.

Loops run as the Python that they are written in, and once more as their stand-ins: nothing is compiled. What machine
code makes of them is tested beside each loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.kernel_net import answers
from support.kernel_net.cases import case_of
from support.kernel_net.draw import Draw, spoil
from support.kernel_net.known import KNOWN
from support.kernel_net.loops import InPython, StandIns, without_compiler
from tenfold_core import opdefs
from tenfold_kernels.cpu._compiled import compiling

if TYPE_CHECKING:
    import numpy as np

    from support.kernel_net.cases import Case

TABLE = answers.table()


def before_it(case: Case) -> tuple[np.ndarray, ...]:
    """Inputs of another call of the same kernel, one of them another array: what it remembers of it must not stay."""
    inputs = list(case.inputs)
    spoil(Draw(f"before {case.op} {case.number}"), case.op, dict(case.attrs), inputs)
    return tuple(inputs)


@pytest.mark.parametrize("op", TABLE)
def test_answers_as_tensorflow(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    without_compiler(monkeypatch)
    slack = KNOWN[op].slack if op in KNOWN else 1.0
    wrong, keeps_state = [], opdefs.get(op).is_stateful  # a generator of random numbers goes on
    for place, (number, check, limited, answer) in enumerate(TABLE[op]):
        case = case_of(op, number)
        assert case.check() == check, f"{op} {number} is another case than the table's: run make.py"
        for loops in (InPython(), StandIns()):
            monkeypatch.setattr(compiling, "loops", loops)
            if found := answers.difference(
                answers.compute(case, before_it(case) if place % 4 == 0 and not keeps_state else None), answer, slack
            ):
                wrong.append(f"{number} {case}\nhere:       {found}\nTensorFlow: {answer}")
                break
            if not loops.found:
                break
        monkeypatch.setattr(compiling, "loops", StandIns())
        if answers.is_limited(case) != limited:
            wrong.append(f"{number} {case}\nmakes more than a tensor may hold: refused {not limited}, not {limited}")
    assert not wrong, "\n\n".join(wrong)
