"""Writes docs/openapi.json, and the table of problem types in docs/rest.md: `make openapi`.

tests/unit/house/test_rest_docs.py compares what is kept with what this writes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tenfold_control_api.app import create_app
from tenfold_control_api.problem_types import PROBLEM_TYPES
from tenfold_control_api.service_settings import Settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
_TABLE = re.compile(
    r"(?<=<!-- problem types: written by `make openapi` -->\n).*?(?=<!-- end of problem types -->)", re.DOTALL
)


def document() -> str:
    """What docs/openapi.json holds."""
    found = create_app(Settings(database="unused.db")).openapi()
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def with_table(page: str) -> str:
    """docs/rest.md with the table as it should be."""
    rows = "".join(
        f"| [`{row.name}`](how-to/by-symptom.md#{row.name}) | {row.status} | {row.code} | {row.meaning} "
        f"| {row.remedy} |\n"
        for row in PROBLEM_TYPES.values()
    )
    head = "| type | HTTP | code | it means | what to do |\n|---|---|---|---|---|\n"
    assert _TABLE.search(page), "docs/rest.md has lost the marks of its table"
    return _TABLE.sub(lambda _: head + rows, page)


if __name__ == "__main__":
    (DOCS / "openapi.json").write_text(document(), encoding="utf-8")
    rest = DOCS / "rest.md"
    rest.write_text(with_table(rest.read_text(encoding="utf-8")), encoding="utf-8")
