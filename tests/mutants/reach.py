"""Which tests reach which statement of a file: its functions' statements say so, each with its line, as they run.

A changed statement needs only the tests that reach it. What a loop compiler reads is left as it is, and so is what runs
once, when the module is imported or at the first call: there every test counts. Statements in processes that a test
starts write to the same file.
"""

from __future__ import annotations

import ast
import builtins
import os
import re

NAME = "__tenfold_reached__"
#: The file that the lines are written to, one a line; the name of it is handed to processes that tests start.
VARIABLE = "TENFOLD_MUTANTS_REACHED"
#: Decorators of functions that are compiled, from their text or by Numba, and of those whose result is kept: the first
#: test that calls one would be the only one to reach it.
_LEFT_ALONE = re.compile(r"jit|loop|inline|vectorize|device|scalar|compiled|kernel_body|rule|cache", re.IGNORECASE)


class _Marker(ast.NodeTransformer):
    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self._inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if any(_LEFT_ALONE.search(ast.unparse(mark)) for mark in node.decorator_list):
            return node
        outer, self._inside = self._inside, True
        self.generic_visit(node)
        self._inside = outer
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self._inside = self._inside, False
        self.generic_visit(node)
        self._inside = outer
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._inside:
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(node, name, self._marked(block, isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)))
        return node

    def _marked(self, block: list[ast.stmt], with_text: bool) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for place, statement in enumerate(block):
            text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not (with_text and place == 0 and text) and not isinstance(statement, ast.Global | ast.Nonlocal):
                self.spans.append((statement.lineno, statement.end_lineno or statement.lineno))
                found.append(ast.parse(f"{NAME}({statement.lineno})").body[0])
            found.append(statement)
        return found


def marked(source: str) -> tuple[str, list[tuple[int, int]]]:
    """The source whose statements say that they run, and the first and last line of each of these."""
    marker = _Marker()
    tree = marker.visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n", marker.spans


def statement_of(line: int, spans: list[tuple[int, int]]) -> int | None:
    """The first line of the smallest marked statement around a line; None where nothing is marked."""
    around = [(last - first, -first) for first, last in spans if first <= line <= last]
    return -min(around)[1] if around else None


_seen: set[int] = set()
#: Those that this process could not write: a test had used up its descriptors.
_unwritten: set[int] = set()


def _reached(line: int) -> None:
    if line not in _seen:
        _seen.add(line)
        if path := os.environ.get(VARIABLE):
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            except OSError:
                _unwritten.add(line)
                return
            os.write(descriptor, b"%d\n" % line)
            os.close(descriptor)


def install() -> None:
    """Gives marked statements what they call. The interpreter of a scratch tree does so at its start, see warm.py."""
    setattr(builtins, NAME, _reached)


def take(path: str) -> set[int]:
    """What was reached since the last call, by this process and by those that it has started."""
    _seen.clear()
    with open(path, "a+", encoding="ascii") as file:
        file.seek(0)
        found = {int(line) for line in file.read().split()}
        file.truncate(0)
    found |= _unwritten
    _unwritten.clear()
    return found
