"""The benchmarks' own arithmetic: agreement of results, ratios, verdicts, pinning, the report. No process starts."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def harness() -> Iterator[ModuleType]:
    """benchmarks/ is a folder of scripts, not a package: it is importable for as long as these tests run."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("harness")
    sys.path.remove(str(BENCHMARKS))
    for name in set(sys.modules) - before:
        if BENCHMARKS in Path(getattr(sys.modules[name], "__file__", None) or "/").parents:
            del sys.modules[name]


def rounds(*p50s: float) -> dict[int, dict[str, float]]:
    return {number: {"p50_us": p50, "p99_us": 2 * p50} for number, p50 in enumerate(p50s)}


def case(harness: ModuleType, **settings: Any) -> Any:
    return harness.Case("a case", harness.PS_WORKER, lambda context: None, **settings)


def sides(harness: ModuleType) -> dict[str, Any]:
    return {side.name: side for side in (harness.TENFOLD, harness.TENSORFLOW, harness.TENSORFLOW_TUNED)}


def row(harness: ModuleType, taken: dict[str, Any], failures: dict[str, str] | None = None, **settings: Any) -> Any:
    return harness.row_of(case(harness, **settings), taken, sides(harness), failures or {}, "equal", 0.0)


def measured(harness: ModuleType, subject: Any) -> Any:
    return harness.measure(subject, harness.QUICK, harness.Wish({}), lambda text: None)


def test_every_subject_has_cases_of_different_names(harness: ModuleType) -> None:
    names = importlib.import_module("bench").SUBJECTS
    for name in names:
        subject = importlib.import_module(name).SUBJECT
        assert subject.module == name
        assert subject.cases or subject.rows
        cases = [each.name for each in subject.cases]
        assert len(set(cases)) == len(cases)
        known = {side.name for side in subject.sides}
        for each in subject.cases:
            assert {*each.demands, *each.limits_us, *each.sides, *each.against} <= known
            assert not each.flat_with or each.flat_with in cases[: cases.index(each.name)]


def test_results_that_agree_differ_or_are_missing(harness: ModuleType) -> None:
    reference = {"loss": np.array([1.0, 2.0], np.float32)}
    near = {"loss": np.array([1.0, 2.0 + 1e-6], np.float32)}
    far = {"loss": np.array([1.0, 2.5], np.float32)}
    wide = {"loss": np.array([1.0, 2.0], np.float64)}

    assert harness.compare({"tensorflow": reference, "tenfold": near}, 1e-5)[0] == "equal"
    assert harness.compare({"tensorflow": reference, "tenfold": near}, 0.0)[0].startswith("differs by")
    assert harness.compare({"tensorflow": reference, "tenfold": far}, 1e-5)[0] == "differs by 0.25"
    assert "float64" in harness.compare({"tensorflow": reference, "tenfold": wide}, 1e-5)[0]
    assert "tenfold gives []" in harness.compare({"tensorflow": reference, "tenfold": {}}, 1e-5)[0]


def test_a_result_that_is_not_a_number_is_no_agreement(harness: ModuleType) -> None:
    good, bad = {"x": np.array([1.0])}, {"x": np.array([np.nan])}
    assert harness.compare({"tensorflow": good, "tenfold": bad}, 1e-5)[0] != "equal"
    assert harness.compare({"tensorflow": bad, "tenfold": bad}, 1e-5)[0] == "equal"


def test_a_ratio_is_the_median_of_the_rounds_that_both_have(harness: ModuleType) -> None:
    ours, theirs = rounds(10, 10, 10), rounds(40, 20, 30)
    del theirs[1]
    found = row(harness, {"tenfold": ours, "tensorflow": theirs})
    assert found["ratios"] == {"tenfold": {"tensorflow": 3.5}}
    assert found["figures"]["tenfold"]["p50_us"] == 10


def test_a_demand_counts_against_the_fastest_tensorflow(harness: ModuleType) -> None:
    taken = {"tenfold": rounds(10), "tensorflow": rounds(100), "tensorflow tuned": rounds(40)}
    assert row(harness, taken, demands={"tenfold": 5})["verdicts"] == {"tenfold": "missed: 4x of ≥ 5x"}
    only = row(harness, taken, demands={"tenfold": 5}, against=("tensorflow",))
    assert only["verdicts"] == {"tenfold": "met: 10x of ≥ 5x"}


