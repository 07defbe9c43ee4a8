"""`experimental_jit_scope`: marks operations for XLA's compiler, of which there is none, so that nothing happens."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def experimental_jit_scope(compile_ops: Any = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """A scope without effect. As TensorFlow 1.15's `tf.contrib.compiler.jit.experimental_jit_scope` without XLA."""
    yield
