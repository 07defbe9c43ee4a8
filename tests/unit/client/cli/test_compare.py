"""What `tenfold compare` prints of an answer."""

from __future__ import annotations

from typing import Any

from support.run_answers import a_run
from tenfold.cli.compare import text_of
from tenfold.control import Comparison


def curve(*values: float | str, step: int | None = 10) -> dict[str, Any]:
    steps = [None if step is None else at * step for at in range(len(values))]
    return {"times": [100.0 + at for at in range(len(values))], "steps": steps, "values": list(values)}


def comparison(*curves: Any) -> Comparison:
    runs = [a_run("SUCCEEDED", name=f"run-{at}").json for at in range(2)]
    runs[0] |= {"display_name": "wide", "tags": ["x", "y"]}
    newest = [None if each is None else each["values"][-1] for each in curves]
    scalar = {"name": "loss", "newest": newest, "lowest": newest, "highest": newest, "curves": list(curves)}
    parameters = [
        {"name": "lr", "differs": True, "values": [0.1, None]},
        {"name": "batch", "differs": False, "values": [32, 32]},
    ]
    facts = [{"name": "state", "differs": False, "values": ["SUCCEEDED", "SUCCEEDED"]}]
    return Comparison.from_json({"runs": runs, "parameters": parameters, "facts": facts, "scalars": [scalar]})


def test_runs_parameters_results_and_a_chart() -> None:
    lines = list(text_of(comparison(curve(4.0, 2.0, 0.0), curve(2.0, 2.0)), 30, 4))

    assert lines[:16] == [
        "A  run-0 (wide) SUCCEEDED  x, y",
        "B  run-1 SUCCEEDED",
        "",
        "  parameters  A    B",
        "≠ lr          0.1",
        "  batch       32   32",
        "",
        "  results  A    B",
        "≠ loss     0.0  2.0",
        "",
        "  run    A          B",
        "  state  SUCCEEDED  SUCCEEDED",
        "",
        "loss by step",
        "4 │AA",
        "  │  AAA",
    ]
    assert lines[-1].startswith("  └0")
    assert lines[-1].endswith("20")


def test_curves_without_steps_are_drawn_by_seconds_and_what_is_missing_is_left_out() -> None:
    lines = list(text_of(comparison(curve(4.0, "NaN", 0.0, step=None), None), 30, 4))

    assert "loss by seconds" in lines
    assert "B" not in "".join(lines[lines.index("loss by seconds") :])
    assert not any("loss by" in line for line in text_of(comparison(curve("NaN"), None), 30, 4))
