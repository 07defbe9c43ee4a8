"""TensorFlow's client feeds steps on our ps and worker more than they need, and has the answers of its local session.

The graphs are support/superfluous_feeds.py's; tests/cluster has the other ways into a task.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import support
from support.background_cluster import background_cluster

from .tensorflow_processes import interpreter, printed_json

_SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[2])
import tensorflow
tf = tensorflow.compat.v1
tf.disable_v2_behavior()
from superfluous_feeds import Program, expected
devices = ["/job:worker/task:0", "/job:ps/task:0"]
seeds = range(6)
print(json.dumps([Program(tf, seed, devices).at(sys.argv[1]) == expected(tf, seed) for seed in seeds]))
"""


@pytest.mark.parametrize("version", ["2.21", pytest.param("1.15", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("link", ["auto", pytest.param("off", marks=pytest.mark.thorough)])
def test_the_answers_are_those_of_its_local_session(version: str, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_LINK", link)
    folder = str(Path(support.__file__).parent)
    with background_cluster({"worker": 1, "ps": 1}) as servers:
        target = f"grpc://localhost:{servers['worker', 0].port}"
        assert printed_json(interpreter(version), "-c", _SCRIPT, target, folder) == [True] * 6
