"""Hosts as users write them: "gpu[01-03,7],login", or a file with a host a line and what it has.

    node1   slots=4  address=10.0.0.1        # a comment
    me@node[2-3]

A name may be one that OpenSSH's configuration explains. `slots` bounds how many tasks go there, `address` is what
other tasks reach it by, where that is not its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

#: Hosts of one list: more is a slip of the pen.
MOST_HOSTS = 10_000
_NAME = re.compile(r"(?:[A-Za-z0-9_.\-]+@)?[A-Za-z0-9_.:\-]+")


@dataclass(frozen=True, slots=True)
class Host:
    """One host: `name` as ssh takes it."""

    name: str
    #: How many tasks it takes; None: any number.
    slots: int | None = None
    #: What tasks reach it by; None leaves it to ssh's configuration.
    address: str | None = None


def expanded(text: str) -> list[str]:
    """The names of a list, in order: "a[1-2],b" → a1, a2, b. Leading zeros stay. Raises ValueError."""
    found: list[str] = []
    for item in _items(text):
        names = [""]
        for at, part in enumerate(re.split(r"\[([^\[\]]*)\]", item)):
            pieces = [part] if at % 2 == 0 else _numbers(part, item)
            if len(names) * len(pieces) > MOST_HOSTS:
                raise ValueError(f"{item!r} names more than {MOST_HOSTS} hosts")
            names = [name + piece for name in names for piece in pieces]
        for name in names:
            # a name that begins with - would be an option of ssh
            if not _NAME.fullmatch(name) or name.startswith("-"):
                raise ValueError(f"{name!r} is not a name of a host")
        found += names
    if len(found) > MOST_HOSTS:
        raise ValueError(f"the list names more than {MOST_HOSTS} hosts")
    return found


def read_list(text: str) -> list[Host]:
    """Hosts of a list, with nothing known of them but their names. Raises ValueError, also for an empty list."""
    return _distinct([Host(name) for name in expanded(text)], "the list")


def read_file(path: str) -> list[Host]:
    """Hosts of a file. Raises OSError, and ValueError naming the line."""
    found: list[Host] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            found += _hosts(words)
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from None
    return _distinct(found, path)


def _hosts(words: list[str]) -> list[Host]:
    given = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key not in ("slots", "address") or not value:
            raise ValueError(f"{word!r} is neither slots=NUMBER nor address=NAME")
        given[key] = value
    slots = given.get("slots")
    if slots is not None and (not slots.isdecimal() or not int(slots)):
        raise ValueError(f"slots={slots} is not a number of tasks")
    names, address = expanded(words[0]), given.get("address")
    if address is not None and len(names) > 1:
        raise ValueError(f"one address for {len(names)} hosts")
    return [Host(name, None if slots is None else int(slots), address) for name in names]


def _distinct(hosts: list[Host], where: str) -> list[Host]:
    if not hosts:
        raise ValueError(f"{where} names no host")
    names = [host.name for host in hosts]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise ValueError(f"{where} names {twice} twice; write slots=2 for two tasks")
    return hosts


def _items(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    if text.count("[") != text.count("]"):
        raise ValueError(f"{text!r} has a bracket without its other half")
    return [item.strip() for item in re.split(r",(?![^\[]*\])", text) if item.strip()]


def _numbers(text: str, item: str) -> list[str]:
    found: list[str] = []
    for piece in text.split(","):
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", piece.strip())
        if match is None:
            raise ValueError(f"{piece!r} in {item!r} is neither a number nor a range as 1-3")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= MOST_HOSTS:
            raise ValueError(f"{piece!r} in {item!r} is not a range")
        width = len(first) if first.startswith("0") or len(first) == len(last) else 0
        found += [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    return found
