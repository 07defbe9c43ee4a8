"""A run as MLflow's file store has it: what `mlflow ui --backend-store-uri FOLDER` shows.

The layout is that of MLflow's `FileStore`: a folder for each experiment, in it one for each run with params/, metrics/,
tags/ and artifacts/, a file for each name. A run that is written again is replaced.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tenfold.exports.curves import leading_curves
from tenfold_core.parameter_values import write_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tenfold.control import Run, RunProgress

#: Our states as MLflow numbers them: SCHEDULED, RUNNING, FINISHED, FAILED, KILLED.
_STATUS = {"PENDING": 2, "RUNNING": 1, "SUCCEEDED": 3, "FAILED": 4, "STOPPED": 5}
#: What a name may have; MLflow refuses a store with another one.
_NOT_IN_NAMES = re.compile(r"[^\w.\- /:]")
#: Characters of a parameter's value.
_VALUE = 6000


def write_run(store: Path, experiment: str, run: Run, progress: RunProgress) -> Path:
    """Writes the run into the store, as one of that experiment. Returns the run's folder, whose `artifacts` is for its
    files. Raises OSError."""
    experiment_id = str(int(_digest(experiment)[:15], 16))
    created = _milliseconds(run.created)
    home = store.absolute() / experiment_id
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "meta.yaml").exists():
        about: dict[str, Any] = {"artifact_location": home.as_uri(), "creation_time": created}
        about |= {"experiment_id": experiment_id, "last_update_time": created}
        _write_yaml(home / "meta.yaml", {**about, "lifecycle_stage": "active", "name": experiment})
    run_id = _digest(run.uid)
    folder = home / run_id
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("params", "metrics", "tags", "artifacts"):
        (folder / name).mkdir(parents=True)
    for name, value in run.parameters.items():
        _write(folder / "params", name, write_value(value)[:_VALUE])
    for name, curve in leading_curves(progress).items():
        points = zip(curve.times, curve.values, curve.steps, strict=True)
        lines = [f"{round(moment * 1000)} {_number(value)} {step or 0}\n" for moment, value, step in points]
        _write(folder / "metrics", name, "".join(lines))
    for name, text in _tags(run).items():
        _write(folder / "tags", name, text)
    _write_yaml(
        folder / "meta.yaml",
        {
            **{"artifact_uri": (folder / "artifacts").as_uri(), "experiment_id": experiment_id, "entry_point_name": ""},
            **{"run_id": run_id, "run_uuid": run_id, "run_name": run.display_name or run.name, "user_id": ""},
            **{"source_name": "", "source_type": 4, "source_version": "", "lifecycle_stage": "active", "tags": []},
            **{"status": _STATUS[run.state], "start_time": _milliseconds(run.started or run.created)},
            "end_time": None if run.ended is None else _milliseconds(run.ended),
        },
    )
    return folder


def _tags(run: Run) -> dict[str, str]:
    found = {"mlflow.runName": run.display_name or run.name, "mlflow.source.name": " ".join(run.entrypoint)}
    found |= {"tenfold.run": run.name, **dict.fromkeys(run.tags, "true")}
    if run.notes:
        found["mlflow.note.content"] = run.notes
    if run.source is not None:
        found["mlflow.source.git.commit"] = run.source.commit
    return found


def _write(folder: Path, name: str, text: str) -> None:
    """A slash in a name is a folder; what MLflow does not take, and what leads out of the folder, becomes "_"."""
    parts = [part if part.strip(".") else "_" for part in _NOT_IN_NAMES.sub("_", name).split("/")]
    file = folder.joinpath(*parts)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _write_yaml(file: Path, members: Mapping[str, Any]) -> None:
    # a value of JSON is one of YAML
    file.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in members.items()), encoding="utf-8")


def _number(value: float | str) -> str:
    return repr(value) if not isinstance(value, str) else {"Infinity": "inf", "-Infinity": "-inf"}.get(value, "nan")


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
