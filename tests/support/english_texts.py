"""The texts that users read, cut into sentences with their lines: pages, help, OpenAPI, messages and docstrings.

Read by english.py. Nothing is imported: Python files are parsed, so that a check takes a few seconds.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: `english: rule: reason`, in a comment of Markdown or Python.
_EXCEPTION = re.compile(r"english: (?P<rule>[\w-]+): (?!-->)\S")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_SENTENCE_END = re.compile(r"(?<=[.?!:])(?:\*\*|[)\"])?\s+(?=[\"(*]*[A-Z`])")
#: Arguments whose strings a command or a route shows to users.
_SHOWN = ("help", "short_help", "epilog")


@dataclass(frozen=True)
class Sentence:
    """`line` counts from 1. `excepted` are the rules from which a comment exempts the sentence."""

    file: str
    line: int
    text: str
    excepted: frozenset[str] = frozenset()


def sentences(file: str, line: int, text: str, excepted: frozenset[str] = frozenset()) -> Iterator[Sentence]:
    """The sentences of one paragraph. Code becomes the word CODE, a link its text."""
    text = re.sub(r"(``.+?``|`[^`]+`)", lambda code: "\n" * code[0].count("\n") + "CODE", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    begin = 0
    for end in [*(each.end() for each in _SENTENCE_END.finditer(text)), len(text)]:
        part = text[begin:end]
        if plain := " ".join(part.replace("*", "").split()):
            yield Sentence(file, line + text[:begin].count("\n") + len(part) - len(part.lstrip("\n")), plain, excepted)
        begin = end


def of_markdown(file: str, text: str) -> Iterator[Sentence]:
    """Paragraphs, list items, headings and cells of tables; no code, no comments."""
    block: list[str] = []
    begin, fenced, excepted = 1, False, set[str]()

    def flush() -> Iterator[Sentence]:
        joined = "\n".join(block)
        block.clear()
        plain = re.sub(r"<!--.*?-->|<[a-z/][^>]*>", "", joined, flags=re.DOTALL)
        if plain.strip():
            yield from sentences(file, begin, plain, frozenset(excepted))
            excepted.clear()

    for number, line in enumerate(text.split("\n"), start=1):
        if _FENCE.match(line):
            yield from flush()
            fenced = not fenced
            continue
        if fenced:
            continue
        starts = _ITEM.match(line) or line.startswith(("#", "|"))
        if not line.strip() or starts:
            yield from flush()
        if not line.strip():
            continue
        if not block and line.startswith("    ") and not starts:
            continue  # indented code; a paragraph of a list item is indented by less here
        excepted |= {each["rule"] for each in _EXCEPTION.finditer(line)}
        if line.startswith("|"):
            if not line.strip("|-: "):
                continue
            cells = re.split(r"(?<!\\)\|", re.sub(r"<!--.*?-->", "", line))
            for cell in cells:
                yield from sentences(file, number, cell, frozenset(excepted))
            excepted.clear()
            continue
        if not block:
            begin = number
        block.append(_ITEM.sub("", line).lstrip("# ") if starts else line.strip())
    yield from flush()


def of_openapi(path: Path, file: str) -> Iterator[Sentence]:
    """Every `description` and `summary`."""

    def walk(node: object, place: str) -> Iterator[Sentence]:
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("description", "summary") and isinstance(value, str):
                    for paragraph in re.split(r"\n\s*\n", value):
                        yield from sentences(f"{file}#{place}", 1, paragraph)
                else:
                    yield from walk(value, f"{place}/{key}")
        elif isinstance(node, list):
            for index, value in enumerate(node):
                yield from walk(value, f"{place}/{index}")

    yield from walk(json.loads(path.read_text(encoding="utf-8")), "")


class Source:
    """A Python file, parsed once."""

    def __init__(self, path: Path, file: str) -> None:
        self.file = file
        text = path.read_text(encoding="utf-8")
        self.lines = text.split("\n")
        self.tree = ast.parse(text)

    def docstring(self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Sentence]:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield from self._text(first.value, first.value.value)

    def definition(self, name: str) -> Iterator[Sentence]:
        """The docstrings of the class or function of that name, and of the class's public members."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                yield from self.docstring(node)
                for each in node.body if isinstance(node, ast.ClassDef) else ():
                    if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                        yield from self.docstring(each)

    def classes(self) -> Iterator[Sentence]:
        """The docstrings of every class and of its public members."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                yield from self.definition(node.name)

    def help(self) -> Iterator[Sentence]:
        """The docstrings of commands, and the strings of arguments such as `help=`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and any(_is_command(each) for each in node.decorator_list):
                yield from self.docstring(node)
            elif isinstance(node, ast.keyword) and node.arg in _SHOWN:
                yield from self._strings(node.value)

    def messages(self) -> Iterator[Sentence]:
        """The strings of errors that the file raises."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in node.exc.args:
                    yield from self._strings(argument)

    def _strings(self, value: ast.expr) -> Iterator[Sentence]:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield from self._text(value, value.value)
        elif isinstance(value, ast.JoinedStr):
            parts = (str(each.value) if isinstance(each, ast.Constant) else "CODE" for each in value.values)
            yield from self._text(value, "".join(parts))

    def _text(self, node: ast.expr, text: str) -> Iterator[Sentence]:
        around = (
            self.lines[max(node.lineno - 2, 0) : node.lineno] + self.lines[(node.end_lineno or 1) - 1 : node.end_lineno]
        )
        comments = (line.partition("#")[2] for line in around)
        excepted = frozenset(each["rule"] for line in comments for each in _EXCEPTION.finditer(line))
        line = node.lineno
        for paragraph in text.split("\n\n"):
            yield from sentences(self.file, line, paragraph, excepted)
            line += paragraph.count("\n") + 2


def _is_command(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in ("command", "group")
