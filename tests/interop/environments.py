"""Where TensorFlow's interpreters are: `make tf-env` builds an environment for each release that it finds a Python for.

Read by tensorflow_processes.py, for tests, and by conformance/processes.py, which runs without pytest.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: TensorFlow's version → the variable that may name its interpreter, and the environment that holds it else.
ENVIRONMENTS = {
    "2.21": ("TENFOLD_TF_PYTHON", ".venv-tf"),
    "1.15": ("TENFOLD_TF115_PYTHON", ".venv-tf1.15"),
    "1.4": ("TENFOLD_TF14_PYTHON", ".venv-tf1.4"),
}


def interpreter_path(version: str) -> Path:
    """TensorFlow's interpreter of that version, whether it is there or not."""
    variable, folder = ENVIRONMENTS[version]
    return Path(os.environ.get(variable, ROOT / folder / "bin" / "python"))
