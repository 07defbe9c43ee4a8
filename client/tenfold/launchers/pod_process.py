"""The first process of a task's pod: `python -P -m tenfold.launchers.pod_process [--start FOLDER] [--end FILE] [WORD]`.

It starts the task's program as `tenfold run` does on one machine, passes on SIGTERM, which a first process would not
even notice, and leaves the exit code and the error where Kubernetes keeps a container's last words. What it starts
stands in FOLDER, where kubernetes_pods.py has put it as a Secret; in a manifest of kubernetes_manifests.py it follows
on the command line. It talks to nobody: neither the API server nor the process that launched the run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenfold.cli.scratch import scratch_folder
from tenfold.launchers.local import LocalProcesses
from tenfold_core.exit_codes import STOP_SIGNALS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: In FOLDER: what is to be started, and the pieces of the working directory, in the order of their names.
TASK_FILE, PIECES = "task.json", "package-*"
#: Bytes that Kubernetes keeps of a container's last words.
LAST_WORDS = 4096
#: Seconds between two looks while nothing happens.
_LOOK_S = 60.0


@dataclass(frozen=True, slots=True)
class Task:
    """What one pod runs."""

    name: str
    program: Sequence[str]
    interpreter: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def main() -> None:
    sys.exit(run(*given(sys.argv[1:])))


def given(arguments: Sequence[str]) -> tuple[Path | None, Path | None, list[str]]:
    """Folder, file and program of the command line; what follows the first word that is no option of ours is the
    program's."""
    found: dict[str, Path | None] = {"--start": None, "--end": None}
    rest = list(arguments)
    while len(rest) > 1 and rest[0] in found:
        found[rest[0]] = Path(rest[1])
        del rest[:2]
    return found["--start"], found["--end"], rest


def run(start: Path | None, end: Path | None, program: Sequence[str]) -> int:
    """Runs the task to its end; the exit code for a container. Blocks. Belongs to the main thread."""
    wishes: list[int] = []
    held = ExitStack()
    error: dict[str, str] | None
    with held:
        for each in STOP_SIGNALS:
            signal.signal(each, lambda number, frame: wishes.append(number))
        try:
            task = read_task(start, program)
            if start is not None:
                _go_to_package(start, held)
            code, error = _run(task, wishes)
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as wrong:
            code, error = 1, {"type": type(wrong).__name__, "message": f"the task cannot be started: {wrong}"}
    if end is not None:
        try:
            end.write_bytes(last_words(code, error))
        except OSError as wrong:
            print(f"the end of the task is not written to {end}: {wrong}", file=sys.stderr, flush=True)
    return code if code >= 0 else 128 - code


def read_task(start: Path | None, program: Sequence[str]) -> Task:
    """The task of the folder, or the one whose program was given. Raises OSError; ValueError, KeyError and TypeError
    for a file of another form."""
    if start is None:
        if not program:
            raise ValueError("there is no program: give --start FOLDER, or a program")
        return Task(os.environ.get("TENFOLD_TASK", "task"), list(program))
    found = json.loads((start / TASK_FILE).read_text(encoding="utf-8"))
    return Task(found["name"], found["program"], found["interpreter"], found["env"])


def last_words(code: int, error: Mapping[str, str] | None) -> bytes:
    """How the task ended, in what Kubernetes keeps of it: an error that is too long loses its end."""
    found: dict[str, Any] = {"tenfold": 1, "code": code}
    if error is None:
        return json.dumps(found).encode()
    left = dict(error)
    while True:
        text = json.dumps({**found, "error": left}, ensure_ascii=False).encode("utf-8", "replace")
        if len(text) <= LAST_WORDS:
            return text
        longest = max(left, key=lambda key: len(left[key]))
        left[longest] = left[longest][: len(left[longest]) // 2] + "…"


def read_last_words(text: str) -> tuple[int, dict[str, str] | None] | None:
    """(exit code, error) of what `last_words` wrote; None for anything else, as a pod that was killed leaves none."""
    if not text.startswith('{"tenfold": 1'):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    code, error = found.get("code"), found.get("error")
    if not isinstance(code, int) or not -64 <= code <= 255 or not isinstance(error, dict | None):
        return None
    return code, None if error is None else {key: str(value) for key, value in error.items()}


def _run(task: Task, wishes: list[int]) -> tuple[int, dict[str, str] | None]:
    #: How many of the wishes the program has heard.
    passed: list[int] = []
    with LocalProcesses(_show, 1, whole=True) as processes:

        def asked(number: int, frame: Any) -> None:
            wishes.append(number)
            processes.wake()

        def is_asked() -> bool:
            return len(wishes) > len(passed)

        for each in STOP_SIGNALS:
            signal.signal(each, asked)
        if wishes:
            return -wishes[0], None
        processes.start(task.name, task.program, env=task.env, interpreter=task.interpreter)
        ended = None
        while ended is None:
            if is_asked():
                passed += wishes[len(passed) :]
                processes.terminate(task.name)
            ended = processes.wait_for_exit([task.name], _LOOK_S, unless=is_asked)
        code = ended[1]
        processes.clear()
        return code, processes.error(task.name) if code else None


def _show(name: str, line: str) -> None:
    print(line, flush=True)


def _go_to_package(start: Path, held: ExitStack) -> None:
    """Makes the working directory of the pieces, where there are any, and goes there. Raises OSError, BadZipFile."""
    pieces = sorted(start.glob(PIECES))
    if not pieces:
        return
    folder = held.enter_context(scratch_folder("pod"))
    with (folder / "package.zip").open("w+b") as whole:
        for piece in pieces:
            whole.write(piece.read_bytes())
        with zipfile.ZipFile(whole) as package:
            package.extractall(folder / "work")
    os.chdir(folder / "work")


if __name__ == "__main__":
    main()
