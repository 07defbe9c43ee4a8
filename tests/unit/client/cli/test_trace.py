"""What `tenfold trace` says of the file that it writes."""

from __future__ import annotations

from click.testing import CliRunner

from tenfold.cli.main import cli
from tenfold.cli.trace import summary


def test_what_is_in_the_file_and_what_is_not() -> None:
    found = {
        "traceEvents": [{"ph": "X"}, {"ph": "s"}, {"ph": "f"}],
        "metadata": {
            "tasks": [
                {"task": "ps", "clock_offset_us": -4995.2, "clock_error_us": 12.4},
                {"task": "w0", "clock_offset_us": 0, "clock_error_us": 0},
                {"task": "w1", "clock_offset_us": 40.0, "clock_error_us": None},
            ],
            "steps": [{"task": "w0", "nodes": 3}, {"task": "w0", "nodes": 4}],
            "missing": [{"task": "w2", "reason": "it did not report in time"}],
            "notes": [{"task": "w0", "note": "2 of 3 steps ended in time"}],
        },
    }

    assert summary(found) == [
        "2 steps of 1 clients on 3 processes: 7 nodes, 1 tensors sent",
        "clock of ps: -4995 µs (±12 µs)",
        "clock of w1: +40 µs (unknown)",
        "missing w2: it did not report in time",
        "w0: 2 of 3 steps ended in time",
    ]


def test_a_session_needs_a_step() -> None:
    result = CliRunner().invoke(cli, ["trace", "0123abcd"])

    assert result.exit_code == 2
    assert "0123abcd is not a run; a session's step needs --fetch or --target" in result.output
