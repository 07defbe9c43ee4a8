"""`tenfold demo`: examples/demo.py, which comes with the package, so that one who has no checkout can run it, too.

In a checkout it is the file of the checkout: `make demo` is this command. The demo takes this process over, so that
signals and its exit code are its own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import click

import tenfold

#: What the demo imports → the extra that brings it.
NEEDS = {"fastapi": "control", "sklearn": "examples"}


def examples() -> Path:
    """The folder of the demo: within the package where it was installed from a wheel, else the checkout's."""
    package = Path(tenfold.__file__).parent
    packed = package / "cli" / "programs"  # as pyproject.toml has the wheel put them
    return packed if packed.is_dir() else package.parents[1] / "examples"


@click.command()
def demo() -> None:
    """Bring up a cluster on this machine and train a classifier of handwritten digits on it.

    A control service, a parameter server and two workers, for about ten seconds. Nothing is kept.
    """
    missing = [extra for module, extra in NEEDS.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise click.ClickException(
            f"the demo needs what the extra{'s' * (len(missing) > 1)} {' and '.join(missing)} of Tenfold "
            f"bring{'s' * (len(missing) == 1)}: pip install 'tenfold[control,examples]'."
        )
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, str(examples() / "demo.py")])
