"""What is a fault: one input given to one target, and the bounds that it must keep. Used by run.py and replay.py.

A target's `one_input` raises nothing for what a peer, a file or a graph may hold: it catches the errors that the reader
documents. Whatever else comes out is a fault, and so is an input that takes too long or too much memory.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parent / "corpus"
#: An input may take so long, and the process so much memory on top of what it had.
SECONDS, BYTES = 1.0, 512 << 20


class TargetModule(Protocol):
    """What each file of targets/ has. One more function is free to be there: `mutated`, see run.py."""

    def one_input(self, data: bytes) -> None:
        """Raises only for a fault."""

    def seeds(self) -> Iterable[bytes]:
        """Inputs that the target reads without complaint, or nearly so."""


#: How many errors were taken so far as what they are: the targets' seeds should give few.
refused = 0


class Fault(Exception):
    """An answer that no input may get. What was raised instead is its cause."""


def load(name: str) -> TargetModule:
    """The target of that name; what it tries is imported with it."""
    return cast("TargetModule", importlib.import_module(f"fuzz.targets.{name}"))


@contextlib.contextmanager
def refusals(*others: type[Exception]) -> Iterator[None]:
    """Takes what a reader documents: the errors of the tree, and `others`. An InternalError stands for a bug."""
    global refused
    try:
        yield
    except errors.InternalError as error:
        raise Fault(f"an InternalError: {error.message}") from error
    except (errors.OpError, *others):
        refused += 1


def attempt(target: TargetModule, data: bytes, seconds: float = SECONDS) -> None:
    """Gives the target one input. Raises what it raises, and Fault for one that takes longer than `seconds`.

    Time is the lesser of the clock's and the processor's: neither a busy machine nor a thread that compiles counts.
    What waits for ever without computing is ended by who called.
    """
    clock, processor = time.monotonic(), time.process_time()
    target.one_input(data)
    took = min(time.monotonic() - clock, time.process_time() - processor)
    if took > seconds:
        raise Fault(f"it took {took:.1f} s, and {seconds:g} s are allowed")


def signature(error: BaseException) -> str:
    """Which fault it is: the type of the first error and the last place in our code, such as "ValueError-png-81"."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(str(ROOT)) and "/.venv" not in frame.filename]
    place = f"{Path(own[-1].filename).stem}-{own[-1].lineno}" if own else "elsewhere"
    return f"{type(error).__name__}-{place}"


def bound_memory(extra: int = BYTES) -> None:
    """Lets this process take `extra` bytes more than it has; beyond that an allocation fails."""
    with open("/proc/self/status") as status:
        taken = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = taken + extra
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))


def cache_folder() -> Path:
    """Where the fuzzer keeps what it has come upon: in the user's cache, not in the tree."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "tenfold" / "fuzz"


def kept(name: str) -> list[Path]:
    """The inputs of the corpus that once found something in this target."""
    folder = CORPUS / name
    return sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
