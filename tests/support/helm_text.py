"""Renders Helm's templates as far as our chart uses them, for machines without `helm`: Go's text templates with blocks,
variables, pipelines and a few functions. What it does not know is an error, never left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[()|]|:=|[^\s()|]+')


class ChartError(Exception):
    """The chart says that something is missing, or has what this does not know."""


@dataclass(slots=True)
class _Block:
    """A list of texts, actions and blocks within one; `otherwise` is what follows its else."""

    head: str = ""
    body: list[str | tuple[str] | _Block] = field(default_factory=list)
    otherwise: list[str | tuple[str] | _Block] | None = None


def render(chart: Path, values: Mapping[str, Any], *, release: str = "control", namespace: str = "default") -> str:
    """All templates but the notes, as `helm template` prints them. `values` are laid over those of the chart. Raises
    ChartError."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    dot = {
        "Values": _merged(yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8")), values),
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
        "Chart": {"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
    }
    made = _Renderer()
    texts = []
    for file in sorted((chart / "templates").iterdir(), key=lambda file: file.suffix != ".tpl"):
        block = _parsed(file.read_text(encoding="utf-8"), file.name)
        text = made.run(block.body, dot, {"$": dot})
        if file.suffix == ".yaml":
            texts.append(text)
    return "\n---\n".join(texts)


def _merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


def _parsed(text: str, name: str) -> _Block:
    whole = _Block()
    open_blocks = [whole]
    at, trim = 0, False
    for match in _ACTION.finditer(text):
        before = text[at : match.start()]
        before = before.lstrip() if trim else before
        before = before.rstrip() if match[1] else before
        into = open_blocks[-1].body if open_blocks[-1].otherwise is None else open_blocks[-1].otherwise
        into.append(before)
        at, trim = match.end(), bool(match[3])
        word = match[2].split(" ", 1)[0]
        if word in ("if", "range", "define", "with"):
            block = _Block(match[2])
            into.append(block)
            open_blocks.append(block)
        elif word == "else":
            if match[2] != "else" or open_blocks[-1].otherwise is not None:
                raise ChartError(f"{name}: {match[0]} is not known here")
            open_blocks[-1].otherwise = []
        elif word == "end":
            open_blocks.pop()
        elif not match[2].startswith("/*"):
            into.append((match[2],))
    if len(open_blocks) != 1:
        raise ChartError(f"{name}: {{{{ {open_blocks[-1].head} }}}} has no end")
    whole.body.append(text[at:].lstrip() if trim else text[at:])
    return whole


class _Renderer:
    def __init__(self) -> None:
        self._defined: dict[str, _Block] = {}
        self._functions: dict[str, Callable[..., Any]] = {
            "quote": lambda value: '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"',
            "nindent": lambda width, text: "\n" + "\n".join(" " * width + line for line in str(text).split("\n")),
            "toYaml": lambda value: yaml.safe_dump(value, sort_keys=True).rstrip("\n"),
            "default": lambda otherwise, value: value or otherwise,
            "trunc": lambda count, text: text[:count],
            "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
            "printf": lambda form, *values: form % values,
            "int": int,
            "gt": lambda left, right: left > right,
            "required": self._required,
            "include": self._include,
        }

    def run(self, body: Sequence[str | tuple[str] | _Block], dot: Any, variables: dict[str, Any]) -> str:
        out = []
        for each in body:
            if isinstance(each, str):
                out.append(each)
            elif isinstance(each, tuple):
                out.append(self._action(each[0], dot, variables))
            else:
                out.append(self._block(each, dot, variables))
        return "".join(out)

    def _action(self, text: str, dot: Any, variables: dict[str, Any]) -> str:
        name, assigned, expression = text.partition(":=")
        if assigned:
            variables[name.strip()] = self._value(expression, dot, variables)
            return ""
        found = self._value(text, dot, variables)
        return str(found).lower() if isinstance(found, bool) else "" if found is None else str(found)

    def _block(self, block: _Block, dot: Any, variables: dict[str, Any]) -> str:
        word, _, rest = block.head.partition(" ")
        if word == "define":
            self._defined[rest.strip().strip('"')] = block
            return ""
        found = self._value(rest, dot, variables)
        if word == "range":
            return "".join(self.run(block.body, each, dict(variables)) for each in found or ())
        if word != "if":
            raise ChartError(f"{{{{ {block.head} }}}} is not known here")
        return self.run(block.body if found else block.otherwise or (), dot, variables)

    def _value(self, text: str, dot: Any, variables: dict[str, Any]) -> Any:
        words = _WORD.findall(text)
        found = self._pipeline(words, dot, variables)
        if words:
            raise ChartError(f"{{{{ {text} }}}} is not known here: {' '.join(words)}")
        return found

    def _pipeline(self, words: list[str], dot: Any, variables: dict[str, Any]) -> Any:
        """Takes the words of one pipeline off their list, up to a closing parenthesis."""
        found = self._call(words, dot, variables, [])
        while words and words[0] == "|":
            del words[0]
            found = self._call(words, dot, variables, [found])
        return found

    def _call(self, words: list[str], dot: Any, variables: dict[str, Any], last: list[Any]) -> Any:
        if not words:
            raise ChartError("an action has nothing in it")
        function = self._functions.get(words[0])
        if function is not None:
            del words[0]
        arguments = []
        while words and words[0] not in ("|", ")"):
            arguments.append(self._operand(words, dot, variables))
        if function is not None:
            return function(*arguments, *last)
        if len(arguments) != 1 or last:
            raise ChartError(f"{arguments} is no call that is known here")
        return arguments[0]

    def _operand(self, words: list[str], dot: Any, variables: dict[str, Any]) -> Any:
        word = words.pop(0)
        if word == "(":
            found = self._pipeline(words, dot, variables)
            if not words or words.pop(0) != ")":
                raise ChartError("a parenthesis has no other half")
            return found
        if word.startswith('"'):
            return word[1:-1]
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        if word.startswith("."):
            return _at(dot, word[1:])
        if word.startswith("$"):
            name, _, path = word.partition(".")
            if name not in variables:
                raise ChartError(f"{name} is not set")
            return _at(variables[name], path)
        raise ChartError(f"{word!r} is not known here")

    def _required(self, message: str, value: Any) -> Any:
        if value in (None, ""):
            raise ChartError(message)
        return value

    def _include(self, name: str, dot: Any) -> str:
        if name not in self._defined:
            raise ChartError(f"there is no template {name!r}")
        return self.run(self._defined[name].body, dot, {"$": dot})


def _at(value: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        if not isinstance(value, dict) or name not in value:
            raise ChartError(f"there is no value .{path}")
        value = value[name]
    return value
