"""Gradient rows of Python functions (PyFunc): none, since the runtime cannot differentiate them."""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable("EagerPyFunc", "PyFunc", "PyFuncStateless", why="the runtime cannot look inside")
