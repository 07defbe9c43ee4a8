"""`python -m tenfold_kernels.fusion.compile FOLDER`: compiles runs into a cache folder, for another process to load.

Runs come on standard input as a JSON list of [source, signature]. Started by compiler.py; cache.py does the work.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tenfold_kernels.compile_process import given_work
from tenfold_kernels.fusion.cache import FusionCache


def main() -> None:
    """Exits with 0 once everything is compiled and on disk."""
    cache = FusionCache(Path(sys.argv[1]))
    for source, signature in given_work():
        cache.function(source, signature)


if __name__ == "__main__":
    main()
