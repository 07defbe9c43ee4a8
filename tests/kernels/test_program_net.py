"""Small programs of ops with a state give what TensorFlow gave: tests/support/program_net, kind by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.kernel_net import answers
from support.kernel_net.loops import InPython, StandIns, without_compiler
from support.program_net import table
from support.program_net.program import run_here
from tenfold_kernels.cpu._compiled import compiling

if TYPE_CHECKING:
    from pathlib import Path

TABLE = table.table()


@pytest.mark.parametrize("kind", TABLE)
def test_answers_as_tensorflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    without_compiler(monkeypatch)
    wrong = []
    for number, check, answer in TABLE[kind]:
        p = table.program_of(kind, number)
        assert table.check(p) == check, f"{kind} {number} is another program than the table's: run make.py"
        for loops in (InPython(), StandIns()):
            monkeypatch.setattr(compiling, "loops", loops)
            folder = tmp_path / f"{number} {type(loops).__name__}"
            folder.mkdir()
            if found := answers.difference(run_here(p, str(folder), table.needs_session(kind)), answer, 4.0):
                wrong.append(f"{number} {p.text}\nhere:       {found}\nTensorFlow: {answer}")
                break
            if not loops.found:
                break
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("number", range(0, 40, 8))
def test_a_session_gives_what_the_kernels_give(tmp_path: Path, number: int) -> None:
    p = table.program_of("datasets", number)
    found = []
    for in_session in (False, True):
        folder = tmp_path / str(in_session)
        folder.mkdir()
        values = run_here(p, str(folder), in_session)
        found.append([answers.text_of(each) for each in values] if isinstance(values, list) else type(values))
    assert found[0] == found[1]
