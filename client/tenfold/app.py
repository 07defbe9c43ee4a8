"""`tf.app`: `tf.app.run()` reads the command line flags and calls the program's `main(argv)`.

Behaves as TensorFlow 1.15's, which runs absl.app. absl.app is not used here, because importing it defines flags of its
own, among them `log_dir`, which many programs define, and replaces the program's log handler.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold import flags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["flags", "run"]


def run(main: Callable[[Sequence[str]], Any] | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Calls `main` (default: the program's) with the arguments that are not flags, and exits with its result.

    `--help` prints the flags of the program, and exits with 1, as absl does.
    """
    values = flags.FLAGS
    if "help" not in values:
        flags.DEFINE_boolean("help", False, "Show this help.", flag_values=values)
    rest = values(sys.argv if argv is None else argv, known_only=True)
    program = sys.modules["__main__"]
    if values["help"].value is True:
        print(program.__doc__ or f"\nUSAGE: {sys.argv[0]} [flags]\n", values.main_module_help(), sep="\n")
        sys.exit(1)
    sys.exit((program.main if main is None else main)(rest))
