"""tf.data programs give on Tenfold's client, unchanged, what they give on TensorFlow 1.15: values, errors, shuffles.

The programs are dataset_programs.py, which test_datasets_client.py runs with TensorFlow's own client on our servers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from .tensorflow_processes import HERE, interpreter, printed_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

#: Runs a script with Tenfold for TensorFlow.
AS_TENSORFLOW = (
    "import runpy, sys; from tenfold.compat.as_tensorflow import install; install(); "
    "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def test_programs_give_on_this_client_what_they_give_on_tensorflow(tmp_path: Path) -> None:
    program = str(HERE / "dataset_programs.py")

    theirs = printed_json(interpreter("1.15"), program, "outcomes", str(tmp_path))
    ours = printed_json(sys.executable, "-c", AS_TENSORFLOW, program, "outcomes", str(tmp_path))

    assert len(theirs) == 28
    assert ours == theirs