def test_an_older_checkout_is_compared_side_by_side_and_counts_for_no_demand(harness: ModuleType) -> None:
    wish = harness.Wish({"tenfold": "python", "baseline": "older python"}, sides=("tenfold", "tenfold tcp"))
    taken = wish.taken((harness.TENFOLD, harness.TENFOLD_TCP, harness.TENFOLD_GRPC, harness.TENSORFLOW))
    named = case(harness, sides=("tenfold",), demands={"tenfold": 2})
    times = {"tenfold": rounds(10, 20), "tenfold tcp": rounds(10), "baseline": rounds(9, 30), "tensorflow": rounds(40)}

    found = harness.row_of(named, times, {side.name: side for side in (*taken, harness.TENSORFLOW)}, {}, "equal", 0.0)

    assert [side.name for side in taken] == ["tenfold", "tenfold tcp", "baseline", "baseline tcp"]
    assert [named.takes(side) for side in taken] == [True, False, True, False]
    assert found["baseline"] == {"tenfold": (0.9 + 1.5) / 2}
    assert found["against"] == ["tensorflow"]
    assert found["verdicts"] == {"tenfold": "met: 4x of ≥ 2x"}


def test_torch_has_demands_of_its_own_and_counts_for_none_of_tensorflows(harness: ModuleType) -> None:
    times = {"tenfold": rounds(10), "tensorflow": rounds(40), "torch": rounds(9), "torch compiled": rounds(9.5)}
    those = (harness.TENFOLD, harness.TENSORFLOW, harness.TORCH, harness.TORCH_COMPILED)
    held = case(harness, demands={"tenfold": 2}, peers={"torch": 1.0, "torch compiled": 0.9})

    found = harness.row_of(held, times, {side.name: side for side in those}, {}, "equal", 0.0)

    assert found["against"] == ["tensorflow"]
    assert found["verdicts"] == {
        "tenfold": "met: 4x of ≥ 2x; missed: 0.9x torch of ≥ 1x; met: 0.95x torch compiled of ≥ 0.9x"
    }


def test_a_row_says_which_share_of_the_floor_is_reached(harness: ModuleType) -> None:
    found = row(harness, {"tenfold": rounds(10)}) | {"floor_us": 4.0}

    assert "40% of the floor, 4 µs" in harness.row_text(found)


def test_a_case_that_should_be_flat_is_held_against_the_other_ones_best_round(harness: ModuleType) -> None:
    small = row(harness, {"tenfold": rounds(10, 30), "tensorflow": rounds(50)})
    flat = row(harness, {"tenfold": rounds(90, 11), "tensorflow": rounds(55)}, demands={"tenfold": 1})
    steep = row(harness, {"tenfold": rounds(12, 12)})

    harness.hold_flat(flat, small)
    harness.hold_flat(steep, small)

    assert flat["verdicts"] == {"tenfold": "missed: 0.61x of ≥ 1x; met: 1.10x of ≤ 1.1x “a case”"}
    assert steep["verdicts"] == {"tenfold": "missed: 1.20x of ≤ 1.1x “a case”"}


def test_what_a_subject_measured_before_it_broke_stays(harness: ModuleType) -> None:
    def rows(effort: Any, wish: Any) -> Iterator[Any]:
        yield row(harness, {"tenfold": rounds(10)})
        raise KeyboardInterrupt

    found = measured(harness, harness.Subject("3", "training", "a title", rows=rows))

    assert found["ended"] == harness.INTERRUPTED
    assert [each["case"] for each in found["rows"]] == ["a case"]
    assert set(found["before"]) == {"load", "cores"}


def test_a_busy_machine_is_doubted(harness: ModuleType) -> None:
    assert harness.doubts({"load": 0.9, "cores": 0.0}) == []
    assert "load average is 1.7, 0.4 cores" in harness.doubts({"load": 1.7, "cores": 0.4})[0]


