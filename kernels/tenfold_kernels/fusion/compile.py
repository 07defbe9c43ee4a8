"""`python -m tenfold_kernels.fusion.compile FOLDER`: compiles runs into a cache folder, for another process to load.

Runs come on standard input as a JSON list of [source, signature]. In a process of its own, at a lower priority, LLVM
takes neither the interpreter's lock nor a core from the steps that go on meanwhile. Started by
tenfold_services/worker/fusion_tiers.py; cache.py does the work.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from tenfold_kernels.fusion.cache import FusionCache


def main() -> None:
    """Exits with 0 once everything is compiled and on disk."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(5)
    cache = FusionCache(Path(sys.argv[1]))
    for source, signature in json.load(sys.stdin):
        cache.function(source, signature)


if __name__ == "__main__":
    main()
