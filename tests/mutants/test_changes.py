"""What `make mutants` does to a source: which changes there are, what is left alone, names that other edits keep."""

from __future__ import annotations

import ast

import pytest

from mutants.changes import KINDS, apply, changes

SOURCE = '''"""A module."""

from __future__ import annotations

LIMIT = 10


class Box:
    def __repr__(self) -> str:
        return f"Box of {1 + 1}"

    def add(self, x: int = 3, *, deep: bool = False) -> bool:
        """Adds."""
        assert x > 0
        log.debug("adding %d", 1)
        if not deep and x < LIMIT:
            self.check(x)
        elif x:
            raise ValueError(f"{x + 1} is too much")
        self.size += -x
        return x >= 2
'''


def made(kind: str) -> set[str]:
    return {change.what for change in changes(SOURCE) if change.kind == kind}


def test_each_kind_is_found_where_it_is() -> None:
    assert made("comparison") == {
        "x < LIMIT → x <= LIMIT",
        "x < LIMIT → x >= LIMIT",
        "x >= 2 → x > 2",
        "x >= 2 → x < 2",
    }
    assert made("condition") == {"x → not x", "not deep and x < LIMIT → not (not deep and x < LIMIT)"}
    assert made("and/or") == {"not deep and x < LIMIT → not deep or x < LIMIT"}
    assert made("sign") == {"self.size += -x → self.size -= -x", "-x → x"}
    assert made("constant") == {"10 → 11", "3 → 4", "False → True", "2 → 3"}
    assert made("return value") == {"return x >= 2 → return not (x >= 2)"}
    assert made("call left out") == {"self.check(x) → pass"}
    assert made("raise left out") == {"raise ValueError(f'{x + 1} is too much') → pass"}


def test_every_change_compiles_and_differs() -> None:
    for change in changes(SOURCE):
        assert change.kind in KINDS
        assert ast.dump(ast.parse(apply(SOURCE, change))) != ast.dump(ast.parse(SOURCE))


def test_a_change_keeps_its_name_when_lines_come_in_front() -> None:
    longer = SOURCE.replace("LIMIT = 10", "MORE = 'größer'\nLIMIT = 10")

    assert [change.what for change in changes(longer)] == [change.what for change in changes(SOURCE)]
    (turned,) = [change for change in changes(longer) if change.what == "x → not x"]
    assert "elif (not x):" in apply(longer, turned)
    assert turned.function == "Box.add"


def test_the_same_twice_in_a_function_has_two_names() -> None:
    found = changes("def f(x):\n    g(x)\n    h()\n    g(x)\n")

    assert [change.what for change in found] == ["g(x) → pass", "h() → pass", "g(x) → pass #2"]


@pytest.mark.parametrize("source", ["if TYPE_CHECKING:\n    x = 1\n", "def f(a: int) -> A:\n    return None\n"])
def test_what_only_type_checkers_read_is_left_alone(source: str) -> None:
    assert not changes(source)
