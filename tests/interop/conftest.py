"""Real TensorFlow, in a virtual environment of its own (`make tf-env`), as the oracle.

TensorFlow is never imported here: its wheel would pull its own protobuf registrations and half a gigabyte into the test
process. A test sends a script to the other interpreter and reads JSON back.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
TF_PYTHON = Path(os.environ.get("TENFOLD_TF_PYTHON", ROOT / ".venv-tf" / "bin" / "python"))

#: A script of TensorFlow's that has not ended by then is stuck; importing TensorFlow alone takes several seconds.
DEADLINE_S = 90


@pytest.fixture(scope="session")
def ask_tensorflow() -> Callable[..., Any]:
    """A function that runs a script under real TensorFlow and gives the JSON it prints on its last line.

    Skips the test, saying why, where there is no TensorFlow environment.
    """
    if not TF_PYTHON.exists():
        pytest.skip("no TensorFlow environment: `make tf-env` builds one (.venv-tf)")

    def ask(script: str, *arguments: str) -> Any:
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(
            [str(TF_PYTHON), "-c", script, *arguments],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env=os.environ | quiet,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.strip().splitlines()[-1])

    return ask
