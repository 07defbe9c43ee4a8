"""Device names: parsing, merging and matching of partial specs."""

from __future__ import annotations

import pytest

from tenfold_core import device
from tenfold_core.device import DeviceSpec


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("/job:ps/task:0", "/job:ps/task:0"),
        ("/cpu:0", "/device:CPU:0"),
        ("/job:w/replica:0/task:1/GPU:2", "/job:w/replica:0/task:1/device:GPU:2"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("/task:3/job:ps", "/job:ps/task:3"),
        ("", ""),
        (None, ""),
    ],
)
def test_canonical_names(given: str | None, wanted: str) -> None:
    assert device.canonical_name(given) == wanted


@pytest.mark.parametrize("wrong", ["/job:", "/jop:ps", "/task:x", "/device:GPU:1:2", "ps"])
def test_a_malformed_name_is_quoted_with_the_wrong_part(wrong: str) -> None:
    with pytest.raises(ValueError, match="Malformed device specification"):
        DeviceSpec.from_string(wrong)


def test_merging_lays_the_inner_over_the_outer() -> None:
    assert device.merge("/job:ps/task:0", "/task:1/cpu:0") == "/job:ps/task:1/device:CPU:0"


def test_matching() -> None:
    full = "/job:ps/replica:0/task:0/device:CPU:0"
    assert device.is_compatible("", full)
    assert device.is_compatible("/job:ps/cpu:*", full)
    assert not device.is_compatible("/job:ps/device:GPU:0", full)
    assert device.task_of(full) == "/job:ps/replica:0/task:0"
    assert device.full_name("ps", 0) == full
    with pytest.raises(ValueError, match="does not name a task"):
        _ = DeviceSpec(job="ps").task_name


# ---- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("/job:w_1/replica:2/task:3/device:TPU:4", DeviceSpec("w_1", 2, 3, "TPU", 4)),
        ("/replica:7", DeviceSpec(replica=7)),
        ("/task:10", DeviceSpec(task=10)),
        ("/job:a/replica:*/task:*", DeviceSpec("a")),
        ("/job:a/task:1/task:*", DeviceSpec("a")),
        ("/device:cpu:1", DeviceSpec(device_type="CPU", device_index=1)),
        ("/device:Gpu:1", DeviceSpec(device_type="GPU", device_index=1)),
        ("/device:xla_cpu:0", DeviceSpec(device_type="xla_cpu", device_index=0)),
        ("/device:CPU", DeviceSpec(device_type="CPU")),
        ("/device:*:3", DeviceSpec(device_index=3)),
        ("/device:*", DeviceSpec()),
        ("/gpu", DeviceSpec(device_type="GPU")),
        ("/GPU:*", DeviceSpec(device_type="GPU")),
        ("/gpu:12", DeviceSpec(device_type="GPU", device_index=12)),
        ("job:a", DeviceSpec("a")),
        ("//job:a//", DeviceSpec("a")),
    ],
)
def test_each_part_has_its_place(text: str, spec: DeviceSpec) -> None:
    assert DeviceSpec.from_string(text) == DeviceSpec("other").parse_from_string(text) == spec


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("/job:a/jop:b", "jop:b"),
        ("/job:1a", "job:1a"),
        ("/job:a-b", "job:a-b"),
        ("/job:ps\n", "job:ps\n"),
        ("/task:1\n", "task:1\n"),
        ("/task:\u0663", "task:\u0663"),
        ("/cpu:0\n", "cpu:0\n"),
        ("/device:CPU:0\n", "device:CPU:0\n"),
        ("/device:CPU:\u0663", "device:CPU:\u0663"),
        ("/tpu:0", "tpu:0"),
        ("/task:-1", "task:-1"),
        ("/job:a/device:", "device:"),
    ],
)
def test_an_error_names_the_whole_and_the_wrong_part(text: str, part: str) -> None:
    with pytest.raises(ValueError, match="Malformed") as refused:
        DeviceSpec.from_string(text)
    assert str(refused.value).startswith(f"Malformed device specification '{text}': '{part}' is none of job:NAME")


def test_a_name_may_be_long_but_not_longer() -> None:
    longest = "/job:" + "a" * (4096 - 5)
    assert device.canonical_name(longest) == longest
    with pytest.raises(ValueError, match="it has 4097 characters, 4096 are the most") as refused:
        device.canonical_name(longest + "a")
    assert len(str(refused.value)) < 200, "not all of it is quoted"
    assert f"'{longest[:80]}…'" in str(refused.value)


#: A value for each part, and another one.
PARTS = {"job": ("a", "b"), "replica": (0, 1), "task": (0, 2), "device_type": ("CPU", "GPU"), "device_index": (0, 3)}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_said_lies_over_the_outer_one_also_if_it_is_zero(part: str) -> None:
    first, second = (DeviceSpec(**{name: values[n] for name, values in PARTS.items()}) for n in (0, 1))  # type: ignore[arg-type]
    only = DeviceSpec(**{part: PARTS[part][0]})  # type: ignore[arg-type]

    merged = second.make_merged_spec(only)

    assert merged == DeviceSpec(**{name: values[name != part] for name, values in PARTS.items()})  # type: ignore[arg-type]
    assert first.make_merged_spec(DeviceSpec()) == DeviceSpec().make_merged_spec(first) == first


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_said_must_be_the_same_also_if_it_is_zero(part: str) -> None:
    full = DeviceSpec(**{name: values[0] for name, values in PARTS.items()})  # type: ignore[arg-type]
    same, other = (DeviceSpec(**{part: value}) for value in PARTS[part])  # type: ignore[arg-type]

    assert same.matches(full)
    assert not other.matches(full)
    assert not same.matches(DeviceSpec())
    assert DeviceSpec().matches(full)
    assert full.matches(full)


def test_types_compare_without_case() -> None:
    assert DeviceSpec(device_type="xla_cpu").matches(DeviceSpec(device_type="XLA_CPU"))
    assert DeviceSpec(device_type="XLA_CPU").matches(DeviceSpec(device_type="xla_cpu"))


def test_how_parts_are_written() -> None:
    assert DeviceSpec("a", 0, 0, "CPU", 0).to_string() == "/job:a/replica:0/task:0/device:CPU:0"
    assert str(DeviceSpec(replica=1, device_type="GPU")) == "/replica:1/device:GPU:*"
    assert DeviceSpec(device_index=1).to_string() == ""
    assert device.canonical_name(DeviceSpec("a")) == "/job:a"


def test_names_of_tasks_and_devices() -> None:
    assert device.task_of("/job:a/replica:3/task:0/cpu:0") == "/job:a/replica:3/task:0"
    assert device.task_of("/job:a/task:2") == "/job:a/replica:0/task:2"
    assert device.task_name("a", 3) == "/job:a/replica:0/task:3"
    assert device.full_name("a", 1, "GPU", 2, 3) == "/job:a/replica:3/task:1/device:GPU:2"
    assert device.full_name("a", 1) == "/job:a/replica:0/task:1/device:CPU:0"
    for partial in ("/job:a/cpu:0", "/task:0", ""):
        with pytest.raises(ValueError, match=r"^'.*' does not name a task: a job and a task index are needed") as told:
            device.task_of(partial)
        assert str(told.value).startswith(f"'{device.canonical_name(partial)}'")
