"""Finds wordings that slow a reader down in the texts that users read: `make lint` calls this.

english_rules.py is the table, english_texts.py reads the texts. Prints `file:line: rule: the words → what to write
instead`, and ends with 1 if it printed anything. A comment next to a text exempts it, with a reason:
`<!-- english: by-hand: a quotation -->`, or `# english: by-hand: …` above a string, or on its first or last line.
"""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2] / "docs" / "site")]

from support.english_rules import RULES  # noqa: E402 (run as a file too)
from support.english_texts import Source, of_markdown, of_openapi  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.english_rules import Rule
    from support.english_texts import Sentence

ROOT = Path(__file__).resolve().parents[2]
#: Pages at the root; those of docs/ are all checked but decisions, which are dated.
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
#: Stubs and packages whose names are public.
PUBLIC = (
    "client/tenfold/__init__.pyi",
    "client/tenfold/train/__init__.pyi",
    "client/tenfold/data/__init__.pyi",
    "client/tenfold/control/__init__.py",
)
#: Its files `*_calls.py` have the methods that the SDK's clients inherit.
CALLS = "client/tenfold/control"
#: Folders whose errors users read as they are raised.
MESSAGES = ("client/tenfold/cli", "client/tenfold/control", "client/tenfold/launchers", "control_api")


@cache
def _compiled(rule: Rule) -> re.Pattern[str]:
    return re.compile(rule.pattern, re.IGNORECASE if rule.pattern == rule.pattern.lower() else 0)


def found(text: str, rule: Rule) -> str | None:
    """The words of the sentence that break the rule."""
    hit = _compiled(rule).search(text)
    return hit[0] if hit else None


def complaints(sentence: Sentence) -> Iterator[str]:
    """A line for each rule that the sentence breaks."""
    for rule in RULES:
        if rule.name not in sentence.excepted and (words := found(sentence.text, rule)):
            yield f"{sentence.file}:{sentence.line}: {rule.name}: {words[:60]!r} → {rule.instead}"


def texts(root: Path = ROOT) -> Iterator[Sentence]:
    """All that is checked."""
    pages = [root / each for each in PAGES] + sorted((root / "docs").rglob("*.md"))
    for page in pages:
        file = page.relative_to(root).as_posix()
        if not file.startswith(("docs/decisions/", "docs/helm/")):
            yield from of_markdown(file, page.read_text(encoding="utf-8"))
    yield from of_openapi(root / "docs/openapi.json", "docs/openapi.json")
    parsed: dict[Path, Source] = {}

    def source(path: Path) -> Source:
        if path not in parsed:
            parsed[path] = Source(path, path.relative_to(root).as_posix())
        return parsed[path]

    for path in sorted((root / "client/tenfold/cli").rglob("*.py")):
        yield from source(path).help()
    for folder in MESSAGES:
        for path in sorted((root / folder).rglob("*.py")):
            yield from source(path).messages()
    for path in sorted((root / CALLS).glob("*_calls.py")):
        yield from source(path).classes()
    for module, name in public_homes(root):
        yield from source(module).definition(name)


def public_homes(root: Path) -> list[tuple[Path, str]]:
    """The file and the name there of each public class and function."""
    names = importlib.import_module("public_names")
    homes = set()
    for stub in PUBLIC:
        for module, original in names.imported((root / stub).read_text(encoding="utf-8")).values():
            if not names._without_text(module, original, root) and (home := names.definition(module, original, root)):
                homes.add((names.source_of(home[0], root), home[1]))
    return sorted(homes)


def main() -> int:
    lines = [line for sentence in texts() for line in complaints(sentence)]
    print("\n".join(lines) if lines else "English: nothing found")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
