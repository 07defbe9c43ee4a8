"""The devices of a session: their order, what a partial name means, and what is said where it means none."""

from __future__ import annotations

import pytest

from support.fake_cluster import fake_device
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_core.device import DeviceSpec

PS0, PS1, W0, W1 = (f"/job:{job}/replica:0/task:{task}" for job in ("ps", "worker") for task in (0, 1))
CPU, GPU = "/device:CPU:0", "/device:GPU:0"


def device_set(*tasks: str, own: str = W0, **tasks_left_out: object) -> DeviceSet:
    """A CPU for each task."""
    return DeviceSet([fake_device(task) for task in tasks], own + CPU, **tasks_left_out)  # type: ignore[arg-type]


def spec(text: str) -> DeviceSpec:
    return DeviceSpec.from_string(text)


def test_the_order_is_own_task_then_type_then_job_replica_task_and_index() -> None:
    devices = [
        *(fake_device(f"/job:ps/replica:0/task:{task}") for task in (10, 2, 1, 0)),
        fake_device("/job:ps/replica:1/task:0"),
        fake_device("/job:ps/replica:0/task:0", "TPU"),
        fake_device("/job:chief/replica:0/task:5"),
        *(fake_device("/job:ps/replica:0/task:2", "GPU", index) for index in (1, 0)),
        fake_device(W0),
        fake_device(W0, "GPU"),
    ]
    found = DeviceSet(devices, W0 + CPU)
    expected = [
        W0 + GPU,
        W0 + CPU,
        "/job:ps/replica:0/task:2/device:GPU:0",
        "/job:ps/replica:0/task:2/device:GPU:1",
        "/job:chief/replica:0/task:5/device:CPU:0",
        *(f"/job:ps/replica:0/task:{task}/device:CPU:0" for task in (0, 1, 2)),
        "/job:ps/replica:0/task:10/device:CPU:0",
        "/job:ps/replica:1/task:0/device:CPU:0",
        "/job:ps/replica:0/task:0/device:TPU:0",
    ]
    assert [attributes.name for attributes in found.attributes] == expected
    assert found.matching(DeviceSpec()) == expected
    assert found.tasks == list(dict.fromkeys(name.rpartition("/device:")[0] for name in expected))
    assert found.types == {"CPU", "GPU", "TPU"}
    assert found.jobs == {"chief": [5], "ps": [0, 1, 2, 10], "worker": [0]}


def test_a_set_knows_its_devices_by_name() -> None:
    found = DeviceSet([fake_device(PS0, incarnation=7), fake_device(W0, incarnation=(1 << 64) - 1)], W0 + CPU)
    assert (found.client_device, found.client_task) == (W0 + CPU, W0)
    assert PS0 + CPU in found
    assert PS0 + GPU not in found
    assert (found.incarnation(PS0 + CPU), found.incarnation(W0 + CPU)) == (7, (1 << 64) - 1)
    assert found.device(PS0 + CPU).name == PS0 + CPU
    for look_up in (found.device, found.incarnation):
        with pytest.raises(KeyError):
            look_up(PS0 + GPU)


@pytest.mark.parametrize(
    "name",
    [
        "/replica:0/task:0/device:CPU:0",
        "/job:ps/task:0/device:CPU:0",
        "/job:ps/replica:0/device:CPU:0",
        "/job:ps/replica:0/task:0",
        "/job:ps/replica:0/task:0/device:*:0",
        "/job:ps/replica:0/task:0/device:CPU:*",
    ],
)
def test_a_name_that_is_not_full_is_refused(name: str) -> None:
    device = fake_device(PS0)
    device.name = name
    with pytest.raises(ValueError, match="is not the full name of a device"):
        DeviceSet([fake_device(W0), device], W0 + CPU)


def test_the_master_s_own_device_must_be_there() -> None:
    with pytest.raises(ValueError, match=r"own device .*worker.* is not among .*ps"):
        device_set(PS0)


def test_matching_devices_lie_within_the_name_and_are_of_the_types() -> None:
    found = DeviceSet([fake_device(PS0), fake_device(PS0, "GPU"), fake_device(W0), fake_device(W0, "GPU")], W0 + CPU)
    assert found.matching(spec("/job:ps")) == [PS0 + GPU, PS0 + CPU]
    assert found.matching(spec("/job:ps"), frozenset(("CPU",))) == [PS0 + CPU]
    assert found.matching(DeviceSpec(), frozenset(("CPU", "XPU"))) == [W0 + CPU, PS0 + CPU]
    assert found.matching(spec("/gpu:0")) == [W0 + GPU, PS0 + GPU]
    assert found.matching(spec("/job:ps"), frozenset()) == []
    assert found.matching(spec("/job:other")) == []


def test_what_was_looked_up_is_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceSet, "_MAX_CACHED", 2)
    found = device_set(PS0, W0)
    kept, also_kept = found.matching(spec("/job:ps")), found.matching(spec("/job:ps"), frozenset(("GPU",)))
    over = found.matching(spec("/job:worker"))
    assert found.matching(spec("/job:ps")) is kept
    assert found.matching(spec("/job:ps"), frozenset(("GPU",))) is also_kept
    assert found.matching(spec("/job:worker")) is not over
    assert found.matching(spec("/job:worker")) == over == [W0 + CPU]


