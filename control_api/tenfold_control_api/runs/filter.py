"""The language of `GET /v1/runs?filter=`: `tag=baseline and (lr>0.01 or not state=FAILED)`. Pure.

    filter      and-terms joined by "or"
    and-term    factors joined by "and"
    factor      "not" factor, "(" filter ")", or a comparison
    comparison  name operator value, the operator one of = != < <= > >= ~

A name or a value with other characters stands in quotes. selection.py says what a run has under a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tenfold_core.parameter_values import read_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.parameter_values import Value

#: Characters of a filter, and how deep parentheses and "not" may be nested.
MAX_LENGTH, MAX_DEPTH = 2000, 50

OPERATORS = ("<=", ">=", "!=", "=", "<", ">", "~")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<operator> <=|>=|!=|=|<|>|~ )
    | (?P<bracket> [()] )
    | "(?P<double> [^"]* )"
    | '(?P<single> [^']* )'
    | (?P<word> [^\s()<>=!~"']+ )
    )""",
    re.VERBOSE,
)
_KEYWORDS = ("and", "or", "not")

#: What a run has under a name: nothing, one value, or several.
Values: TypeAlias = "Callable[[str], Sequence[Value]]"


class FilterError(ValueError):
    """A filter that is no sentence of the language. `position` counts characters from 0."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"{problem}, at character {position + 1}")
        self.problem, self.position = problem, position


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    operator: str
    #: As it was typed; it is a number where it reads as one and the run's value is a number.
    value: str

    def holds(self, values: Values) -> bool:
        """For a run with several values, such as tags, whether it holds for one of them. "!=" is the opposite of "=":
        it holds for a run without the value, for which no other comparison does."""
        if self.operator == "!=":
            return not Comparison(self.name, "=", self.value).holds(values)
        return any(_holds(found, self.operator, self.value) for found in values(self.name))


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter

    def holds(self, values: Values) -> bool:
        return not self.part.holds(values)


@dataclass(frozen=True, slots=True)
class Both:
    parts: tuple[Filter, ...]

    def holds(self, values: Values) -> bool:
        return all(part.holds(values) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Filter, ...]

    def holds(self, values: Values) -> bool:
        return any(part.holds(values) for part in self.parts)


Filter: TypeAlias = Comparison | Not | Both | Either


@dataclass(frozen=True, slots=True)
class _Token:
    #: operator | bracket | word | quoted | end
    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str | None:
        """and, or, not: unless it is in quotes."""
        lower = self.text.lower()
        return lower if self.kind == "word" and lower in _KEYWORDS else None

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def parse(text: str) -> Filter:
    """Raises FilterError, which says what was expected where."""
    if len(text) > MAX_LENGTH:
        raise FilterError(f"the filter has {len(text)} characters, and may have {MAX_LENGTH}", MAX_LENGTH)
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            missing = "a quote that is not closed" if text[at] in "\"'" else f"{text[at]!r} has no meaning here"
            raise FilterError(missing, at)
        kind = str(match.lastgroup)
        quoted = kind in ("double", "single")
        found.append(_Token("quoted" if quoted else kind, match[kind], match.start(kind) - quoted))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


class _Parser:
    """Recursive descent over tokens; each method takes what it is named after."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    def whole(self) -> Filter:
        found = self._either(0)
        if self._next.kind != "end":
            raise FilterError(f"expected 'and', 'or' or the end, and not {self._next}", self._next.position)
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _either(self, depth: int) -> Filter:
        parts = [self._both(depth)]
        while self._next.keyword == "or":
            self._take()
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self, depth: int) -> Filter:
        parts = [self._factor(depth)]
        while self._next.keyword == "and":
            self._take()
            parts.append(self._factor(depth))
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _factor(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise FilterError(f"more than {MAX_DEPTH} parentheses and 'not' inside each other", self._next.position)
        if self._next.keyword == "not":
            self._take()
            return Not(self._factor(depth + 1))
        if self._next.text == "(" and self._next.kind == "bracket":
            opened = self._take()
            found = self._either(depth + 1)
            if self._next.text != ")" or self._next.kind != "bracket":
                raise FilterError(f"expected ')' for the '(' at character {opened.position + 1}", self._next.position)
            self._take()
            return found
        return self._comparison()

    def _comparison(self) -> Comparison:
        name = self._take()
        if name.kind not in ("word", "quoted") or name.keyword:
            raise FilterError(f"expected a name, such as tag, state or lr, and not {name}", name.position)
        operator = self._take()
        if operator.kind != "operator":
            known = " ".join(OPERATORS)
            raise FilterError(f"expected one of {known} after {name.text!r}, and not {operator}", operator.position)
        value = self._take()
        if value.kind not in ("word", "quoted") or value.keyword:
            hint = "; a value that is a word of the language stands in quotes" if value.keyword else ""
            wanted = f"expected a value after '{name.text}{operator.text}', and not {value}"
            raise FilterError(f"{wanted}{hint}", value.position)
        return Comparison(name.text, operator.text, value.text)


def _holds(found: Value, operator: str, text: str) -> bool:
    if operator == "~":
        return text.lower() in _as_text(found).lower()
    wanted = read_value(text)
    numbers = _is_number(found) and _is_number(wanted)
    left, right = (found, wanted) if numbers else (_as_text(found), text)
    if operator == "=":
        return left == right or (isinstance(found, bool) and found == wanted)
    if not numbers and (not isinstance(found, str) or _is_number(wanted)):
        return False  # a text is neither less nor more than a number
    less, equal = left < right, left == right  # type: ignore[operator]
    return {"<": less, "<=": less or equal, ">": not (less or equal), ">=": not less}[operator]


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
