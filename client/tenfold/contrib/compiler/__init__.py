"""`tf.contrib.compiler`: XLA's names. There is no XLA here: what would be compiled runs as it is.

Programs use these to go faster, not to compute something else.
"""

from tenfold.contrib.compiler import jit, xla

__all__ = ["jit", "xla"]