def test_the_first_for_all_is_the_best_type_then_the_least_name() -> None:
    devices = [fake_device(task, kind) for task in (PS0, PS1, W0) for kind in ("CPU", "GPU", "TPU")]
    found = DeviceSet(devices, W0 + CPU)
    assert found.first_for_all([W0 + CPU, PS1 + CPU, PS0 + CPU]) == PS0 + CPU
    assert found.first_for_all([PS0 + CPU, W0 + GPU, PS1 + GPU]) == PS1 + GPU
    assert found.first_for_all([PS0 + "/device:TPU:0", W0 + CPU]) == W0 + CPU
    with pytest.raises(ValueError, match="empty"):
        found.first_for_all([])
    with pytest.raises(KeyError):
        found.first_for_all([W1 + CPU])


@pytest.mark.parametrize(("own", "other"), [("local", "localhost"), ("localhost", "local")])
def test_both_names_of_a_server_that_stands_alone_mean_its_job(own: str, other: str) -> None:
    task = f"/job:{own}/replica:0/task:0"
    alone = device_set(task, own=task)
    assert alone.resolve_job(spec(f"/job:{other}/task:0/cpu:0")) == spec(f"/job:{own}/task:0/cpu:0")
    assert alone.resolve_job(spec(f"/job:{own}")) == spec(f"/job:{own}")
    assert alone.resolve_job(spec("/job:ps")) == spec("/job:ps")
    assert alone.resolve_job(spec("/cpu:0")) == spec("/cpu:0")
    # where neither is there, or both are, a name means itself
    assert device_set(W0).resolve_job(spec(f"/job:{own}")) == spec(f"/job:{own}")
    second = f"/job:{other}/replica:0/task:0"
    both = device_set(task, second, own=task)
    assert both.resolve_job(spec(f"/job:{other}")) == spec(f"/job:{other}")


CLUSTER = device_set(PS0, PS1, W0, "/job:worker/replica:0/task:2", "/job:worker/replica:0/task:5")


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            "/job:chief",
            "there is no job 'chief'; the cluster has ps (tasks 0-1), worker (tasks 0, 2, 5).",
        ),
        ("/task:9", "no job has a task 9; the cluster has ps (tasks 0-1), worker (tasks 0, 2, 5)."),
        ("/job:ps/task:2", "job 'ps' has tasks 0-1 only."),
        ("/job:worker/task:1", "job 'worker' has tasks 0, 2, 5 only."),
        ("/job:ps/replica:1", "there is no replica 1; every task is of replica 0."),
        ("/replica:1/task:2", "there is no replica 1; every task is of replica 0."),
        ("/job:ps/replica:0/task:0/gpu:0", "that task has CPU:0 only."),
        ("/job:ps/gpu:0", "the tasks of job 'ps' have CPU:0 only."),
        ("/task:2/gpu:0", "the tasks of this cluster have CPU:0 only."),
        ("/gpu:0", "the tasks of this cluster have CPU:0 only."),
    ],
)
def test_a_name_that_means_no_device_is_explained(wanted: str, text: str) -> None:
    assert CLUSTER.explain_no_match(spec(wanted)) == text


def test_one_task_is_told_in_the_singular_and_every_device_of_it() -> None:
    found = DeviceSet([fake_device(W0), fake_device(W0, "CPU", 1), fake_device(PS1, "GPU")], W0 + CPU)
    assert found.explain_no_match(spec("/job:worker/task:3")) == "job 'worker' has task 0 only."
    assert found.explain_no_match(spec("/job:worker/task:0/gpu:0")) == "that task has CPU:0, CPU:1 only."
    assert found.explain_no_match(spec("/device:TPU:0")) == "the tasks of this cluster have CPU:0, CPU:1, GPU:0 only."


def test_a_row_of_tasks_is_told_by_its_ends() -> None:
    tasks = [f"/job:ps/replica:0/task:{task}" for task in (1, 2, 3, 4)]
    other = [f"/job:worker/replica:0/task:{task}" for task in (0, 1, 3)]
    found = device_set(*tasks, *other)
    assert found.explain_no_match(spec("/job:ps/task:0")) == "job 'ps' has tasks 1-4 only."
    assert found.explain_no_match(spec("/job:worker/task:2")) == "job 'worker' has tasks 0, 1, 3 only."


def test_tasks_that_may_not_be_used_are_told_with_the_reason() -> None:
    names = [f"/job:gone/replica:0/task:{task}" for task in range(4)]
    found = device_set(
        PS0,
        W0,
        excluded_tasks=[names[0], PS1, PS1],
        finished_tasks=[names[1], W1],
        lost_tasks=[names[2]],
        mistaken_tasks={names[3]: "is another one's"},
    )
    reasons = (
        "is excluded by the session's device_filters.",
        "has finished.",
        "was lost when this session was created",
    )
    for name, reason in zip(names, (*reasons, "is another one's."), strict=True):
        assert found.explain_no_match(spec(name)).startswith(f"{name} {reason}")
    assert found.explain_no_match(spec("/job:gone/cpu:0")).startswith(f"{names[0]} {reasons[0]}")
    assert found.explain_no_match(spec("/job:ps/task:1")) == f"{PS1} {reasons[0]}"
    assert found.explain_no_match(spec("/job:worker/task:1/gpu:0")) == f"{W1} has finished."
    # with the job left open: the first that has this index
    assert found.explain_no_match(spec("/task:3")) == f"{names[3]} is another one's."
    assert found.explain_no_match(spec("/job:gone/task:7")).startswith("there is no job 'gone'")
    assert found.explain_no_match(spec("/task:7")).startswith("no job has a task 7")
    assert found.explain_no_match(spec("/job:gone/replica:2/task:3")).startswith("there is no job 'gone'")
