"""The linter of English: each rule finds its sentence and passes the other, and texts are read where they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from support.english import complaints, found
from support.english_rules import RULES
from support.english_texts import Sentence, Source, of_markdown, of_openapi, sentences

if TYPE_CHECKING:
    from pathlib import Path

    from support.english_rules import Rule

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@each_rule
def test_a_rule_finds_its_sentence(rule: Rule) -> None:
    assert [each for each in sentences("page.md", 1, rule.finds) if found(each.text, rule)]


@each_rule
def test_a_rule_passes_the_better_sentence(rule: Rule) -> None:
    assert not [each for each in sentences("page.md", 1, rule.passes) if found(each.text, rule)]


def test_names_of_rules_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_markdown_gives_sentences_with_their_lines_and_no_code() -> None:
    page = (
        "# A title\n\nOne `by\nhand`. Two [a\nlink](x.md).\n\n```\nby hand\n```\n\n"
        "    by hand\n\n- item\n  more\n\n| a | b |\n|---|---|\n"
    )

    read = [(each.line, each.text) for each in of_markdown("page.md", page)]

    assert read == [
        (1, "A title"), (3, "One CODE."), (4, "Two a link."), (13, "item more"),
        (16, "a"), (16, "b"),
    ]  # fmt: skip


def test_a_comment_with_a_reason_excepts_a_text_from_a_rule() -> None:
    page = "<!-- english: by-hand: a quotation -->\nBy hand.\n\nBy hand.\n\nBy hand. <!-- english: by-hand: -->\n"

    lines = [line for each in of_markdown("page.md", page) for line in complaints(each)]

    assert [line.split(": ")[0] for line in lines] == ["page.md:4", "page.md:6"]


def test_a_complaint_names_place_rule_words_and_remedy() -> None:
    (line,) = complaints(Sentence("page.md", 7, "It was sent in vain."))

    assert line == "page.md:7: in-vain: 'in vain' → \"without success\", or what did not happen"


def test_openapi_is_named_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps({"paths": {"/v1": {"get": {"summary": "One.", "description": "Two.\n\nThree."}}}}))

    read = [(each.file, each.text) for each in of_openapi(path, "openapi.json")]

    assert read == [("openapi.json#/paths//v1/get", text) for text in ("One.", "Two.", "Three.")]


def test_python_gives_docstrings_help_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "source.py"
    path.write_text('''\
class Reader:
    """A reader."""  # english: by-hand: an example

    def read(self):
        """Reads.

        Blocks.
        """
        raise ValueError(f"There is no {self} here")

    def _hidden(self):
        """Hidden."""


@click.command()
@click.option("--size", help="A size")
def command(size):
    """A command."""
''')
    source = Source(path, "source.py")

    read = {name: [(each.line, each.text) for each in texts] for name, texts in {
        "public": source.definition("Reader"), "help": source.help(), "messages": source.messages()
    }.items()}  # fmt: skip

    assert read == {
        "public": [(2, "A reader."), (5, "Reads."), (7, "Blocks.")],
        "help": [(18, "A command."), (16, "A size")],
        "messages": [(9, "There is no CODE here")],
    }
    assert next(each.excepted for each in source.definition("Reader")) == {"by-hand"}