def test_caches_are_kept_though_the_shell_says_otherwise(harness: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE is set" in harness.keep_caches()[0]
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert harness.keep_caches() == []


def test_a_subject_that_there_is_not_is_named(harness: ModuleType) -> None:
    bench = importlib.import_module("bench")
    assert bench.named("hello, peers") == ["hello", "peers"]
    with pytest.raises(argparse.ArgumentTypeError, match=r"no subject 'hallo'; there are null_step"):
        bench.named("hallo")


def test_a_limit_is_held_against_the_time_of_a_step(harness: ModuleType) -> None:
    found = row(harness, {"tenfold": rounds(60)}, limits_us={"tenfold": 50})
    assert found["verdicts"] == {"tenfold": "missed: 60 µs of ≤ 50 µs"}


def test_a_throughput_counts_the_steps_of_all_clients(harness: ModuleType) -> None:
    answers = [
        {"p50_us": 1.0, "p99_us": 2.0, "steps": 10, "start": 0.0, "end": 1.0, "usage": used(20, 0.1, 50.0)},
        {"p50_us": 1.0, "p99_us": 3.0, "steps": 30, "start": 1.0, "end": 2.0, "usage": used(60, 0.3, 70.0)},
    ]
    found = harness.round_figures(answers, "throughput")
    assert found == {"p50_us": 50_000.0, "p99_us": 3.0, "faults": 2.0, "cpu_us": 10_000.0, "peak_mib": 120.0}


def used(faults: int, cpu_s: float, peak_mib: float) -> dict[str, float]:
    return {"faults": faults, "cpu_s": cpu_s, "peak_mib": peak_mib}


def test_page_faults_and_memory_are_held_against_their_limits(harness: ModuleType) -> None:
    ours = {0: {"p50_us": 10.0, "p99_us": 20.0, "faults": 30.0, "cpu_us": 9.0, "peak_mib": 80.0}}
    theirs = {0: {"p50_us": 40.0, "p99_us": 50.0, "faults": 0.0, "cpu_us": 9.0, "peak_mib": 90.0}}
    taken = {"tenfold": ours, "tensorflow": theirs}
    found = row(harness, taken, demands={"tenfold": 2}, faults=20, memory=True)
    assert found["verdicts"] == {"tenfold": "met: 4x of ≥ 2x; missed: 30 of ≤ 20 page faults; met: 80 of ≤ 90 MiB"}


def test_a_first_step_is_held_against_tensorflows_and_with_cold_caches_against_a_limit(harness: ModuleType) -> None:
    taken = {"tenfold": rounds(10), "tenfold cold": rounds(10), "tensorflow": rounds(40)}
    known = {**sides(harness), "tenfold cold": harness.TENFOLD_COLD}
    demands = {"tenfold": 2, "tenfold cold": 2}
    found = harness.row_of(case(harness, demands=demands), taken, known, {}, "equal", 0.0)
    for name, seconds in (("tenfold", 0.4), ("tenfold cold", 3.5), ("tensorflow", 0.2)):
        found["figures"][name]["first_s"] = seconds

    harness.hold_first(found)

    assert found["verdicts"] == {
        "tenfold": "met: 4x of ≥ 2x; missed: first step 0.40 s of ≤ 0.30 s",
        "tenfold cold": "met: 4x of ≥ 2x; missed: first step 3.50 s of ≤ 3.00 s",
    }


def test_a_busy_ratio_is_held_against_the_quiet_one(harness: ModuleType) -> None:
    quiet = row(harness, {"tenfold": rounds(10), "tensorflow": rounds(40)}, demands={"tenfold": 2})
    busy = row(harness, {"tenfold": rounds(40), "tensorflow": rounds(80)}, demands={"tenfold": 2})
    harness.hold_steady(busy, quiet)
    assert busy["verdicts"] == {"tenfold": "met: 2x of ≥ 2x; missed: 0.50 of ≥ 0.8 of the quiet ratio"}


def test_neighbours_are_busy_until_they_are_dismissed(harness: ModuleType) -> None:
    before = set(psutil.Process().children())
    with harness.neighbours(2):
        started = set(psutil.Process().children()) - before
        assert len(started) == 2
    assert not any(each.is_running() for each in started)


def test_the_table_of_the_page_on_speed_is_written_between_its_markers(harness: ModuleType) -> None:
    page = importlib.import_module("programs_page")
    those = {**sides(harness), "torch": harness.TORCH}
    times = {"tenfold": rounds(10), "tensorflow": rounds(30), "tensorflow tuned": rounds(25), "torch": rounds(12)}
    both = harness.row_of(case(harness), times, those, {}, "equal", 0.0) | {"floor_us": 4.0}
    alone = row(harness, {"tenfold": rounds(10)})

    far = row(harness, {"tenfold": rounds(1), "tensorflow": rounds(237)})

    text = page.replaced(f"a\n{page.BEGIN}\nold\n{page.END}\nb\n", page.table([both, alone, far]))

    table = "| program | TensorFlow | Tenfold | times TensorFlow | times torch | times torch compiled | floor |"
    table += "\n|---|---|---|---|---|---|---|\n| a case | 25 µs | 10 µs | 2.5 | 1.2 |  | 40% |"
    table += "\n| a case | 237 µs | 1 µs | 237 |  |  |  |"
    assert text == f"a\n{page.BEGIN}\n{table}\n{page.END}\nb\n"
    with pytest.raises(ValueError, match="no <!-- programs: begin -->"):
        page.replaced("a", [])


def test_a_step_that_waits_for_another_worker_outlasts_its_window(harness: ModuleType) -> None:
    stepping_of = importlib.import_module("programs").Stepping
    entered, go_on = threading.Event(), threading.Event()

    def step() -> None:
        entered.set()
        assert go_on.wait(60)

    stepping = stepping_of(step)
    while not entered.is_set():
        assert stepping.window(0.01) == []
    go_on.set()
    while not (taken := stepping.window(0.01)):
        pass
    assert all(each > 0 for each in taken)


def test_a_step_that_fails_fails_its_window(harness: ModuleType) -> None:
    stepping = importlib.import_module("programs").Stepping(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        stepping.window(60.0)


def test_programs_are_chosen_by_name_and_mode(harness: ModuleType) -> None:
    programs = importlib.import_module("programs")
    quiet, over_tasks = programs.chosen("mlp", ("single",)), programs.chosen("mlp", ("cluster",))
    assert [(each.name, each.neighbours) for each in quiet.cases] == [("mlp", 0)]
    assert [each.name for each in over_tasks.cases][:2] == ["mlp, 1 ps async", "mlp, 1 ps sync"]
    assert [each.work for each in over_tasks.cases][:2] == [1, 0.5]
    assert programs.chosen("mlp", ("busy",)).cases[0].neighbours == 2
    losses = programs.chosen("mlp", ("agree",)).cases
    assert [each.name for each in losses] == ["mlp, one task", "mlp, over tasks"]
    with pytest.raises(ValueError, match="no program 'mpl'; there are mlp, word2vec"):
        programs.chosen("mpl", ("single",))


def test_a_client_never_shares_its_core_with_the_first_ps(harness: ModuleType) -> None:
    here = harness.PS_WORKER
    assert here.cores("worker:0", [0, 1]) == [1]
    assert here.cores("ps:0", [0, 1]) == [0]
    assert here.cores("ps:0", [5]) == [5]
    assert harness.Topology(("ps:0",), ("worker:0",), pinned=False).cores("ps:0", [0, 1]) == [0, 1]


def test_the_report_lists_what_is_missed_and_what_failed(harness: ModuleType, tmp_path: Path) -> None:
    report = importlib.import_module("report")
    taken = {"tenfold": rounds(10), "tensorflow": rounds(40)}
    found = row(harness, taken, failures={"tensorflow tuned": "it\nbroke"}, demands={"tenfold": 5})
    found["baseline"] = {"tenfold": 0.9}
    subject = harness.Subject("3", "training", "a title", rows=lambda effort, wish: iter([found]))
    broken = harness.Subject("4", "dense_pull", "another", rows=lambda effort, wish: iter([1 / 0]))
    figures = {
        "date": "2026-01-02",
        "command": "bench.py",
        "commit": "0123456789ab",
        "machine": harness.machine(),
        "versions": {"tenfold": "tenfold 0"},
        "doubts": ["the caches are cold"],
        "baseline": "ba9876543210",
        "subjects": [measured(harness, subject), measured(harness, broken)],
    }
    source = tmp_path / "figures.json"
    source.write_text(json.dumps(figures))

    page = report.write(source, tmp_path / "reports")

    text = page.read_text()
    assert page.name == "2026-01-02.md"
    assert "0 met, 1 missed" in text
    assert "| 3 | a case | tenfold | missed: 4x of ≥ 5x |" in text
    assert "- a case, tensorflow tuned: it broke" in text
    assert "## Against commit ba9876543210" in text
    assert "| 0.9x | 3 | a case | tenfold |" in text
    assert "commit 0123456789ab" in text
    assert "- **the caches are cold.**" in text
    assert "- 4. another: ZeroDivisionError: division by zero" in text
