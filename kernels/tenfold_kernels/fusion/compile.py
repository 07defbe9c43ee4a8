"""`python -m tenfold_kernels.fusion.compile FOLDER`: compiles runs into a cache folder, for another process to load.

A run comes on standard input as [source, signature]. Started by compiler.py; cache.py does the work.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tenfold_kernels.compile_process import do_given_work
from tenfold_kernels.fusion.cache import FusionCache

if __name__ == "__main__":
    do_given_work(FusionCache(Path(sys.argv[1])).function)
