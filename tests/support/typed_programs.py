"""Checks the types of what a user writes: examples/ and the Python programs of README.md, by mypy --strict.

A program of the page becomes a file of its own, as a reader would save it. Prints what mypy prints and ends
with its code; `make lint` calls this.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from mypy import api

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def programs(page: Path) -> list[str]:
    """The Python programs of a page of Markdown, in its order."""
    return _PROGRAM.findall(page.read_text(encoding="utf-8"))


def check(paths: list[Path]) -> tuple[str, int]:
    """mypy's output and exit code for these programs, each a module; pyproject.toml says the rest."""
    printed, failed, code = api.run(["--config-file", str(ROOT / "pyproject.toml"), *map(str, paths)])
    return printed + failed, code


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted((ROOT / "examples").glob("*.py"))
        for number, text in enumerate(programs(ROOT / "README.md"), start=1):
            paths.append(Path(folder, f"readme_program_{number}.py"))
            paths[-1].write_text(text, encoding="utf-8")
        output, code = check(paths)
    print(output, end="")
    return code


if __name__ == "__main__":
    sys.exit(main())
