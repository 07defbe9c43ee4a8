"""TensorFlow clients, 2.21 and 1.15, run tf.data programs on our servers: what they give is what TensorFlow gives.

The programs are dataset_programs.py; one client process runs all of them, each in its own process and over the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import HERE, interpreter, printed_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

#: Seconds for all programs, twice, on a busy machine.
DEADLINE_S = 170


@pytest.mark.parametrize("version", ["2.21", "1.15"])
def test_datasets_give_what_tensorflow_gives(version: str, tmp_path: Path) -> None:
    program = str(HERE / "dataset_programs.py")
    with static_cluster(ps=1, worker=1) as tasks:
        target = tasks.target("worker", 0)
        answer = printed_json(interpreter(version), program, target, str(tmp_path), timeout=DEADLINE_S)
    assert answer["differing"] == {}
    assert answer["cases"] == 29
