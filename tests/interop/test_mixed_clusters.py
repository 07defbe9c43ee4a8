"""Clusters whose tasks are partly TensorFlow's own servers and partly ours, each in every role, train.

TensorFlow's client of the same version drives them (programs.py); losses are those of a cluster of one kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import clients, tensorflow_servers
from .test_client_matrix import LOSSES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

VERSIONS = ("2.21", "1.15")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("theirs", ["worker", "ps"])
def test_a_master_and_a_ps_of_two_kinds(version: str, theirs: str, tmp_path: Path) -> None:
    with static_cluster(absent=[(theirs, 0)], ps=1, worker=1) as tasks:
        target = tasks.target("worker", 0)
        calls = [f"train={target},{tmp_path},12", f"loop_over_tasks={target},/job:ps/task:0"]
        with (
            tensorflow_servers(version, tasks.addresses, [(theirs, 0)]),
            clients(version, tmp_path, client=calls) as started,
        ):
            answers = started["client"].answers()
    trained = _good(answers, "train")
    assert (trained["begin"], trained["end"], trained["saved_step"]) == (0, 12, 12)
    np.testing.assert_allclose(trained["losses"][:5], LOSSES, rtol=1e-5)
    loops = _good(answers, "loop_over_tasks")
    assert loops == {"answers": [[0.0, 1.0, 1.0], [1.0, 3.0, 2.0], [10.0, 2047.0, 1024.0]], "nested": 12.0}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("worker", ["ours", "theirs"])
def test_variables_lie_on_a_ps_of_each_kind(version: str, worker: str, tmp_path: Path) -> None:
    theirs = [("ps", 1)] if worker == "ours" else [("ps", 1), ("worker", 0)]
    with (
        static_cluster(absent=theirs, ps=2, worker=1) as tasks,
        tensorflow_servers(version, tasks.addresses, theirs),
    ):
        call = f"train={tasks.target('worker', 0)},{tmp_path},12,0,2"
        with clients(version, tmp_path, client=[call]) as started:
            trained = _good(started["client"].answers(), "train")
    assert (trained["begin"], trained["end"], trained["saved_step"]) == (0, 12, 12)
    np.testing.assert_allclose(trained["losses"][:5], LOSSES, rtol=1e-5)
    assert {"hidden_w", "hidden_w/Adam", "out_w", "out_w/Adam_1"} <= set(trained["saved"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("chief", ["ours", "theirs"])
def test_two_workers_of_each_kind_share_our_ps(version: str, chief: str, tmp_path: Path) -> None:
    theirs = [("worker", index) for index in ((2, 3) if chief == "ours" else (0, 1))]
    with (
        static_cluster(absent=theirs, ps=1, worker=4) as tasks,
        tensorflow_servers(version, tasks.addresses, theirs),
    ):
        targets = [tasks.target("worker", index) for index in range(4)]
        with clients(version, tmp_path, client=[f"train_together={','.join([str(tmp_path), '10', *targets])}"]) as on:
            trained = _good(on["client"].answers(), "train_together")
    _assert_all_trained(trained)


def _assert_all_trained(trained: list[dict[str, Any]]) -> None:
    """Ten steps of each, on the same variables: every one counted, and the loss went down."""
    assert [each.get("failed") for each in trained] == [None] * len(trained)
    assert max(each["end"] for each in trained) == 10 * len(trained)
    assert all(each["end"] - each["begin"] >= 10 for each in trained)
    assert {len(each["losses"]) for each in trained} == {10}
    first, last = trained[0]["losses"][0], min(each["losses"][-1] for each in trained)
    assert last < first


def _good(answers: dict[str, Any], name: str) -> Any:
    answer = answers[name]
    assert "failed" not in answer, answer["failed"]
    return answer
