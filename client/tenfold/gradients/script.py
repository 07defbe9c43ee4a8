"""Gradient rows of functions of the client's process: the runtime cannot look inside."""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable("EagerPyFunc", "PyFunc", "PyFuncStateless", why="the runtime cannot look inside")
