"""A run in words and in HTML: golden."""

from __future__ import annotations

from support.run_answers import PROGRESS, a_run, a_task
from tenfold.control.run_text import examples_text, headline, progress_text, run_html, scalars_text


def test_one_line() -> None:
    running = a_run(progress=PROGRESS)
    failed = a_run("FAILED", reason="worker/0: exit code 1", progress=PROGRESS)

    assert headline(a_run("PENDING", reason="it waits")) == "run-1 is PENDING: it waits"
    assert headline(a_run()) == "run-1 is RUNNING: attempt 1 of 3"
    assert headline(running) == ("run-1 is RUNNING: step 1,234 · 85.3 steps/s · loss 0.1235 · accuracy 0.97 · rate 0.1")
    assert headline(failed).startswith("run-1 is FAILED: worker/0: exit code 1 · step 1,234 · 85.3 steps/s")


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
