"""Values of parameters as people type them, such as lr=0.1: which text is a number, how a value looks as text. Pure."""

from __future__ import annotations

import math
import re

#: What a parameter of a run may be.
Value = bool | int | float | str

_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_WORDS = {"true": True, "True": True, "false": False, "False": False}


def read_value(text: str) -> Value:
    """ "0.1" → 0.1, "3" → 3, "true" → True; any other text is itself. What float64 cannot hold stays text."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def write_value(value: Value) -> str:
    """The value as `read_value` reads it: true, 3, 0.1; of a float the shortest text that gives it again."""
    return str(value).lower() if isinstance(value, bool) else str(value)
