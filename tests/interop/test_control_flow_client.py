"""TensorFlow's client, in both of its control-flow modes, on our servers; and loops over tasks of two kinds.

What the programs (control_flow_programs.py) must give was worked out by hand.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.task_processes import static_cluster
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

from .tensorflow_processes import tensorflow_servers

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

PROGRAMS = Path(__file__).with_name("control_flow_programs.py")

ONE_TASK = {
    "cond_and_gradient": [[10.0, 2.0], [25.0, 10.0]],
    "nested_cond": ["big", "small", "negative"],
    "side_effects_of_branches": [[1.0, 11.0], [2.0, 6.0], [1.0, 16.0]],
    "switch_case": [10, 20, 30, 30, 30],
    "loop_and_gradient": [[2.0, 1.0], [4.0, 4.0], [32.0, 80.0]],
    # 1 → 3 → 9 → 27 → 729: y = 729·x⁴
    "branch_in_a_loop_and_gradient": [729.0, 2916.0],
    "loop_in_a_loop": [6, 20],
    "variable_in_a_loop": [5, 10.0],
    "function_with_side_effects": [15.0, 3.0, 9.0, 107.0],
    "functions_in_functions": [4.0, 2.0],
    "maps": [[2.0, 5.0, 10.0], [2.0, 4.0, 6.0], [1.0, 3.0, 6.0]],
    "the_graph_grows": [1.0, 200.0, 11.0],
}

TWO_TASKS = {
    "body_over_two_tasks": [[0, 1.0], [1, 3.0], [10, 2047.0]],
    # y → x·y + 1, four times
    "gradient_over_two_tasks": [15.71875, 36.0625],
    "nested_loops_over_two_tasks": [6, 26],
    "inner_loop_on_the_other_task": [6, 26],
    "branches_of_a_loop_on_two_tasks": [7, 23],
    "loop_over_two_tasks_in_a_branch": [15.0, -1.0],
    "variable_of_another_task_in_a_loop": [5, 10.0],
    "error_in_a_loop_on_another_task": [True, True],
}


def test_control_flow_on_one_task(ask_tensorflow: Callable[..., Any]) -> None:
    with BackgroundServer(TaskServer(None, "worker", 0)) as server:
        found = ask_tensorflow(PROGRAMS.read_text(), server.target, "one")

    assert found == {"v1": ONE_TASK, "v2": ONE_TASK}


@pytest.mark.parametrize("theirs", ["none", "ps", "worker"])
def test_control_flow_over_two_tasks(ask_tensorflow: Callable[..., Any], theirs: str) -> None:
    """`theirs` is the task that is TensorFlow's own server; the worker is the master."""
    absent = [] if theirs == "none" else [(theirs, 0)]
    with contextlib.ExitStack() as stack:
        tasks = stack.enter_context(static_cluster(absent=absent, ps=1, worker=1))
        if absent:
            stack.enter_context(tensorflow_servers("2.21", tasks.addresses, absent))
        found = ask_tensorflow(PROGRAMS.read_text(), tasks.target("worker", 0), "two")

    assert found == {"v1": TWO_TASKS, "v2": TWO_TASKS}
