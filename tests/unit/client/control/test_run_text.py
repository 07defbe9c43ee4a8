"""A run in words and in HTML: golden."""

from __future__ import annotations

from support.run_answers import PROGRESS, a_run, a_task
from tenfold.control.run_text import (
    duration_text,
    examples_text,
    headline,
    left_text,
    progress_text,
    run_html,
    scalars_text,
)


def test_one_line() -> None:
    running = a_run(progress=PROGRESS)
    failed = a_run("FAILED", reason="worker/0: exit code 1", progress=PROGRESS)

    assert headline(a_run("PENDING", reason="it waits")) == "run-1 is PENDING: it waits"
    assert headline(a_run()) == "run-1 is RUNNING: attempt 1 of 3"
    assert headline(running) == ("run-1 is RUNNING: step 1,234 · 85.3 steps/s · loss 0.1235 · accuracy 0.97 · rate 0.1")
    assert headline(failed).startswith("run-1 is FAILED: worker/0: exit code 1 · step 1,234 · loss")


#: Of a training that says where it stops.
BOUNDED = {**PROGRESS, "last_step": 5000, "percent": 24.6, "seconds_left": 44.0}


def test_how_much_is_left() -> None:
    running = headline(a_run(progress=BOUNDED))

    assert running.startswith("run-1 is RUNNING: step 1,234 (24%) · 85.3 steps/s · loss 0.1235")
    assert running.endswith(" · 44 s left")
    assert progress_text(BOUNDED, percent=False) == progress_text(PROGRESS) == "step 1,234 · 85.3 steps/s"
    assert left_text(PROGRESS) == left_text({**BOUNDED, "seconds_left": 0.0}) == left_text(None) == ""
    assert '<progress max="5000" value="1234"' in run_html(a_run(progress=BOUNDED))


def test_durations() -> None:
    seconds = (0, 119, 120, 7199, 7200, 172_799, 172_800)
    assert [duration_text(each) for each in seconds] == ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]


def test_what_is_not_known_is_left_out() -> None:
    assert progress_text(None) == scalars_text(None) == examples_text(None) == examples_text(PROGRESS) == ""
    assert progress_text({**PROGRESS, "global_step": None}) == "85.3 steps/s"
    assert examples_text({**PROGRESS, "examples_per_second": 5461.3}) == "5,461 examples/s"
    assert progress_text({**PROGRESS, "steps_per_second": None}) == "step 1,234"
    assert scalars_text(PROGRESS) == "loss 0.1235 · accuracy 0.97 · rate 0.1 · zeta NaN"


def test_html_for_a_notebook() -> None:
    error = {"type": "InvalidArgumentError", "message": "x < 0", "node": None, "task": None}
    failed = a_run("FAILED", reason="<why>", tasks=[a_task("failed", exit_code=1, error=error), a_task(index=1)])

    assert failed._repr_html_() == (
        '<div><b>run-1</b> <span style="color: #d1383d">FAILED</span> &lt;why&gt;<table>'
        '<tr><td>worker/0</td><td><span style="color: #d1383d">failed</span></td><td>exit code 1</td>'
        "<td>x &lt; 0</td></tr>"
        '<tr><td>worker/1</td><td><span style="color: #1787a8">running</span></td><td></td><td></td></tr>'
        "</table></div>"
    )
    assert '<progress max="2000" value="1234"' in run_html(a_run(progress=PROGRESS), 2000)
    assert "<progress" not in run_html(a_run(progress=PROGRESS))
