"""The common code of the subjects: `import harness` has all that a subject needs.

A subject (null_step.py, dense_pull.py, …) is a list of cases. A case is one program, written once against TensorFlow
1.x's API, and runs unchanged on every side: Tenfold, TensorFlow, and either of them with other settings.

    program.py   the types of a subject: Subject, Case, Measure, Context, Effort
    sides.py     the sides and the topologies
    processes.py the processes of a side, which run role.py
    floor.py     what the products and the bytes of a step take at least
    rounds.py    the protocol: build, compare, warm up, A/B/A/B
    neighbours.py processes that keep the machine busy
    rows.py      statistics, ratios, verdicts
    text.py      figures as text
    machine.py   machine, versions, commit, how busy it is
    command.py   command lines, and the record that a run leaves
"""

from harness.command import INTERRUPTED, Record, add_options, main, measure
from harness.floor import floor_s
from harness.machine import doubts, keep_caches, machine
from harness.neighbours import neighbours
from harness.processes import HERE, Deployment, Process, SideFailedError, free_ports
from harness.program import (
    CONTAINER,
    QUICK,
    Case,
    Context,
    Effort,
    Measure,
    Subject,
    Wish,
    not_a_program,
    session_config,
)
from harness.rounds import rows_of_cases
from harness.rows import compare, hold_first, hold_flat, hold_steady, round_figures, row_of
from harness.sides import (
    ALONE,
    PS_WORKER,
    REMOTE,
    TENFOLD,
    TENFOLD_COLD,
    TENFOLD_COMPILED,
    TENFOLD_GRPC,
    TENFOLD_TCP,
    TENFOLD_UNFUSED,
    TENSORFLOW,
    TENSORFLOW_115,
    TENSORFLOW_115_DIRECT,
    TENSORFLOW_DIRECT,
    TENSORFLOW_DIRECT_TUNED,
    TENSORFLOW_TUNED,
    TORCH,
    TORCH_COMPILED,
    TWO_PS_WORKER,
    Side,
    Topology,
    baseline_of,
    side_as_json,
    side_from_json,
)
from harness.text import rate_text, row_text, time_text, times_text

__all__ = [
    "ALONE",
    "CONTAINER",
    "HERE",
    "INTERRUPTED",
    "PS_WORKER",
    "QUICK",
    "REMOTE",
    "TENFOLD",
    "TENFOLD_COLD",
    "TENFOLD_COMPILED",
    "TENFOLD_GRPC",
    "TENFOLD_TCP",
    "TENFOLD_UNFUSED",
    "TENSORFLOW",
    "TENSORFLOW_115",
    "TENSORFLOW_115_DIRECT",
    "TENSORFLOW_DIRECT",
    "TENSORFLOW_DIRECT_TUNED",
    "TENSORFLOW_TUNED",
    "TORCH",
    "TORCH_COMPILED",
    "TWO_PS_WORKER",
    "Case",
    "Context",
    "Deployment",
    "Effort",
    "Measure",
    "Process",
    "Record",
    "Side",
    "SideFailedError",
    "Subject",
    "Topology",
    "Wish",
    "add_options",
    "baseline_of",
    "compare",
    "doubts",
    "floor_s",
    "free_ports",
    "hold_first",
    "hold_flat",
    "hold_steady",
    "keep_caches",
    "machine",
    "main",
    "measure",
    "neighbours",
    "not_a_program",
    "rate_text",
    "round_figures",
    "row_of",
    "row_text",
    "rows_of_cases",
    "session_config",
    "side_as_json",
    "side_from_json",
    "time_text",
    "times_text",
]
