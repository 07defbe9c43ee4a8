"""When a program tells what it recorded of itself: with its first report, and again once that has changed.

The first worker or the chief tells it for the run. Where the environment names a file, as the launchers of this machine
do, it is written there, too. Owned by program_report.py, used on its thread.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from tenfold.runs import recorded
from tenfold.runs.source import source_of
from tenfold_core.run_states import SERVERS
from tenfold_core.user_folders import OUTPUT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

log = logging.getLogger(__name__)

#: The variable that names the file.
FILE = "TENFOLD_RUN_FILE"
#: The variable that names the folder for what the run's programs leave.
OUTPUT = "TENFOLD_OUTPUT"
#: The file's name in the folder of a run.
NAME = "experiment.json"
#: Seconds that Git may take.
_GIT_S = 2.0


class RecordedNews:
    """What one program has recorded and not told yet."""

    def __init__(self) -> None:
        self._told: dict[str, Any] | None = None
        self._telling: dict[str, Any] | None = None
        self._written: dict[str, Any] | None = None
        #: Asked once: the files may change under the program.
        self._source: tuple[dict[str, Any] | None] | None = None
        #: A service of an earlier release takes none of it.
        self._unwanted = False

    def of(self, job: str, index: int) -> dict[str, Any]:
        """The member `recorded` of the next report of that task; nothing where it tells nothing new. Blocks the first
        time for Git."""
        self._telling = None
        if job == SERVERS or index != 0:
            return {}
        if self._source is None:
            self._source = (source_of(os.getcwd(), _GIT_S),)
        now = {
            "parameters": recorded.parameters(),
            "versions": recorded.versions(),
            "seed": _seed(),
            "source": self._source[0],
        }
        self._write(now)
        if now == self._told or self._unwanted:
            return {}
        self._telling = now
        return {"recorded": now}

    def accepted(self) -> None:
        """The service has taken the last report."""
        self._told = self._telling or self._told

    def refused(self) -> bool:
        """The service did not understand the last report. Whether it may be what `of` gave, which it is not told
        again."""
        self._unwanted, self._telling = self._telling is not None, None
        return self._unwanted

    def _write(self, now: dict[str, Any]) -> None:
        path = os.environ.get(FILE)
        if path and now != self._written:
            self._written = now
            try:
                update(path, {"recorded": now})
            except (OSError, ValueError) as error:
                log.warning("what this program recorded cannot be written to %s: %s", path, error)


def folder_variables(folder: Path, run: str, given: Mapping[str, Any]) -> dict[str, str]:
    """What tasks of this machine are told of the run's folder: there a file says what the run is called, and a folder
    is made for what they leave. Raises OSError."""
    update(folder / NAME, {"run": run, "given": given})
    output = folder / OUTPUT_FOLDER
    output.mkdir(mode=0o700, exist_ok=True)
    return {FILE: str(folder / NAME), OUTPUT: str(output)}


def update(path: str | Path, members: Mapping[str, Any]) -> None:
    """Sets members of the JSON object in the file, which is replaced as a whole. Raises OSError, and ValueError where
    the file holds something else."""
    held: dict[str, Any] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            held = json.load(file)
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump({**held, **members}, file, indent=1)
    os.replace(beside, path)


def _seed() -> int | None:
    """The graph-level seed of the newest session that has one."""
    observer = getattr(sys.modules.get("tenfold.session.observing"), "observer", None)
    seed = None if observer is None else observer.seed
    return seed if isinstance(seed, int) and abs(seed) < 1 << 63 else None
