"""The curves of a run: bounded, spanning all of it; what one line says of it; NaN; there and back from JSON."""

from __future__ import annotations

import itertools
import json
from typing import Any

from tenfold_control_api.runs.progress import (
    DISTRIBUTION,
    MAX_CHECKPOINTS,
    MAX_CURVES,
    MAX_DISTRIBUTIONS,
    MAX_LOGDIRS,
    MAX_POINTS,
    STALE_S,
    Curve,
    TaskProgress,
    summed_up,
)


def report(step: int | None = None, **values: Any) -> dict[str, Any]:
    return {
        "steps": 10 * (step or 1),
        "global_step": step,
        "steps_per_second": None if step is None else 2.0,
        "examples_per_second": None if step is None else 64.0,
        "points": [{"time": float(step or 1), "step": step, "values": values}],
        "checkpoints": [],
        "logdirs": [],
        "figures": {"threads": 3.0},
    }


def task(job: str = "worker", index: int = 0, step: int | None = 1, now: float = 1.0, **values: Any) -> TaskProgress:
    made = TaskProgress(job, index)
    made.add(report(step, **values), now)
    return made


def test_a_long_curve_is_thinned_out_evenly_and_keeps_its_ends() -> None:
    curve = Curve()

    for at in range(100_000):
        curve.add((float(at), at, at / 2))

    steps = [step for _, step, _ in curve.points]
    gaps = {b - a for a, b in itertools.pairwise(steps) if a is not None and b is not None}
    assert MAX_POINTS // 2 <= len(steps) < MAX_POINTS
    assert gaps == {curve.stride}
    assert (steps[0], curve.last) == (0, (99_999.0, 99_999, 49_999.5))


def test_a_short_curve_has_every_point() -> None:
    curve = Curve()
    for at in range(100):
        curve.add((float(at), None, "NaN"))

    assert curve.points == [(float(at), None, "NaN") for at in range(100)]


def test_names_and_checkpoints_are_bounded() -> None:
    progress = TaskProgress("worker", 0)

    for at in range(100):
        progress.add({**report(at, **{f"loss{at}": 0.5}), "checkpoints": [{"time": 1.0, "path": f"c-{at}"}]}, 1.0)

    assert len(progress.curves) == MAX_CURVES
    assert [each["path"] for each in progress.checkpoints] == [f"c-{at}" for at in range(100 - MAX_CHECKPOINTS, 100)]


def test_tables_stay_when_their_server_has_ended() -> None:
    progress = TaskProgress("ps", 0)
    held = {"table_bytes": 10.0, "table_rows": 2.0}
    progress.add({**report(), "figures": held, "tables": [{"name": "t", "rows": 2}]}, 1.0)
    progress.add(report(), 2.0)

    assert progress.tables == [{"name": "t", "rows": 2}]
    assert [progress.used[name].last for name in ("tables", "rows")] == [(1.0, None, 10.0), (1.0, None, 2.0)]


def test_there_and_back() -> None:
    progress = task(loss=0.5, other="Infinity")
    progress.add({**report(2, loss="NaN"), "tables": [{"name": "t", "rows": 2}]}, 2.0)

    back = TaskProgress.from_json("worker", 0, json.loads(json.dumps(progress.to_json())))

    assert back == progress


def test_its_own_steps_and_speed_are_curves_too() -> None:
    progress = TaskProgress("worker", 0)
    for at in range(3):
        progress.add({**report(10 * at), "steps_per_second": None if at == 0 else 5.0 * at}, 1.0)
    progress.add({**report(None), "steps_per_second": None, "points": []}, 2.0)

    assert [value for _, _, value in progress.global_steps.points] == [0, 10, 20]
    assert [(step, value) for _, step, value in progress.speed.points] == [(10, 5.0), (20, 10.0)]


def test_what_its_process_uses_is_curves_too() -> None:
    made = task(now=10.0)
    for now, cpu, sent in ((20.0, 5.0, 100), (30.0, 25.0, 300), (40.0, 1.0, 50), (42.0, 2.0, 60)):
        told = {"resident_bytes": 7 * now, "cpu_seconds": cpu, "bytes_sent": sent}
        made.add({**report(int(now)), "figures": told}, now)

    # the task is another process from 40 on
    assert made.used["memory"].points == [(20.0, 1, 140.0), (30.0, 20, 210.0), (40.0, 30, 280.0), (42.0, 40, 294.0)]
    assert made.used["processor"].points == [(30.0, 20, 2.0), (42.0, 40, 0.5)]
    assert made.used["sent"].points == [(30.0, 20, 20.0), (42.0, 40, 5.0)]
    assert "received" not in made.used
    assert TaskProgress.from_json("worker", 0, json.loads(json.dumps(made.to_json()))) == made


