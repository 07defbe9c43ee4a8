"""Finds the compiled loops whose places in memory come from data: by their source, without compiling anything.

A function is a loop where the kernels compile it: its parameters have no types, or it is given to compile_loop. A place
comes from data where it was computed from an element of an array, or assigned under a condition on one, or counts up to
one. What shapes say is no data. Used by tests/unit/house/test_compiled_loops.py.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Reads of these are no data: shapes and sizes do not change while a loop runs.
_SHAPES = ("shape", "strides")
#: The intrinsics that read an index once.
ONCE = frozenset(("once", "once_2"))


def loops_of(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module that are compiled, those that others inline among them, by name; what generates code is
    none. Of a GPU's they are made by functions of the type: `outer.inner`.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    given = {
        argument.id
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "compile_loop"
        for argument in call.args[:1]
        if isinstance(argument, ast.Name)
    }
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or any("intrinsic" in ast.unparse(d) for d in node.decorator_list):
            continue
        if path.parent.name == "_code":
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef) and (inner is not node or _is_untyped(node) or _on_gpu(node)):
                    yield node.name if inner is node else f"{node.name}.{inner.name}", inner
        elif _is_untyped(node) or node.name in given:
            yield node.name, node


def _is_untyped(node: ast.FunctionDef) -> bool:
    return bool(node.args.args) and all(each.annotation is None for each in node.args.args)


def _on_gpu(node: ast.FunctionDef) -> bool:
    return "cuda.grid" in ast.unparse(node) and not any(isinstance(each, ast.Return) for each in node.body)


def _is_data(expression: ast.AST, tainted: set[str]) -> bool:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id in tainted:
            return True
        if isinstance(node, ast.Subscript) and not (
            isinstance(node.value, ast.Attribute) and node.value.attr in _SHAPES
        ):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ONCE:
            return True
    return False


def _targets(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, ast.Tuple):
        return set().union(*map(_targets, target.elts))
    return set()


def _spread(body: list[ast.stmt], under: bool, tainted: set[str]) -> None:
    for node in body:
        match node:
            case ast.Assign(targets=targets, value=value):
                if under or _is_data(value, tainted):
                    tainted.update(*map(_targets, targets))
            case ast.AugAssign(target=target, value=value):
                if under or _is_data(value, tainted):
                    tainted.update(_targets(target))
            case ast.For(target=target, iter=iterated, body=inner):
                counts = under or _is_data(iterated, tainted)
                if counts:
                    tainted.update(_targets(target))
                _spread(inner, counts, tainted)
            case ast.While(test=test, body=inner):
                _spread(inner, under or _is_data(test, tainted), tainted)
            case ast.If(test=test, body=inner, orelse=other):
                _spread([*inner, *other], under or _is_data(test, tainted), tainted)


def places_from_data(loop: ast.FunctionDef) -> list[str]:
    """The subscripts of a loop whose places come from data, as text."""
    tainted: set[str] = set()
    before = -1
    while len(tainted) != before:
        before = len(tainted)
        _spread(loop.body, False, tainted)
    return [
        ast.unparse(node)
        for node in ast.walk(loop)
        if isinstance(node, ast.Subscript)
        and not (isinstance(node.value, ast.Attribute) and node.value.attr in _SHAPES)
        and _is_data(node.slice, tainted)
    ]


def reads_once(loop: ast.FunctionDef) -> bool:
    """Whether it reads an index by the intrinsic."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ONCE
        for node in ast.walk(loop)
    )
