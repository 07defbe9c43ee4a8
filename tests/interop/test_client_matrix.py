"""TensorFlow's own clients, of several versions, against servers of ours: what their programs get back.

The programs are programs.py's; forks of one process of each version run them, because importing TensorFlow takes
seconds. What they must return was seen with TensorFlow's own servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.task_processes import static_cluster

from .tensorflow_processes import PROGRAMS, VERSIONS, Forks, clients

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(240)

PS = "/job:ps/task:0"
#: Programs without a process or a server of their own.
SIMPLE = ("hello", "feeds_and_fetches", "variables", "errors", "recurrent")


@pytest.fixture(
    scope="module", params=[VERSIONS[0], *(pytest.param(each, marks=pytest.mark.long) for each in VERSIONS[1:])]
)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def answers(
    version: str, forks: dict[str, Forks], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp(f"programs-{version}")
    with static_cluster(ps=1, worker=1) as tasks:
        target = tasks.target("worker", 0)
        calls = [f"{name}={target}" for name in SIMPLE]
        calls += [f"{name}={target},{PS}" for name in ("loop_over_tasks", "branches", "functions")]
        calls.append(f"pipeline={target},{folder}")
        if not version.startswith("2."):
            calls.append(f"dynamic_rnn={target}")  # 2.x keeps its cells in another package
        yield forks[version].ask(PROGRAMS.read_text(), "-", *calls)


def _answer(answers: dict[str, Any], name: str) -> dict[str, Any]:
    answer: dict[str, Any] = answers[name]
    assert "failed" not in answer, answer["failed"]
    return answer


def test_hello(answers: dict[str, Any]) -> None:
    assert _answer(answers, "hello") == {
        "greeting": "Hello, distributed TensorFlow!",
        "devices": [f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker")],
        "total": 42,
    }


def test_feeds_and_fetches_of_every_dtype(answers: dict[str, Any]) -> None:
    assert _answer(answers, "feeds_and_fetches") == {"wrong": []}


def test_reference_and_resource_variables(answers: dict[str, Any]) -> None:
    for kind, values in _answer(answers, "variables").items():
        assert values == {
            "before": [f"{kind}/{name}" for name in ("rows", "step", "w")],
            "after": [],
            "w": [[4.0] * 3] * 2,
            "rows": [[0.0, 0.0], [6.0, 6.0], [0.0, 0.0], [0.0, 0.0], [3.0, 3.0]],
            "step": 3,
        }


#: What went wrong → class, what the message says, the operation that is blamed ("": none).
ERRORS = {
    "placeholder": ("InvalidArgumentError", "You must feed a value for placeholder tensor 'wanted'", "wanted"),
    "uninitialized": ("FailedPreconditionError", "Attempting to use uninitialized value fresh", "read"),
    "matmul": ("InvalidArgumentError", "[2,3]", "product"),
    "assertion": ("InvalidArgumentError", "assertion failed: [this is so:] [7]", "claim/Assert"),
    "gather": ("InvalidArgumentError", "indices[0] = 5 is not in [0, 2)", "pick"),
    "placement": ("InvalidArgumentError", "/job:nobody", None),
    "deadline": ("DeadlineExceededError", "", ""),
    "out_of_range": ("OutOfRangeError", "is closed and has insufficient elements (requested 1, ", "late"),
    "numerics": ("InvalidArgumentError", "not a number : Tensor had Inf values", "finite"),
}


@pytest.mark.parametrize("mistake", ERRORS)
def test_errors_have_class_message_and_operation(answers: dict[str, Any], mistake: str) -> None:
    kind, text, op = ERRORS[mistake]
    seen_kind, message, seen_op = _answer(answers, "errors")[mistake]
    assert (seen_kind, text in message) == (kind, True), message
    if op is not None:
        assert seen_op == op, message


def test_a_loop_over_two_tasks_with_its_gradient(answers: dict[str, Any]) -> None:
    loops = _answer(answers, "loop_over_tasks")
    assert loops == {"answers": [[0.0, 1.0, 1.0], [1.0, 3.0, 2.0], [10.0, 2047.0, 1024.0]], "nested": 12.0}


def test_branches_in_every_mode_of_control_flow(answers: dict[str, Any], version: str) -> None:
    modes = _answer(answers, "branches")
    assert set(modes) == ({"v1"} if version == "1.4" else {"v1", "v2"})
    for taken in modes.values():
        assert taken == [[6.0, 2.0, 243.0, 405.0], [2.0, 1.0, 243.0, 405.0]]


def test_functions_and_their_gradients(answers: dict[str, Any]) -> None:
    answer = _answer(answers, "functions")
    e2 = float(np.exp(2.0))
    np.testing.assert_allclose(answer["values"], [3 * e2 + 2, 8, 4, 8 + 2 * e2 + 2], rtol=1e-6)
    # the client says 100 of the cube, and 7 of the square
    np.testing.assert_allclose(answer["slopes"], [3 * e2 + 1, 100, 7, 100 + 3 * e2 + 1, e2], rtol=1e-6)
    assert answer["shape"] == [3]


def test_a_recurrence_over_tensor_arrays_with_its_gradient(answers: dict[str, Any]) -> None:
    answer = _answer(answers, "recurrent")
    np.testing.assert_allclose(answer["gradient"][0][:3], [0.99654, 0.994675, 1.456782], rtol=1e-5)
    assert answer["losses"] == sorted(answer["losses"], reverse=True)


def test_dynamic_rnn(answers: dict[str, Any], version: str) -> None:
    if version.startswith("2."):
        pytest.skip("TensorFlow 2.x has its recurrent cells in another package (tf_keras)")
    answer = _answer(answers, "dynamic_rnn")
    np.testing.assert_allclose([answer["loss"], *answer["slopes"]], [0.11587416, 4.6514845, 2.4145732], rtol=1e-5)


def test_a_pipeline_of_queues_gives_every_line_once(answers: dict[str, Any]) -> None:
    answer = _answer(answers, "pipeline")
    message = answer.pop("message")
    assert answer == {"numbers": list(range(120)), "shuffled": True, "wrong": [], "threads_left": 0}
    assert "shuffle_batch/random_shuffle_queue' is closed and has insufficient elements" in message


#: The losses of programs.py's `train` over its first steps; the same on TensorFlow 2.21 and 1.15.
LOSSES = [0.5991455, 0.5519071, 0.5162324, 0.4916774, 0.4769231]


@pytest.mark.thorough
def test_training_goes_on_where_killed_servers_left_it(version: str, forks: dict[str, Forks], tmp_path: Path) -> None:
    with static_cluster(ps=1, worker=1) as tasks:
        target = tasks.target("worker", 0)
        first = _train(forks[version], target, tmp_path, 15)
        for job in ("ps", "worker"):
            tasks.kill(job, 0)
    with static_cluster(ps=1, worker=1) as tasks:
        second = _train(forks[version], tasks.target("worker", 0), tmp_path, 5)
    assert (first["begin"], first["end"], first["saved_step"]) == (0, 15, 15)
    np.testing.assert_allclose(first["losses"][:5], LOSSES, rtol=1e-5)
    assert (second["begin"], second["end"], second["saved_step"]) == (15, 20, 20)
    assert second["losses"][0] < first["losses"][-1]
    assert {"global_step", "hidden_w", "hidden_w/Adam", "out_w/Adam_1", "beta1_power"} <= set(second["saved"])
    assert first["events"]


@pytest.mark.long
def test_two_clients_train_in_step(version: str, tmp_path: Path) -> None:
    with static_cluster(ps=1, worker=2) as tasks:
        calls = {f"worker{i}": [f"sync={tasks.target('worker', i)},{i},2,6"] for i in range(2)}
        with clients(version, tmp_path, **calls) as started:
            ends = [_answer(started[f"worker{i}"].answers(), "sync")["last"] for i in range(2)]
    step, weights, rows = max(ends)
    assert step == 6
    # each step takes the mean of two gradients, 2 (w - 1): w after n steps of 0.1 is 1 - 0.8^n
    np.testing.assert_allclose(weights, [1 - 0.8**6] * 4, rtol=1e-5)
    # a row's mean is over the replicas that have a gradient for it: row 5 gets one from both, row 0 from the first
    # alone, and a fast replica may give both gradients of a step
    np.testing.assert_allclose(rows[5][0], 1 - 6 * 0.1, rtol=1e-4)
    steps = (1 - rows[0][0]) / 0.1
    assert 1 <= round(steps) <= 6
    np.testing.assert_allclose(steps, round(steps), rtol=1e-4)


def _train(tensorflow: Forks, target: str, folder: Path, steps: int) -> dict[str, Any]:
    return _answer(tensorflow.ask(PROGRAMS.read_text(), "-", f"train={target},{folder},{steps}"), "train")
