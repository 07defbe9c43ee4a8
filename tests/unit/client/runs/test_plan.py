"""What a submission starts: the interpreter of the run, or a command of its own; what each task is told."""

from __future__ import annotations

import json
from typing import Any

from tenfold.runs.plan import plan_of


def submission(**more: Any) -> dict[str, Any]:
    return {"entrypoint": ["python", "t.py"], "jobs": {"worker": 1, "ps": 1}, **more}


def test_parameter_servers_come_first_and_tasks_learn_who_they_are() -> None:
    plan = plan_of(submission(guide_flags=True, as_tensorflow=True, environment={"SEED": "1"}))
    cluster = {"ps": ["h:1"], "worker": ["h:2"]}

    assert plan.tasks == [("ps", 0), ("worker", 0)]
    assert plan.arguments("worker", 0, cluster) == [
        *("-m", "tenfold.cli.run_as_tensorflow", "t.py"),
        *("--ps_hosts=h:1", "--worker_hosts=h:2", "--job_name=worker", "--task_index=0"),
    ]
    variables = plan.variables("ps", 0, cluster)
    assert variables["SEED"] == "1"
    assert json.loads(variables["TF_CONFIG"]) == {"cluster": cluster, "task": {"type": "ps", "index": 0}}


def test_an_evaluator_is_beside_the_cluster() -> None:
    plan = plan_of(submission(jobs={"chief": 1, "evaluator": 1, "ps": 2}))

    assert plan.tasks == [("ps", 0), ("ps", 1), ("chief", 0), ("evaluator", 0)]
    assert plan.cluster == {"ps": 2, "chief": 1}
    assert json.loads(plan.variables("evaluator", 0, {"chief": ["h:1"]})["TF_CONFIG"]) == {
        "cluster": {"chief": ["h:1"]},
        "task": {"type": "evaluator", "index": 0},
    }


def test_a_command_is_wrapped() -> None:
    plan = plan_of(submission(entrypoint=["bash", "t.sh"]))

    assert plan.arguments("worker", 0, {}) == ["-m", "tenfold.cli.run_command", "bash", "t.sh"]


def test_restarts_of_a_submission_are_of_the_whole_gang_unless_it_says_otherwise() -> None:
    whole = plan_of(submission(restarts={"limit": 2, "backoff": 0.5})).policy
    alone = plan_of(submission(restarts={"limit": 2, "gang": False})).policy

    assert (whole.restarts, whole.gang, whole.pause(1), whole.pause(3), whole.pause(99)) == (2, True, 0.5, 2.0, 60.0)
    assert alone.gang is False
