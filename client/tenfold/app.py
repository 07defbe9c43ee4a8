"""`tf.app`: `tf.app.run()` reads the command line flags and calls the program's `main(argv)`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold import flags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["flags", "run"]


def run(main: Callable[[Sequence[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Calls `main` (default: that of the program) with the arguments that are no flags, and exits with its result."""
    rest = flags.FLAGS(sys.argv if argv is None else argv)
    function = sys.modules["__main__"].main if main is None else main
    sys.exit(function(rest))
