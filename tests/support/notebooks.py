"""The notebooks of docs/notebooks: runs one in a kernel of its own, and compares what it wrote with what is kept in it.

`make verify-docs` keeps the outputs (verify_docs.py), docs/site/notebooks.py shows them. A process of its own, whose
program is this file, drives the kernel: warnings of Jupyter's libraries do not fail a test.

    python tests/support/notebooks.py docs/notebooks/slow_step.ipynb    # writes the notebook with new outputs to stdout
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "site"))

from notebooks import cells_of, outputs_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
#: Numbers differ from run to run: times, ports, losses.
_NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
_SECONDS = 90


def executed(notebook: Path) -> str:
    """The notebook's file with the outputs of a run. Blocks. Raises AssertionError with what failed."""
    command = [sys.executable, __file__, str(notebook)]
    # as for a user, whose programs register with the control service that they name; other tests turn that off
    environment = {name: value for name, value in os.environ.items() if name != "TENFOLD_REPORT"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * _SECONDS, check=False, env=environment)
    assert done.returncode == 0, f"{notebook.name} failed:\n{done.stderr[-4000:]}"
    return done.stdout


def shape(text: str) -> list[list[str]]:
    """For each cell what it wrote, with `#` for numbers, and the kinds of its figures."""
    return [
        [" ".join(_NUMBER.sub("#", shown).split()) if kind == "text" else kind for kind, shown in outputs_of(cell)]
        for cell in cells_of(text)
    ]


def _run(path: Path) -> str:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=_SECONDS, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            kept = [each for each in cell.outputs if (each.output_type, each.get("name")) != ("stream", "stderr")]
            cell.outputs = kept
    notebook.metadata.language_info = {"name": "python"}
    return str(nbformat.writes(notebook)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(_run(Path(sys.argv[1]).resolve()))
