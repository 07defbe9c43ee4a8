"""A run as event files with TensorBoard's HParams: `tensorboard --logdir FOLDER` shows parameters beside its curves.

TensorBoard's own library makes the messages, so it has to be installed; the files are written by our event writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.exports.curves import leading_curves

if TYPE_CHECKING:
    from pathlib import Path

    from tenfold.control import Run, RunProgress


def write_run(folder: Path, run: Run, progress: RunProgress) -> Path:
    """Writes the run's event file into a folder of its own, named after it, and returns that. A file that was written
    before stays. Raises ImportError without TensorBoard, and OSError."""
    from tensorboard.plugins.hparams import summary_v2  # type: ignore[import-untyped]

    from tenfold.summary.file_writer import FileWriter
    from tenfold_protos.event_pb2 import Event
    from tenfold_protos.summary_pb2 import Summary

    made = summary_v2.hparams_pb(dict(run.parameters), trial_id=run.name, start_time_secs=_seconds(run))
    home = folder / run.name
    writer = FileWriter(str(home))
    try:
        first = next((curve.times[0] for curve in leading_curves(progress).values() if curve.times), _seconds(run))
        writer.add_event(Event(wall_time=first, summary=Summary.FromString(made.SerializeToString())))
        for name, curve in leading_curves(progress).items():
            for moment, value, step in zip(curve.times, curve.values, curve.steps, strict=True):
                summary = Summary(value=[Summary.Value(tag=name, simple_value=float(value))])
                writer.add_event(Event(wall_time=moment, step=step or 0, summary=summary))
    finally:
        writer.close()
    return home


def _seconds(run: Run) -> float:
    from datetime import datetime

    return datetime.fromisoformat(run.started or run.created).timestamp()
