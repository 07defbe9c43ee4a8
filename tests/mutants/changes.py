"""Where a source can be changed so that it is wrong, and the source with one such change in it.

Kinds: a comparison, a condition turned round, `and` for `or`, a sign or an operator, a constant off by one, a return
value, a call or a `raise` that is left out. Left alone is what no test should look at: annotations, `assert`, what only
type checkers read, texts for people (`__repr__`, `__str__`, messages of the log below a warning). A change has a name
that other edits of the file do not alter, so that draw.py draws and equivalent.py remembers it by that.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from dataclasses import dataclass, field

KINDS = ("comparison", "condition", "and/or", "sign", "constant", "return value", "call left out", "raise left out")
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
}  # `|` is left alone: in annotations and unions of types it adds nothing that could be wrong
_FOR_PEOPLE = ("__repr__", "__str__")
_LOGGED = ("debug", "info")


@dataclass(frozen=True)
class Change:
    """One way to make a source wrong. `start` and `end` are offsets in its UTF-8 bytes; `text` comes between them."""

    kind: str
    #: The qualified name of the function or class around it, "" for the module itself.
    function: str
    #: `a < b → a <= b`, with ` #2` where the function has the same twice.
    what: str
    line: int
    start: int = field(repr=False)
    end: int = field(repr=False)
    text: str = field(repr=False)


def apply(source: str, change: Change) -> str:
    """The source with the change in it."""
    data = source.encode()
    return (data[: change.start] + change.text.encode() + data[change.end :]).decode()


def changes(source: str) -> list[Change]:
    """Every change of a source, in the order of its text."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for made in finder.found:
        seen[made.function, made.what] += 1
        times = seen[made.function, made.what]
        found.append(made if times == 1 else _renamed(made, f"{made.what} #{times}"))
    return found


def _renamed(change: Change, what: str) -> Change:
    return Change(change.kind, change.function, what, change.line, change.start, change.end, change.text)


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self._starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []
        self.found: list[Change] = []

    def _add(self, kind: str, old: ast.AST, new: ast.AST | str) -> None:
        text = new if isinstance(new, str) else ast.unparse(new)
        before = ast.unparse(old)
        if text == before:
            return
        if isinstance(old, ast.expr):
            text = f"({text})"
        start = self._starts[old.lineno - 1] + old.col_offset  # type: ignore[attr-defined]
        end = self._starts[old.end_lineno - 1] + old.end_col_offset  # type: ignore[attr-defined]
        what = f"{_short(before)} → {_short(new if isinstance(new, str) else ast.unparse(new))}"
        self.found.append(Change(kind, ".".join(self._names), what, old.lineno, start, end, text))  # type: ignore[attr-defined]

    # -- what is walked ----------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in _FOR_PEOPLE or any("overload" in ast.unparse(mark) for mark in node.decorator_list):
            return
        self._names.append(node.name)
        for default in (*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # a message; its parts have no places of their own before Python 3.12

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Constant):
            return
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr in _LOGGED and "log" in ast.unparse(call.func):
                return
            self._add("call left out", node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add("raise left out", node, "pass")  # what it says is for people

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not _is_none(node.value):
            self._add("return value", node, _other_return(node.value))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return
        self._turn(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._turn(node.test)
        for child in (*([] if isinstance(node.test, ast.Constant) else [node.test]), *node.body, *node.orelse):
            self.visit(child)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._turn(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._turn(test)
        self.generic_visit(node)

    def _turn(self, test: ast.expr) -> None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._add("condition", test, test.operand)
        elif not (isinstance(test, ast.Compare) and len(test.ops) == 1):  # else it is a comparison's change
            self._add("condition", test, ast.UnaryOp(ast.Not(), test))

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                changed = copy.deepcopy(node)
                changed.ops[place] = other()
                self._add("comparison", node, changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._add("and/or", node, ast.BoolOp(other, node.values))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = isinstance(node.left, ast.Constant | ast.JoinedStr) and not isinstance(
            getattr(node.left, "value", ""), int | float | complex
        )
        if type(node.op) in _OPERATORS and not text:
            self._add("sign", node, ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in _OPERATORS:
            self._add("sign", node, ast.AugAssign(node.target, _OPERATORS[type(node.op)](), node.value))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub):
            self._add("sign", node, node.operand)
            if isinstance(node.operand, ast.Constant):
                return
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            self._add("constant", node, str(node.value + 1))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _other_return(value: ast.expr) -> str:
    """`return None`, but a truth value turned round."""
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return f"return {not value.value}"
    if isinstance(value, ast.Compare | ast.BoolOp) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    ):
        return f"return not ({ast.unparse(value)})"
    return "return None"


def _short(text: str) -> str:
    text = " ".join(text.replace("|", "¦").split())  # one line, and no column of the table
    return text if len(text) <= 90 else text[:87] + "…"
