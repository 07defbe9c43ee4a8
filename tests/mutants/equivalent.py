"""The changes that no test can notice, or that none should: equivalent.txt, a line each with its reason."""

from __future__ import annotations

from pathlib import Path

TABLE = Path(__file__).with_name("equivalent.txt")


def read(table: Path = TABLE) -> dict[tuple[str, str, str], str]:
    """(file, function, change) → the reason. Raises ValueError for a line that has no reason, or stands there twice."""
    found: dict[tuple[str, str, str], str] = {}
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = [part.strip() for part in line.split(" | ")]
        if len(fields) != 4 or not all((fields[0], *fields[2:])):
            raise ValueError(f"{table.name}:{number}: not `file | function | change | reason`: {line}")
        path, function, what, reason = fields
        key = (path, "" if function == "-" else function, what)
        if key in found:
            raise ValueError(f"{table.name}:{number}: stands there twice: {line}")
        found[key] = reason
    return found
