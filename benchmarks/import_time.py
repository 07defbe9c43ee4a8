#!/usr/bin/env python3
"""The time to load Tenfold beyond `import numpy`, in fresh interpreters. The limit is 0.25 s.

    python benchmarks/import_time.py [--runs 11]

`import tenfold` alone is no fair measure: it is a table of names, each loaded at its first use, and does not even load
numpy. The limit therefore applies to the whole public API, loaded name by name; a small graph is timed for
comparison.

The programs take turns, and what is reported is the difference within each round, with its quartiles: on a busy machine
`import numpy` alone moves by half from run to run, and a difference of medians with it. No test times this.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

#: All public names but the client of the control service, which programs import separately and which loads httpx.
WHOLE = "the whole public API"
PROGRAMS = {
    "python": "pass",
    "import numpy": "import numpy",
    "import numpy and protobuf": "import numpy, google.protobuf.descriptor_pool",
    "import tenfold (names only)": "import tenfold",
    "a small graph": "import tenfold as tf; tf.gradients(tf.square(tf.Variable(1.0)), tf.trainable_variables())",
    WHOLE: (
        "import tenfold as tf; [getattr(tf, name) for name in dir(tf) if name != 'control']; "
        "[getattr(tf.train, name) for name in dir(tf.train)]"
    ),
    "tenfold --help": "import sys; sys.argv = ['tenfold', '--help']; from tenfold.cli.main import main; main()",
}


def seconds(program: str) -> float:
    """Wall-clock time of a whole interpreter that runs `program`."""
    start = time.perf_counter()
    # with bytecode caches, as by default
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL, env=kept)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="Time `import tenfold` against `import numpy`.")
    parser.add_argument("--runs", type=int, default=11, help="rounds; at least 2")
    runs = max(2, parser.parse_args().runs)

    for program in PROGRAMS.values():
        seconds(program)  # fills the page cache and writes the .pyc files
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(runs):
        for name, program in PROGRAMS.items():
            times[name].append(seconds(program))

    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"Python {platform.python_version()}, {platform.machine()}, median of {runs}")
    for name, median in medians.items():
        print(f"  {name:28} {median * 1000:7.1f} ms")
    print("more than import numpy, by round: median [quartiles] least (promise: under 250 ms)")
    for name in ("a small graph", WHOLE):
        extra = [1000 * (each - base) for each, base in zip(times[name], times["import numpy"], strict=True)]
        low, middle, high = statistics.quantiles(extra, n=4)
        print(f"  {name:28} {middle:7.1f} ms [{low:.1f}, {high:.1f}] {min(extra):.1f}")


if __name__ == "__main__":
    main()
