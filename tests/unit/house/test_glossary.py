"""The glossary: short entries, each with a link to where the word is explained; pages for beginners lead to it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"
TEXT = (DOCS / "glossary.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### (.+)\n((?:.+\n)+)", TEXT, flags=re.MULTILINE))


def test_each_entry_is_at_most_two_sentences_and_a_link() -> None:
    assert len(ENTRIES) > 50
    for word, text in ENTRIES.items():
        said, _, link = text.rstrip().rpartition("\n")
        assert re.fullmatch(r"\[[^\]]+\]\([^)]+\)", link), word
        assert len(re.findall(r"\.(?:\s|$)", said)) <= 2, word
        assert said.endswith("."), word


def test_what_the_glossary_and_the_tutorials_link_to_exists() -> None:
    anchors = {_anchor(heading) for heading in re.findall(r"^###? (.+)$", TEXT, flags=re.MULTILINE)}
    for page in (DOCS / "glossary.md", *DOCS.glob("tutorials/**/*.md")):
        for target, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", page.read_text(encoding="utf-8")):
            file = (page.parent / target) if target else page
            assert file.exists(), f"{page.name} links to {target}"
            if file.name == "glossary.md" and anchor:
                assert anchor in anchors, f"{page.name} links to the word {anchor}"


def test_each_tutorial_links_to_the_glossary() -> None:
    pages = [page for page in DOCS.glob("tutorials/**/*.md") if page.name != "index.md"]

    assert [page.name for page in pages if "glossary.md#" not in page.read_text(encoding="utf-8")] == []


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