def test_histograms_are_curves_of_several_numbers_and_bounded() -> None:
    made = task()
    for at in range(MAX_DISTRIBUTIONS + 1):
        found = {name: float(at) for name in DISTRIBUTION}
        point = {"time": 2.0 + at, "step": at, "values": {}, "distributions": {"w": found, f"w{at}": found}}
        made.add({**report(at), "points": [point]}, 2.0 + at)

    assert made.distributions["w"].points[1] == (3.0, 1, [1.0] * 6)
    assert len(made.distributions) == MAX_DISTRIBUTIONS
    assert TaskProgress.from_json("worker", 0, json.loads(json.dumps(made.to_json()))) == made


def test_folders_of_event_files_are_kept_once_and_bounded() -> None:
    progress = TaskProgress("worker", 0)
    for at in range(MAX_LOGDIRS + 5):
        progress.add({**report(at), "logdirs": [f"/logs/{at}", "/logs/5"]}, 1.0)

    assert len(progress.logdirs) == MAX_LOGDIRS
    assert progress.logdirs.count("/logs/5") == 1
    assert progress.logdirs[-1] == f"/logs/{MAX_LOGDIRS + 4}"


def test_what_an_older_service_wrote_is_read() -> None:
    kept = task(loss=0.5).to_json()
    for member in ("global_steps", "speed", "logdirs"):
        del kept[member]

    back = TaskProgress.from_json("worker", 0, kept)

    assert (back.global_steps.points, back.speed.points, back.logdirs) == ([], [], [])
    assert back.curves["loss"].points


def test_the_chief_speaks_first_and_the_furthest_step_counts() -> None:
    found = summed_up(
        [
            task("worker", 1, 30, 9.0, loss=0.3, only_here=1.0),
            task("worker", 0, 20, 5.0, loss=0.2),
            task("ps", 0, None, 99.0),
        ],
        [("worker", 0)],
    )

    assert found is not None
    assert (found.global_step, found.steps_per_second, found.updated) == (30, 2.0, 99.0)
    assert found.values == {"loss": 0.2, "only_here": 1.0}


def test_nothing_is_known_before_the_first_step() -> None:
    idle = TaskProgress("ps", 0)
    idle.add({**report(), "steps": 0, "points": []}, 1.0)

    assert summed_up([idle], []) is None
    assert summed_up([], []) is None


def test_a_task_that_has_been_silent_feeds_no_more() -> None:
    here, silent = task("worker", 0, 20, 1000.0), task("worker", 1, 20, 1000.0 - STALE_S)
    here.examples_per_second, silent.examples_per_second = 5.0, 7.0

    found = summed_up([here, silent], [])

    assert found is not None
    assert found.examples_per_second == 5.0


def test_the_furthest_task_gives_the_speed_and_without_global_steps_the_leader() -> None:
    chief, worker = task("chief", 0, 0), task("worker", 0, 1)
    chief.steps_per_second, worker.steps_per_second = 3.0, 4.0

    furthest = summed_up([worker, chief], [("chief", 0)])
    chief.global_step = worker.global_step = None
    leading = summed_up([worker, chief], [("chief", 0)])

    assert furthest is not None
    assert leading is not None
    assert (furthest.global_step, furthest.steps_per_second) == (1, 4.0)
    assert (leading.global_step, leading.steps_per_second) == (None, 3.0)


def test_the_newest_checkpoint_of_all_tasks_is_the_runs() -> None:
    one, other = task("worker", 0), task("worker", 1)
    one.checkpoints = [{"time": 3.0, "path": "newest"}, {"time": 1.0, "path": "oldest"}]
    other.checkpoints = [{"time": 2.0, "path": "between"}]

    with_some, without = summed_up([one, other], []), summed_up([task()], [])

    assert with_some is not None
    assert without is not None
    assert (with_some.checkpoint, without.checkpoint) == ("newest", None)


def test_a_program_that_has_reported_nothing_has_run_nothing() -> None:
    assert summed_up([TaskProgress("worker", 0)], []) is None


def test_a_report_without_a_figure_leaves_the_last_one() -> None:
    progress = task("worker", 0, 4, loss=0.5)
    progress.add({**report(None, loss=0.25), "steps": 50}, 3.0)

    assert (progress.global_step, progress.steps_per_second, progress.examples_per_second) == (4, 2.0, 64.0)
    assert (progress.steps, progress.updated) == (50, 3.0)
    assert [value for *_, value in progress.curves["loss"].points] == [0.5, 0.25]
