"""What a check of `tenfold doctor` says: one line, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    #: What was looked at: "ports", "/job:ps/task:0".
    what: str
    #: How it is.
    says: str
    #: What to do; empty where nothing is wrong.
    remedy: str = ""


def ok(what: str, says: str) -> Finding:
    return Finding("ok", what, says)


def warn(what: str, says: str, remedy: str) -> Finding:
    return Finding("warn", what, says, remedy)


def fail(what: str, says: str, remedy: str) -> Finding:
    return Finding("fail", what, says, remedy)
