"""`python few_files_main.py SOFT HARD COMMAND…`: the `tenfold` command in a process with these limits of open files."""

from __future__ import annotations

import resource
import sys

from tenfold.cli.main import main

if __name__ == "__main__":
    soft, hard, *command = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), int(hard)))
    sys.argv = ["tenfold", *command]
    main()
