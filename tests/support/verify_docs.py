"""`make verify-docs`: types the code of the pages, and notes in docs/site/verified.json the date on which it passed.

A notebook is run, and keeps the outputs of that run.

Without names all pages are verified; with names, those below docs/. A page whose code fails keeps the date of its last
success, and this command ends with 1.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.notebooks import NOTEBOOKS, executed
from support.typed_pages import DOCS, ROOT, type_page, typed_pages

sys.path.insert(0, str(DOCS / "site"))

import verified
from notebooks import markdown_of

#: Pages elsewhere in docs/ whose blocks all run in a test of their own.
_TESTED = {"sdk.md": "tests/process/test_sdk_page.py", "rest.md": "tests/control/test_docs.py"}


def _verify(name: str) -> None:
    """Returns if the code of that page passes, else raises AssertionError."""
    if name.endswith(".ipynb"):
        (DOCS / name).write_text(executed(DOCS / name), encoding="utf-8")
        return
    if name not in _TESTED:
        with tempfile.TemporaryDirectory() as folder:
            type_page(DOCS / name, Path(folder))
        return
    command = [sys.executable, "-m", "pytest", "-q", _TESTED[name]]
    environment = {**os.environ, "TENFOLD_TEST_THOROUGH": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout, f"a test was skipped, so not all code of docs/{name} ran:\n{done.stdout}"


def main(names: list[str]) -> int:
    """Verifies pages, and writes the table after each; 1 if any failed."""
    failed = 0
    pages = (page.relative_to(DOCS).as_posix() for page in (*typed_pages(), *NOTEBOOKS))
    for name in names or [*pages, *_TESTED]:
        begin = time.monotonic()
        try:
            _verify(name)
        except (AssertionError, ValueError) as error:
            failed = 1
            print(f"{name}: {error}", *getattr(error, "__notes__", ()), sep="\n")
            continue
        text = (DOCS / name).read_text(encoding="utf-8")
        digest = verified.digest(markdown_of(text) if name.endswith(".ipynb") else text)
        row = {"date": datetime.date.today().isoformat(), "digest": digest}
        rows = {**verified.table(), name: row}
        verified.TABLE.write_text(json.dumps(dict(sorted(rows.items())), indent=2) + "\n", encoding="utf-8")
        print(f"{name}: passed in {time.monotonic() - begin:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
