"""A run as TensorBoard's own library reads it: parameters of the HParams plugin, and the curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import metadata

from support.run_answers import a_progress, a_run
from tenfold.exports.hparams import write_run

if TYPE_CHECKING:
    from pathlib import Path


def test_tensorboard_reads_parameters_and_curves(tmp_path: Path) -> None:
    run = a_run("SUCCEEDED", created="2026-11-24T11:00:00Z", parameters={"lr": 0.1, "on": True, "opt": "adam"})

    folder = write_run(tmp_path, run, a_progress())
    read = event_accumulator.EventAccumulator(str(folder)).Reload()

    assert folder.name == "run-1"
    told = read.PluginTagToContent(metadata.PLUGIN_NAME)[metadata.SESSION_START_INFO_TAG]
    started = metadata.parse_session_start_info_plugin_data(told)
    assert (started.hparams["lr"].number_value, started.hparams["on"].bool_value) == (0.1, True)
    assert (started.hparams["opt"].string_value, started.start_time_secs) == ("adam", 1795518000.0)
    points = [(each.wall_time, each.step, each.value) for each in read.Scalars("loss")]
    assert points[:2] == [(1000.0, 1, 0.5), (1001.0, 2, 0.25)]
    assert math.isnan(points[2][2])
