"""What NumPy of TensorFlow 1.15's time had and has no more, for test files that use it. Called by in_tenfold.py."""

from __future__ import annotations

import ast
import ctypes
import gc
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


def give_old_names() -> None:
    """`np.asscalar`, `np.float` and the others, and `tostring` of an array."""
    gone: dict[str, Any] = {"asscalar": lambda value: value.item(), "Inf": np.inf, "infty": np.inf, "product": np.prod}
    gone |= {kind.__name__: kind for kind in (bool, float, int, object, str)}
    for name, value in gone.items():
        if name not in vars(np):
            setattr(np, name, value)
    if not hasattr(np.ndarray, "tostring"):
        # A type of C takes no attribute but in its own dictionary.
        gc.get_referents(vars(np.ndarray))[0]["tostring"] = np.ndarray.tobytes
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(np.ndarray))


def old_names(file: Path) -> dict[str, Any]:
    """`int` and `float` of arrays with one element and any rank, where the file only calls them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {
        kind.__name__: _of_one_element(kind)
        for kind in (int, float)
        if all(id(node) in called for node in names if node.id == kind.__name__)
    }


def _of_one_element(kind: Any) -> Any:
    def convert(*args: Any) -> Any:
        one = args and isinstance(args[0], np.ndarray) and args[0].size == 1
        return kind(args[0].item()) if one else kind(*args)

    return convert
